"""What must hold of every definition, beside what the public validators know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_VARIABLE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\$([A-Za-z_]\w*)(\s*\()?")
# What expressions name themselves: lambdas' parameters and bindings.
_LOCAL = set("abkoptv")
States = Mapping[str, Mapping[str, Any]]


def machines(definition: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A machine and those inside of it."""
    yield definition
    for state in definition["States"].values():
        for inner in inside(state):
            yield from machines(inner)


def inside(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*state.get("Branches", []), *filter(None, [state.get("ItemProcessor")])]


def states(definition: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """All states by name."""
    return {name: s for machine in machines(definition) for name, s in machine["States"].items()}


def problems(definition: Mapping[str, Any]) -> list[str]:
    """What is wrong with a definition."""
    found = []
    names = [name for machine in machines(definition) for name in machine["States"]]
    found += [f"{name} is there twice" for name in set(names) if names.count(name) > 1]
    for machine in machines(definition):
        targets = [machine["StartAt"], *(t for s in machine["States"].values() for t in _next(s))]
        found += [f"{t} is nowhere" for t in targets if t not in machine["States"]]
    if "TimeoutSeconds" in definition:
        found.append("a timed-out execution runs no clean-up")
    return [*found, *_scopes(definition, frozenset())]


def _next(state: Mapping[str, Any]) -> Iterator[str]:
    yield from (state[key] for key in ("Next", "Default") if key in state)
    for rules in ("Choices", "Catch"):
        yield from (rule["Next"] for rule in state.get(rules, []))


def _scopes(machine: Mapping[str, Any], outer: frozenset[str]) -> Iterator[str]:
    """A variable is assigned in one scope only, and read where it is assigned or inside of that."""
    own = frozenset(v for s in machine["States"].values() for v in _assigned(s))
    yield from (f"{v} is assigned in an inner scope too" for v in own & outer)
    for name, state in machine["States"].items():
        mine = {k: v for k, v in state.items() if k not in ("Branches", "ItemProcessor")}
        unknown = _read(mine) - own - outer - _LOCAL - {"states"}
        yield from (f"{name} reads ${v}, which is assigned nowhere" for v in unknown)
        for inner in inside(state):
            yield from _scopes(inner, outer | own)


def _assigned(state: Mapping[str, Any]) -> Iterator[str]:
    yield from state.get("Assign", {})
    for transition in (*state.get("Catch", []), *state.get("Choices", [])):
        yield from transition.get("Assign", {})


def _read(value: Any) -> set[str]:
    match value:
        case str() if value.startswith("{%"):
            return {m[1] for m in _VARIABLE.finditer(value) if m[1] and not m[2]}
        case Mapping():
            return set().union(*map(_read, value.values()))
        case list():
            return set().union(*map(_read, value))
    return set()
