"""The hosts of a job: their names, directories and configuration."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration.local.processes.ports import free_ports

_ACCELERATED = re.compile(r"ml\.(p\d|g\d|trn\d|inf\d)")
_JOB_NUMBERS = itertools.count(1)
_TOOLKIT_PORT = 7777


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
        """True if the instance type has GPUs, Trainium or Inferentia."""
        return bool(_ACCELERATED.match(self.instance_type))


@dataclass(frozen=True)
class Cluster:
    """The hosts of one job, in the order of their names.

    Each group has its own port: torchrun joins the hosts of a group, not those of the job.
    """

    hosts: tuple[Host, ...]
    ports: Mapping[str, int]
    interface: str = "lo"

    def resource_config(self, host: Host) -> dict[str, Any]:
        """Return the content of a host's `resourceconfig.json`."""
        groups = dict.fromkeys(other.group for other in self.hosts)
        return {
            "current_host": host.address,
            "current_instance_type": host.instance_type,
            "current_group_name": host.group,
            # Sorted as text, as on SageMaker: algo-10 comes before algo-2.
            "hosts": sorted(other.address for other in self.hosts),
            "instance_groups": [self._group(name) for name in groups],
            "network_interface_name": self.interface,
        }

    def _group(self, name: str) -> dict[str, Any]:
        members = [host for host in self.hosts if host.group == name]
        return {
            "instance_group_name": name,
            "instance_type": members[0].instance_type,
            "hosts": sorted(host.address for host in members),
        }


def cluster(resources: Mapping[str, Any], directory: Path, *, isolated: bool = False) -> Cluster:
    """Return the cluster for a `ResourceConfig`.

    Hosts that are `isolated` have SageMaker's names and interface, as a network of their own; the
    others are addresses of the loopback.
    """
    # There is always capacity for the first preference.
    alike = (resources.get("InstancePreferences") or [resources])[0]
    groups = resources.get("InstanceGroups") or [
        {
            "InstanceGroupName": "homogeneousCluster",
            "InstanceType": alike.get("InstanceType", "ml.m5.large"),
            "InstanceCount": alike.get("InstanceCount", resources.get("InstanceCount", 1)),
        }
    ]
    kinds = [group for group in groups for _ in range(group["InstanceCount"])]
    names = _algo if isolated else _loopback_names()
    hosts = tuple(
        Host(
            index=index,
            address=names(index),
            instance_type=kind["InstanceType"],
            group=kind["InstanceGroupName"],
            directory=directory / f"host-{index + 1}",
        )
        for index, kind in enumerate(kinds)
    )
    members = [group["InstanceGroupName"] for group in groups]
    if isolated:
        return Cluster(hosts, dict.fromkeys(members, _TOOLKIT_PORT), "eth0")
    return Cluster(hosts, dict(zip(members, free_ports(len(members)), strict=True)))


def _algo(index: int) -> str:
    return f"algo-{index + 1}"


def _loopback_names() -> Callable[[int], str]:
    number = next(_JOB_NUMBERS)
    # Names of two digits, because hosts are sorted as text.
    return lambda index: f"127.{1 + number // 250 % 250}.{number % 250}.{11 + index}"
