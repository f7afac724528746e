"""The requests of a graph, and the fields of them that permissions depend on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from orchestration.deploy.permissions.patterns import Known
from orchestration.expressions import Function, Tree, apply
from orchestration.graph import Call, ForEach, Graph, Operation, Read, bodies, operations

_ROLE = re.compile(r"([rR]oleArn|^[rR]ole)$")


def calls(graph: Graph, known: Known) -> Iterator[tuple[str, Operation, Known]]:
    """Yield the operations of a graph, with their steps and what is known around them."""
    for step in graph.steps:
        match step:
            case Call():
                for operation in operations(step):
                    yield step.name, operation, known
            case Read(uri=uri):
                request: dict[str, Tree] = {
                    "Bucket": apply(Function.S3_BUCKET, uri),
                    "Key": apply(Function.S3_KEY, uri),
                }
                yield step.name, Operation("s3", "GetObject", request), known
            case _:
                inside = known.inside(step.items) if isinstance(step, ForEach) else known
                for body in bodies(step):
                    yield from calls(body, inside)


def roles(tree: Tree) -> Iterator[Tree]:
    """Yield the roles that a request hands to a service."""
    return _named(tree, _is_role)


def _is_role(name: str) -> bool:
    return _ROLE.search(name) is not None


def _is_key(name: str) -> bool:
    return name.lower().endswith("kmskeyid")


def keys(tree: Tree) -> Iterator[Tree]:
    """Yield the KMS keys that a request names."""
    return _named(tree, _is_key)


def _named(tree: Tree, wanted: Callable[[str], bool]) -> Iterator[Tree]:
    """Yield the values of a request's fields, at any depth, whose names are wanted."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if wanted(name):
                yield value
            else:
                yield from _named(value, wanted)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _named(value, wanted)
