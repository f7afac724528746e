"""Zones: those of the subnets offer the instance types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Severity
from orchestration.preflight.machines import Machines, machines
from orchestration.preflight.networks import Network, networks, subnets
from orchestration.preflight.reader import Reader, looked

_SOURCES: Final = (
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html",
)


def zones(examination: Examination) -> Iterator[Finding]:
    """Yield the instance types that EC2 does not offer in the zones of the subnets."""
    for request in examination.requests:
        for network in networks(request):
            for each in machines(request):
                where = examination.where(request, *each.path)
                what = f"where {each.type} is offered"
                yield from looked("zones", where, what, _offered(examination, network, each))


def offering(reader: Reader, name: str) -> frozenset[str]:
    """Return the zones that offer an instance type of SageMaker, by EC2's word."""
    pages = reader.every(
        "ec2",
        "DescribeInstanceTypeOfferings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": [name.removeprefix("ml.")]}],
    )
    return frozenset(str(each["Location"]) for each in pages)


def _offered(examination: Examination, network: Network, each: Machines) -> Iterator[Finding]:
    named = subnets(examination.reader, network.subnets)
    own = {name: str(subnet["AvailabilityZone"]) for name, subnet in named.items()}
    offered = offering(examination.reader, each.type)
    without = {name: zone for name, zone in own.items() if zone not in offered}
    if not without:
        return
    others = each.request.turns > 1 or each.choice or len(without) < len(own) or not offered
    severity: Severity = "may fail" if others else "fails"
    where = ", ".join(f"{name} ({zone})" for name, zone in without.items())
    elsewhere = f"only in {', '.join(sorted(offered))}" if offered else "nowhere in the region"
    yield Finding(
        check="zones",
        severity=severity,
        where=examination.where(each.request, *each.path),
        what=f"{each.type} is not offered in the zone of {where}; {elsewhere}",
        why="the machines of a job stand in the zone of one of its subnets",
        when=each.request.calls,
        mend="take a subnet in a zone that offers it, or another instance type",
        sources=_SOURCES,
    )
