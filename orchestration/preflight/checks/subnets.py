"""Subnets and security groups: they exist, in one VPC, with addresses for every instance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.catalog import instance
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Severity
from orchestration.preflight.machines import machines
from orchestration.preflight.networks import Network, groups, networks, subnets
from orchestration.preflight.reader import looked

_SOURCES: Final = ("https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html",)
_ADDRESSES: Final = 2
_ADDRESSES_WITH_EFA: Final = 5
"""Addresses that an instance of a training job takes, by the page above."""


def subnets_of(examination: Examination) -> Iterator[Finding]:
    """Yield the subnets and security groups that jobs can't be put into."""
    for request in examination.requests:
        for network in networks(request):
            where = examination.where(request, *next(iter(network.subnets.values())))
            what = f"subnets {', '.join(network.subnets)}"
            yield from looked("subnets", where, what, _network(examination, network))


def _network(examination: Examination, network: Network) -> Iterator[Finding]:
    reader = examination.reader
    there, guards = subnets(reader, network.subnets), groups(reader, network.groups)
    for kind, named, found in (
        ("subnet", network.subnets, there),
        ("security group", network.groups, guards),
    ):
        for name, path in named.items():
            if name not in found:
                place = f"{kind} {name} does not exist in {examination.account.region}"
                yield _finding(examination, network, path, place, f"name a {kind} of the region")
    vpcs = {str(each["VpcId"]) for each in there.values()}
    if len(vpcs) > 1:
        what = f"the subnets are in several VPCs: {', '.join(sorted(vpcs))}"
        path = next(iter(network.subnets.values()))
        yield _finding(examination, network, path, what, "take subnets of one VPC")
    for name, path in network.groups.items():
        if name in guards and vpcs and guards[name]["VpcId"] not in vpcs:
            what = (
                f"security group {name} is in {guards[name]['VpcId']}, and the subnets are in "
                f"{', '.join(sorted(vpcs))}"
            )
            yield _finding(
                examination, network, path, what, "take a security group of the subnets' VPC"
            )
    yield from _addresses(examination, network)


def _addresses(examination: Examination, network: Network) -> Iterator[Finding]:
    there = subnets(examination.reader, network.subnets)
    free = {name: int(each["AvailableIpAddressCount"]) for name, each in there.items()}
    for each in machines(network.request):
        kind = instance(each.type)
        per_instance = _ADDRESSES_WITH_EFA if kind is not None and kind.efa else _ADDRESSES
        needed = each.count * per_instance
        if free and max(free.values()) < needed:
            left = ", ".join(f"{count} in {name}" for name, count in free.items())
            yield _finding(
                examination,
                network,
                next(iter(network.subnets.values())),
                f"{each.count} x {each.type} take {needed} addresses, and there are {left}",
                "take a larger subnet, or free addresses in it",
                "may fail",
            )


def _finding(
    examination: Examination,
    network: Network,
    path: tuple[str | int, ...],
    what: str,
    mend: str,
    severity: Severity = "fails",
) -> Finding:
    return Finding(
        check="subnets",
        severity=severity,
        where=examination.where(network.request, *path),
        what=what,
        why="network interfaces of the job are made in its subnets, with its security groups",
        when=network.request.calls,
        mend=mend,
        sources=_SOURCES,
    )
