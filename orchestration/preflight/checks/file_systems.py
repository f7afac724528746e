"""File systems: they exist, stand where the job has a subnet, and let Lustre's traffic in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from orchestration.expressions import Result
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Rule
from orchestration.preflight.networks import groups, networks, subnets
from orchestration.preflight.reader import looked
from orchestration.preflight.requests import Request, known

_RULE: Final = Rule(
    check="file systems",
    why="a job mounts what it reaches from the zone and the VPC of its subnets, and FSx "
    "creates nothing that Lustre's traffic can't reach",
    sources=(
        "https://docs.aws.amazon.com/sagemaker/latest/dg/model-access-training-data-fsx.html",
        "https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html",
    ),
)
_PORTS: Final = ((988, 988), (1018, 1023))
"""TCP ports of Lustre."""
_READY: Final = ("AVAILABLE", "UPDATING")


def file_systems(examination: Examination) -> Iterator[Finding]:
    """Yield the file systems that jobs can't mount, and those that FSx would not create."""
    for request in examination.requests:
        for path, source in _sources(request.values, ()):
            where = examination.where(request, *path, "FileSystemId")
            what = f"file system {known(source.get('FileSystemId')) or 'of the run'}"
            look = _mounted(examination, request, (*path, "FileSystemId"), source, where)
            yield from looked("file systems", where, what, look)
    for request in examination.of("CreateFileSystem"):
        where = examination.where(request, "SecurityGroupIds", 0)
        what = "the security groups of the file system"
        yield from looked("file systems", where, what, _ports(examination, request, where))


def _mounted(
    examination: Examination,
    request: Request,
    path: tuple[str | int, ...],
    source: Mapping[str, Any],
    where: str,
) -> Iterator[Finding]:
    name = known(source.get("FileSystemId"))
    if name is None:
        yield from _of_run(examination, request, path, where)
    elif source.get("FileSystemType") == "EFS":
        yield from _elastic(examination, request, name, where)
    else:
        yield from _lustre(examination, request, name, where)


def _of_run(
    examination: Examination, request: Request, path: tuple[str | int, ...], where: str
) -> Iterator[Finding]:
    """Compare the subnet of a file system that the run creates with those of the job."""
    maker = request.tree(*path)
    for other in examination.of("CreateFileSystem"):
        named = [each for each in other.at("SubnetIds") or () if known(each)]
        if isinstance(maker, Result) and other.step == maker.step and named:
            yield from _beside(examination, request, "the file system", named, where)


def _lustre(examination: Examination, request: Request, name: str, where: str) -> Iterator[Finding]:
    answer = examination.reader.ask(
        "fsx", "DescribeFileSystems", absent=("FileSystemNotFound",), FileSystemIds=[name]
    )
    if answer is None or not answer["FileSystems"]:
        what = f"file system {name} does not exist in {examination.account.region}"
        yield _RULE.broken(request.calls, where, what, "create it, or mend its id")
        return
    [system] = answer["FileSystems"]
    if system["Lifecycle"] not in _READY:
        what = f"file system {name} is {system['Lifecycle']}"
        yield _RULE.broken(
            request.calls, where, what, "wait until it is AVAILABLE, or create another"
        )
    yield from _beside(examination, request, f"file system {name}", system["SubnetIds"], where)


def _elastic(
    examination: Examination, request: Request, name: str, where: str
) -> Iterator[Finding]:
    answer = examination.reader.ask(
        "efs", "DescribeMountTargets", absent=("FileSystemNotFound",), FileSystemId=name
    )
    if answer is None:
        what = f"file system {name} does not exist in {examination.account.region}"
        yield _RULE.broken(request.calls, where, what, "create it, or mend its id")
        return
    targets = [str(each["SubnetId"]) for each in answer["MountTargets"]]
    if not targets:
        what = f"file system {name} has no mount target"
        yield _RULE.broken(
            request.calls, where, what, "create one in the zone of each subnet of the job"
        )
        return
    yield from _beside(examination, request, f"file system {name}", targets, where)


def _beside(
    examination: Examination, request: Request, what: str, places: Sequence[str], where: str
) -> Iterator[Finding]:
    """Compare the subnets of a file system with those of the job that mounts it."""
    reader = examination.reader
    system = subnets(reader, places).values()
    for network in networks(request):
        own = subnets(reader, network.subnets).values()
        if not own or not system:
            continue
        for field, word in (("VpcId", "VPC"), ("AvailabilityZone", "zone")):
            theirs, ours = ({str(each[field]) for each in side} for side in (system, own))
            if ours.isdisjoint(theirs):
                yield _RULE.broken(
                    request.calls,
                    where,
                    f"{what} is in {word} {', '.join(sorted(theirs))}, and the job's subnets are "
                    f"in {', '.join(sorted(ours))}",
                    f"give the job a subnet in the {word} of the file system",
                )
                break


def _ports(examination: Examination, request: Request, where: str) -> Iterator[Finding]:
    named = [each for each in request.at("SecurityGroupIds") or () if known(each)]
    there = groups(examination.reader, named)
    ranges = _ranges(examination, request)
    for low, high in _PORTS if there else ():
        rules = [rule for group in there.values() for rule in group.get("IpPermissions", ())]
        if not any(_admits(rule, low, high, there, ranges) for rule in rules):
            ports = str(low) if low == high else f"{low}-{high}"
            yield _RULE.broken(
                request.calls,
                where,
                f"no inbound rule of {', '.join(there)} lets TCP {ports} in from the group itself",
                f"add an inbound rule for TCP {ports} that names the group",
                "fails" if low == high else "may fail",
            )


def _ranges(examination: Examination, request: Request) -> set[str]:
    """Return the addresses of the file system's subnets, which rules may name instead of groups."""
    named = [each for each in request.at("SubnetIds") or () if known(each)]
    return {str(each["CidrBlock"]) for each in subnets(examination.reader, named).values()}


def _admits(
    rule: Mapping[str, Any], low: int, high: int, own: Collection[str], ranges: set[str]
) -> bool:
    from ipaddress import ip_network

    protocol = rule.get("IpProtocol")
    fits = protocol == "-1" or (
        protocol == "tcp" and rule.get("FromPort", 0) <= low and rule.get("ToPort", 0) >= high
    )
    named = any(pair.get("GroupId") in own for pair in rule.get("UserIdGroupPairs", ()))
    open_to = [ip_network(each["CidrIp"], strict=False) for each in rule.get("IpRanges", ())]
    covered = any(
        ip_network(own_range).overlaps(each) and ip_network(own_range).prefixlen >= each.prefixlen
        for own_range in ranges
        for each in open_to
    )
    return fits and (named or covered)


def _sources(
    tree: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name == "FileSystemDataSource" and isinstance(value, Mapping):
                yield (*path, name), value
            else:
                yield from _sources(value, (*path, name))
    elif isinstance(tree, list | tuple):
        for number, value in enumerate(tree):
            yield from _sources(value, (*path, number))
