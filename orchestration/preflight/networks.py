"""The networks that requests put jobs, models and file systems into, and what EC2 has of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestration.preflight.reader import Reader
from orchestration.preflight.requests import Request, known


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Subnets and security groups that a request names, as far as they are known before a run."""

    request: Request
    subnets: Mapping[str, tuple[str | int, ...]]
    """Subnets by id, each with its place in the request."""
    groups: Mapping[str, tuple[str | int, ...]]
    """Security groups by id."""


def networks(request: Request) -> Iterator[Network]:
    """Yield the networks that a request names."""
    for path, config in _configs(request.values, ()):
        subnets = "Subnets" if "Subnets" in config else "SubnetIds"
        named = {
            field: {
                str(value): (*path, field, number)
                for number, value in enumerate(_list(config.get(field)))
                if known(value)
            }
            for field in (subnets, "SecurityGroupIds")
        }
        if named[subnets]:
            yield Network(request=request, subnets=named[subnets], groups=named["SecurityGroupIds"])


def subnets(reader: Reader, ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return the subnets that exist of these, by id."""
    return _described(reader, "DescribeSubnets", "Subnets", "subnet-id", "SubnetId", ids)


def groups(reader: Reader, ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Return the security groups that exist of these, by id."""
    return _described(
        reader, "DescribeSecurityGroups", "SecurityGroups", "group-id", "GroupId", ids
    )


def _described(
    reader: Reader, operation: str, member: str, key: str, field: str, ids: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
    # A filter, since naming one that is missing would be an error about all.
    chosen = [{"Name": key, "Values": sorted(set(ids))}]
    if not chosen[0]["Values"]:
        return {}
    return {
        str(each[field]): each for each in reader.every("ec2", operation, member, Filters=chosen)
    }


def _configs(
    tree: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    if isinstance(tree, Mapping):
        if "SecurityGroupIds" in tree and ("Subnets" in tree or "SubnetIds" in tree):
            yield path, tree
        for name, value in tree.items():
            yield from _configs(value, (*path, name))
    elif isinstance(tree, list | tuple):
        for number, value in enumerate(tree):
            yield from _configs(value, (*path, number))


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
