"""Differences between definitions, by state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.backends.origins import parts
from orchestration.deploy.differences.fields import differing

_INNER: Final = ("Branches", "ItemProcessor", "Iterator")


def by_state(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the states that are new, gone or changed, and the changed fields of each."""
    old, new = dict(states(before)), dict(states(after))
    if not old:
        yield f"+ {len(new)} states, from {after.get('StartAt')}"
        return
    yield from differing(_outside(before), _outside(after))
    if parts(before)[1:] != parts(after)[1:]:
        yield "~ Comment: the pipeline that it was made of"
    for name in dict.fromkeys([*old, *new]):
        if name not in old:
            yield f"+ state {name} ({new[name].get('Type')})"
        elif name not in new:
            yield f"- state {name} ({old[name].get('Type')})"
        elif fields := list(differing(old[name], new[name])):
            yield f"~ state {name}"
            yield from (f"  {line}" for line in fields)


def _outside(machine: Mapping[str, Any]) -> dict[str, Any]:
    outside = {key: value for key, value in machine.items() if key != "States"}
    return {**outside, **({"Comment": parts(machine)[0]} if "Comment" in machine else {})}


def states(machine: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all states with their own fields; names are unique in a whole definition."""
    for name, state in machine.get("States", {}).items():
        yield name, {k: _without(v) if k in _INNER else v for k, v in state.items()}
        for key in _INNER:
            inner = state.get(key, [])
            for each in inner if isinstance(inner, list) else [inner]:
                yield from states(each)


def _without(inner: Any) -> Any:
    """Return branches, or the loop's body, without their states."""
    if isinstance(inner, list):
        return [_without(each) for each in inner]
    return {key: value for key, value in inner.items() if key != "States"}
