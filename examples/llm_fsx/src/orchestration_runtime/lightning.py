# Copied from orchestration.runtime 0.1.0: change it there, not here.
"""The cluster as PyTorch Lightning wants to be told of it.

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
# These start a process for each device; in the others Lightning does.
_STARTS_ALL = ("torchrun", "mpirun", "smddp", "xla")


def lightning_environment(cluster: Cluster | None = None) -> Any:
    """A Lightning ClusterEnvironment, for `Trainer(plugins=[lightning_environment()])`.

    Lightning itself knows torchrun and takes SageMaker's mpirun and SMDDP for a single process.
    `cluster`: that of `os.environ` by default; raises ClusterError where that contradicts itself,
    and ImportError where Lightning is not installed.
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
        """Whether the launcher started a process for every device."""
        return self._cluster.launcher in _STARTS_ALL

    @property
    def main_address(self) -> str:
        """Where rank 0 listens."""
        return self._cluster.master_address

    @property
    def main_port(self) -> int:
        """The port where rank 0 listens."""
        return self._cluster.master_port

    @staticmethod
    def detect() -> bool:
        """Whether a launcher or SageMaker described the cluster."""
        return Cluster.from_environment().launcher != "none"

    def world_size(self) -> int:
        """Processes that train together."""
        return self._world_size

    def set_world_size(self, size: int) -> None:
        """Take Lightning's count where Lightning starts the processes."""
        if not self.creates_processes_externally:
            self._world_size = size

    def global_rank(self) -> int:
        """This process among all."""
        return self._rank

    def set_global_rank(self, rank: int) -> None:
        """Take Lightning's rank where Lightning starts the processes."""
        if not self.creates_processes_externally:
            self._rank = rank

    def local_rank(self) -> int:
        """This process on its host."""
        if self.creates_processes_externally:
            return self._cluster.local_rank
        # Lightning tells the processes that it starts.
        return int(os.environ.get("LOCAL_RANK") or 0)

    def node_rank(self) -> int:
        """This host among all."""
        return self._cluster.node_rank

    def validate_settings(self, num_devices: int, num_nodes: int) -> None:
        """Refuse a Trainer made for another cluster, where ranks would not fit."""
        here = self._cluster
        fits = not self.creates_processes_externally or num_devices == here.local_size
        if not fits or num_nodes != here.host_count:
            raise ValueError(
                f"Trainer(devices={num_devices}, num_nodes={num_nodes}), but {here.launcher} "
                f"runs {here.local_size} processes on each of {here.host_count} hosts"
            )


@functools.lru_cache(maxsize=None)
def _environment_class() -> Any:
    # A parent that only exists where Lightning does.
    return type("SageMakerEnvironment", (_Environment, _interface()), {})


def _interface() -> Any:
    for name in _MODULES:
        try:
            return importlib.import_module(name).ClusterEnvironment
        except ModuleNotFoundError:
            continue
    raise ImportError("Lightning is not installed: pip install lightning")
