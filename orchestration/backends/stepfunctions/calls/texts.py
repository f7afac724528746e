"""Text in the fields of a request that take bytes, looked for when a pipeline runs.

Step Functions sends the JSON of a value as bytes: a text would arrive in quotes. What is known to
be text before a run is refused there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from orchestration.backends.jsonata.writing import field, step
from orchestration.backends.stepfunctions.facts import kind
from orchestration.backends.stepfunctions.integrations import spelling
from orchestration.backends.stepfunctions.names import Facts
from orchestration.checks.shapes import Shape
from orchestration.expressions import Tree
from orchestration.refs import Expression


class Sought(NamedTuple):
    """A place of bytes in a value."""

    path: str
    """The place in the request, for people."""
    kinds: str
    """JSONata that gives the types of what is there, where the value is ``$v``."""


def sought(shape: Shape, value: Tree, path: str, known: Facts) -> Iterator[Sought]:
    """Yield the places of bytes in a part of a request that may turn out to hold text."""
    return _inside(shape, value, path, "$v", known)


def _inside(shape: Shape | None, value: Tree, path: str, at: str, known: Facts) -> Iterator[Sought]:
    if shape is None:
        return
    if isinstance(value, Expression):
        if shape.type_name != "blob":
            yield from _below(shape, path, at, "$")
        elif kind(value, known) == "any":
            yield Sought(path, f"$type({at})")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            name, member = spelling.original(shape, key)
            yield from _inside(member, item, f"{path}.{name}", field(at, key), known)
    elif isinstance(value, list | tuple) and shape.type_name == "list":
        for n, item in enumerate(value):
            yield from _inside(shape.member, item, f"{path}[{n}]", f"{at}[{n}]", known)


def _below(
    shape: Shape, path: str, at: str, part: str, above: frozenset[str] = frozenset()
) -> Iterator[Sought]:
    """Yield the places below a part of what is at a place.

    A path goes into lists by itself; a list that is given as bytes must not be gone into. Where a
    shape holds itself, as EMR's ``Configuration`` does, it is gone into once: those with bytes have
    members that Step Functions names otherwise, so that they are refused.
    """
    inner = at if part == "$" else f"{at}.{part}"
    if shape.name in above:
        return
    within = above | {shape.name}
    match shape.type_name:
        case "blob":
            yield Sought(path, f"{at}.($type({part}))")
        case "structure":
            for name, member in shape.members.items():
                yield from _below(member, f"{path}.{name}", inner, step(name), within)
        case "list":
            yield from _below(shape.member, f"{path}[]", inner, "$", within)
        case "map":
            yield from _below(shape.value, f"{path}.*", f"{inner}.*", "$", within)
        case _:
            pass
