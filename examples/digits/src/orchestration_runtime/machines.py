# Copied from orchestration.runtime 0.1.0: change it there, not here.
"""What SageMaker tells a container of the machines of its job.

https://github.com/aws/sagemaker-training-toolkit/blob/master/ENVIRONMENT_VARIABLES.md
https://docs.aws.amazon.com/sagemaker/latest/dg/train-heterogeneous-cluster.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .environment import Variables


@dataclass(frozen=True)
class InstanceGroup:
    """Instances of one type; a cluster with several groups is heterogeneous."""

    name: str
    instance_type: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Machines:
    """The machines of a job."""

    hosts: tuple[str, ...]
    current_host: str | None
    devices_per_host: int
    accelerator: str
    groups: tuple[InstanceGroup, ...]
    training_groups: tuple[str, ...]

    @classmethod
    def read(cls, variables: Variables) -> Machines:
        """Read SM_HOSTS, SM_CURRENT_HOST, SM_RESOURCE_CONFIG, SM_NUM_GPUS and their kin."""
        resources = variables.mapping("SM_RESOURCE_CONFIG")
        told = variables.strings(resources.get("hosts", []), "SM_RESOURCE_CONFIG's hosts")
        hosts = variables.words("SM_HOSTS") or told
        if told and sorted(told) != sorted(hosts):
            variables.object(
                f"SM_HOSTS={list(hosts)} and SM_RESOURCE_CONFIG's hosts {list(told)} contradict "
                "each other"
            )
        gpus, neurons = (
            variables.number("SM_NUM_GPUS") or 0,
            variables.number("SM_NUM_NEURONS") or 0,
        )
        return cls(
            hosts=hosts,
            current_host=_current_host(variables, resources, hosts),
            devices_per_host=gpus or neurons,
            accelerator="gpu" if gpus else "neuron" if neurons else "none",
            groups=_groups(variables, resources, hosts),
            training_groups=variables.words("SM_DISTRIBUTION_INSTANCE_GROUPS"),
        )

    def group_of(self, host: str | None) -> InstanceGroup | None:
        """The instance group that a host belongs to."""
        return next((group for group in self.groups if host in group.hosts), None)

    def training_with(self, host: str | None) -> tuple[str, ...]:
        """The hosts that a launcher on this host starts processes on, in its order.

        The toolkit takes the groups that the distribution names; a group that it doesn't name is
        alone.
        """
        own = self.group_of(host)
        if len(self.groups) < 2 or own is None:
            return self.hosts
        if own.name not in self.training_groups:
            return own.hosts
        together = (group for group in self.groups if group.name in self.training_groups)
        return tuple(name for group in together for name in group.hosts)


def _current_host(
    variables: Variables, resources: dict[str, Any], hosts: tuple[str, ...]
) -> str | None:
    told = resources.get("current_host")
    current = variables.text("SM_CURRENT_HOST") or (told if isinstance(told, str) else None)
    if told is not None and told != current:
        variables.object(
            f"SM_CURRENT_HOST={current} and SM_RESOURCE_CONFIG's current_host {told!r} contradict "
            "each other"
        )
    if current is not None and hosts and current not in hosts:
        variables.object(f"SM_CURRENT_HOST={current} is not in SM_HOSTS={list(hosts)}")
    if current is None and len(hosts) == 1:
        return hosts[0]
    return current


def _groups(
    variables: Variables, resources: dict[str, Any], hosts: tuple[str, ...]
) -> tuple[InstanceGroup, ...]:
    described = resources.get("instance_groups") or []
    if not isinstance(described, list) or not all(isinstance(group, dict) for group in described):
        variables.object("SM_RESOURCE_CONFIG's instance_groups has to be a list of objects")
        return ()
    groups: list[InstanceGroup] = []
    for group in described:
        name = str(group.get("instance_group_name", ""))
        where = f"SM_RESOURCE_CONFIG's instance group {name!r}"
        members = variables.strings(group.get("hosts", []), f"{where}: hosts")
        strangers = [host for host in members if host not in hosts]
        if strangers:
            variables.object(f"{where} has hosts {strangers} that are not in SM_HOSTS")
        groups.append(InstanceGroup(name, str(group.get("instance_type", "")), members))
    return tuple(groups)
