"""Security groups of clusters with Elastic Fabric Adapters: all traffic among themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from orchestration.catalog import instance
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding
from orchestration.preflight.machines import Machines, machines
from orchestration.preflight.networks import Network, groups, networks
from orchestration.preflight.reader import looked

_SOURCES: Final = (
    "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html",
    "https://docs.aws.amazon.com/pcs/latest/userguide/working-with_networking_efa_create-sg.html",
)
_ALL: Final = "-1"
"""The protocol of rules about all traffic."""


def efa(examination: Examination) -> Iterator[Finding]:
    """Yield the clusters whose security groups keep EFA's traffic from their own instances."""
    for request in examination.requests:
        for network in networks(request):
            several = [each for each in machines(request) if each.count > 1 and _has_efa(each)]
            if several and network.groups:
                path = next(iter(network.groups.values()))
                where = examination.where(request, *path)
                what = f"security groups {', '.join(network.groups)}"
                look = _closed(examination, network, several[0], where)
                yield from looked("efa", where, what, look)


def _has_efa(each: Machines) -> bool:
    kind = instance(each.type)
    return kind is not None and bool(kind.efa)


def _closed(
    examination: Examination, network: Network, each: Machines, where: str
) -> Iterator[Finding]:
    there = groups(examination.reader, network.groups)
    for direction, field in (("inbound", "IpPermissions"), ("outbound", "IpPermissionsEgress")):
        open_to_itself = any(_names_one_of(rules.get(field, ()), there) for rules in there.values())
        if there and not open_to_itself:
            yield Finding(
                check="efa",
                severity="fails",
                where=where,
                what=f"no {direction} rule of {', '.join(there)} allows all traffic "
                f"{'from' if direction == 'inbound' else 'to'} the group itself",
                why="EFA's traffic is not IP: rules about addresses (0.0.0.0/0) do not let it "
                "through, only a rule about all traffic that names the group",
                when=f"{each.request.calls}; the hosts of {each.count} x {each.type} wait for each "
                "other until the job's time limit",
                mend=f"add an {direction} rule for all traffic (protocol -1) that names the group",
                sources=_SOURCES,
            )


def _names_one_of(rules: Sequence[Mapping[str, Any]], own: Collection[str]) -> bool:
    return any(
        rule.get("IpProtocol") == _ALL
        and any(pair.get("GroupId") in own for pair in rule.get("UserIdGroupPairs", ()))
        for rule in rules
    )
