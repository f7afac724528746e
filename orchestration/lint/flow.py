"""The ways through a state machine: targets, dead states, ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.errors import near
from orchestration.lint.findings import Finding
from orchestration.lint.machines import Machine, State, machines
from orchestration.lint.values import is_placeholder


def targets(state: State) -> Iterator[tuple[str, Any]]:
    """Yield the states that may come next, each with the path of the field that names it."""
    for key in ("Next", "Default"):
        if key in state.fields:
            yield f"{state.path}/{key}", state.fields[key]
    for key in ("Choices", "Catch"):
        for path, rule in state.objects(key):
            if "Next" in rule:
                yield f"{path}/Next", rule["Next"]


def successors(state: State) -> list[State]:
    """Return the states that may come next."""
    names = [name for _, name in targets(state) if isinstance(name, str)]
    return [state.machine.states[name] for name in names if name in state.machine.states]


def reachable(state: State) -> set[State]:
    """Return a state and all that may come after it."""
    seen: set[State] = set()
    ahead = [state]
    while ahead:
        each = ahead.pop()
        if each not in seen:
            seen.add(each)
            ahead += successors(each)
    return seen


def ends(state: State) -> bool:
    """Return whether a state may end its state machine."""
    return state.type in ("Succeed", "Fail") or state.fields.get("End") is True


def findings(machine: Machine, everywhere: Mapping[str, list[State]]) -> Iterator[Finding]:
    """Yield what is wrong with the ways through a state machine."""
    start = machine.fields.get("StartAt")
    pairs = [(f"{machine.path}/StartAt", start)] if start is not None else []
    for state in machine.states.values():
        pairs += targets(state)
    for path, name in pairs:
        if isinstance(name, str) and name not in machine.states and not is_placeholder(name):
            yield Finding("missing-target", path, _missing(name, machine, everywhere))
    if not machine.states:
        return
    if not any(map(ends, machine.states.values())):
        text = "no state ends it; give one End with true, or add a Succeed state"
        yield Finding("no-end", f"{machine.path}/States", text)
    elif isinstance(start, str) and start in machine.states:
        yield from _dead(machine, reachable(machine.states[start]))


def _missing(name: str, machine: Machine, everywhere: Mapping[str, list[State]]) -> str:
    if name in everywhere:
        inside = everywhere[name][0].machine.path or "the state machine around it"
        return f"{name!r} is a state of {inside}; a transition stays among the states beside it"
    return f"there is no state {name!r}{near(name, machine.states)}"


def _dead(machine: Machine, alive: set[State]) -> Iterator[Finding]:
    for state in machine.states.values():
        if state not in alive:
            text = "no way leads there; name it in a Next, or remove it"
            yield Finding("unreachable-state", state.path, text)
        elif not any(map(ends, reachable(state))):
            text = "no way leads from there to an end; it runs until it is stopped or times out"
            yield Finding("endless-loop", state.path, text)


def duplicates(top: Machine) -> Iterator[Finding]:
    """Yield the states whose name another one has."""
    for states in by_name(top).values():
        for state in states[1:]:
            text = f"{states[0].path} has the same name; names are unique in the whole definition"
            yield Finding("duplicate-state", state.path, f"{text}: rename one")


def by_name(top: Machine) -> dict[str, list[State]]:
    """Return all states of a definition by their names."""
    names: dict[str, list[State]] = {}
    for machine in machines(top):
        for name, state in machine.states.items():
            names.setdefault(name, []).append(state)
    return names
