"""The hosts of a job: their names, their directories, and what each is told of the others."""

from __future__ import annotations

import itertools
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INTERFACE = "lo"
_ACCELERATED = re.compile(r"ml\.(p\d|g\d|trn\d|inf\d)")
_JOB_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Host:
    """One simulated instance of a job."""

    index: int
    address: str
    instance_type: str
    group: str
    directory: Path

    @property
    def is_accelerated(self) -> bool:
        """Whether the instance type has GPUs, Trainium or Inferentia."""
        return bool(_ACCELERATED.match(self.instance_type))


@dataclass(frozen=True)
class Cluster:
    """The hosts of one job, in the order of their names, and a port that is theirs alone."""

    hosts: tuple[Host, ...]
    port: int

    def resource_config(self, host: Host) -> dict[str, Any]:
        """What a host reads in `resourceconfig.json`."""
        groups = dict.fromkeys(other.group for other in self.hosts)
        return {
            "current_host": host.address,
            "current_instance_type": host.instance_type,
            "current_group_name": host.group,
            "hosts": [other.address for other in self.hosts],
            "instance_groups": [self._group(name) for name in groups],
            "network_interface_name": INTERFACE,
        }

    def _group(self, name: str) -> dict[str, Any]:
        members = [host for host in self.hosts if host.group == name]
        return {
            "instance_group_name": name,
            "instance_type": members[0].instance_type,
            "hosts": [host.address for host in members],
        }


def cluster(resources: Mapping[str, Any], directory: Path) -> Cluster:
    """The cluster that a `ResourceConfig` asks for."""
    groups = resources.get("InstanceGroups") or [
        {
            "InstanceGroupName": "homogeneousCluster",
            "InstanceType": resources.get("InstanceType", "ml.m5.large"),
            "InstanceCount": resources.get("InstanceCount", 1),
        }
    ]
    kinds = [group for group in groups for _ in range(group["InstanceCount"])]
    number = next(_JOB_NUMBERS)
    hosts = tuple(
        Host(
            index=index,
            # Names of two digits, because hosts are sorted as text.
            address=f"127.{1 + number // 250 % 250}.{number % 250}.{11 + index}",
            instance_type=kind["InstanceType"],
            group=kind["InstanceGroupName"],
            directory=directory / f"host-{index + 1}",
        )
        for index, kind in enumerate(kinds)
    )
    return Cluster(hosts, _free_port())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
