"""The cluster, described to PyTorch Lightning.

https://lightning.ai/docs/pytorch/stable/extensions/plugins.html#cluster-environments
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import Any

from .ranks import Cluster

_MODULES = (
    "lightning.fabric.plugins.environments",
    "lightning_fabric.plugins.environments",
    "pytorch_lightning.plugins.environments",
)
# These start one process per device; with the others, Lightning starts them.
_STARTS_ALL = ("torchrun", "mpirun", "smddp", "xla")


def lightning_environment(cluster: Cluster | None = None) -> Any:
    """Create a Lightning ClusterEnvironment, for `Trainer(plugins=[lightning_environment()])`.

    Lightning itself knows torchrun and takes SageMaker's mpirun and SMDDP for a single process.
    `cluster`: that of `os.environ` by default. Raises ClusterError if the environment contradicts
    itself, and ImportError if Lightning is not installed.
    """
    return _environment_class()(Cluster.from_environment() if cluster is None else cluster)


class _Environment:
    """The cluster of a SageMaker training job."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world_size = cluster.world_size
        self._rank = cluster.rank

    @property
    def creates_processes_externally(self) -> bool:
        """True if the launcher started a process for every device."""
        return self._cluster.launcher in _STARTS_ALL

    @property
    def main_address(self) -> str:
        """The address of rank 0."""
        return self._cluster.master_address

    @property
    def main_port(self) -> int:
        """The port that rank 0 listens on."""
        return self._cluster.master_port

    @staticmethod
    def detect() -> bool:
        """Return whether a launcher or SageMaker described the cluster."""
        return Cluster.from_environment().launcher != "none"

    def world_size(self) -> int:
        """Return the number of processes that train together."""
        return self._world_size

    def set_world_size(self, size: int) -> None:
        """Accept Lightning's count if Lightning starts the processes."""
        if not self.creates_processes_externally:
            self._world_size = size

    def global_rank(self) -> int:
        """Return this process's rank among all."""
        return self._rank

    def set_global_rank(self, rank: int) -> None:
        """Accept Lightning's rank if Lightning starts the processes."""
        if not self.creates_processes_externally:
            self._rank = rank

    def local_rank(self) -> int:
        """Return this process's rank on its host."""
        if self.creates_processes_externally:
            return self._cluster.local_rank
        # Set by Lightning for the processes that it starts.
        return int(os.environ.get("LOCAL_RANK") or 0)

    def node_rank(self) -> int:
        """Return this host's rank among the hosts."""
        return self._cluster.node_rank

    def validate_settings(self, num_devices: int, num_nodes: int) -> None:
        """Refuse a Trainer for a cluster of another size, whose ranks would not match."""
        here = self._cluster
        fits = not self.creates_processes_externally or num_devices == here.local_size
        if not fits or num_nodes != here.host_count:
            raise ValueError(
                f"Trainer(devices={num_devices}, num_nodes={num_nodes}), but {here.launcher} "
                f"runs {here.local_size} processes on each of {here.host_count} hosts"
            )


@functools.lru_cache(maxsize=None)
def _environment_class() -> Any:
    # The base class exists only if Lightning is installed.
    return type("SageMakerEnvironment", (_Environment, _interface()), {})


def _interface() -> Any:
    for name in _MODULES:
        try:
            return importlib.import_module(name).ClusterEnvironment
        except ModuleNotFoundError:
            continue
    raise ImportError("Lightning is not installed: pip install lightning")
