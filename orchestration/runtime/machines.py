"""The machines of a job, as SageMaker describes them to a container.

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
        """Read SM_HOSTS, SM_CURRENT_HOST, SM_RESOURCE_CONFIG, SM_NUM_GPUS and related variables."""
        resources = variables.mapping("SM_RESOURCE_CONFIG")
        configured = variables.strings(resources.get("hosts", []), "SM_RESOURCE_CONFIG's hosts")
        hosts = variables.words("SM_HOSTS") or configured
        if configured and sorted(configured) != sorted(hosts):
            variables.object(
                f"SM_HOSTS={list(hosts)} and SM_RESOURCE_CONFIG's hosts {list(configured)} "
                "contradict each other"
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
        """Return the instance group of a host."""
        return next((group for group in self.groups if host in group.hosts), None)

    def training_with(self, host: str | None) -> tuple[str, ...]:
        """List the hosts on which a launcher on this host starts processes, in its order.

        The toolkit launches across the groups that the distribution names; any other group trains
        by itself.
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
    configured = resources.get("current_host")
    current = variables.text("SM_CURRENT_HOST") or (
        configured if isinstance(configured, str) else None
    )
    if configured is not None and configured != current:
        variables.object(
            f"SM_CURRENT_HOST={current} and SM_RESOURCE_CONFIG's current_host {configured!r} "
            "contradict each other"
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
        variables.object("SM_RESOURCE_CONFIG's instance_groups must be a list of objects")
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
