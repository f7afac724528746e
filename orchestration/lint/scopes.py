"""Variables: which are assigned on the ways to a state.

https://docs.aws.amazon.com/step-functions/latest/dg/workflow-variables.html (read November 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.lint.findings import Finding
from orchestration.lint.machines import Machine, State
from orchestration.lint.values import is_placeholder

Names = frozenset[str]
_LONGEST_NAME: Final = 80
_EXISTS = re.compile(r"\$exists\(\s*\$(\w+)")


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables that a state may read."""

    may: Names
    """Those that are assigned on some way to it."""
    must: Names
    """Those that are assigned on all ways."""


_NOTHING = Scope(frozenset(), frozenset())


def assigned(fields: Mapping[str, Any]) -> Names:
    """Return the names that an ``Assign`` gives values to."""
    assign = fields.get("Assign")
    names = assign if isinstance(assign, Mapping) else ()
    return frozenset(str(name).removesuffix(".$") for name in names)


def scopes(top: Machine) -> dict[State, Scope]:
    """Return the variables that each state of a definition may read."""
    found: dict[State, Scope] = {}
    _machine(top, _NOTHING, found)
    return found


def _machine(machine: Machine, around: Scope, found: dict[State, Scope]) -> None:
    start = machine.states.get(str(machine.fields.get("StartAt")))
    if start is not None:
        found[start] = around
        ahead = [start]
        while ahead:
            state = ahead.pop()
            for target, names in _ways(state):
                after = Scope(found[state].may | names, found[state].must | names)
                before = found.get(target)
                if before is not None:
                    after = Scope(before.may | after.may, before.must & after.must)
                if after != before:
                    found[target] = after
                    ahead.append(target)
    for state in machine.states.values():
        inside = found.get(state, _NOTHING)
        for inner in state.inner:
            # What runs as an execution of its own sees no variables of this one.
            _machine(inner, _NOTHING if inner.is_distributed else inside, found)


def _ways(state: State) -> Iterator[tuple[State, Names]]:
    """Yield the states that may follow, with the variables that are assigned on the way."""
    own, states = assigned(state.fields), state.machine.states
    for key in ("Next", "Default"):
        target = states.get(str(state.fields.get(key)))
        if target is not None:
            yield target, own
    for key in ("Choices", "Catch"):
        for _, rule in state.objects(key):
            target = states.get(str(rule.get("Next")))
            if target is not None:
                yield target, assigned(rule) | _asked(rule)


def _asked(rule: Mapping[str, Any]) -> Names:
    """Return the variables that exist where a rule of a Choice matches."""
    condition = str(rule.get("Condition", ""))
    return frozenset(() if "$not" in condition else _EXISTS.findall(condition))


def _assigning(state: State) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield state.path, state.fields
    for key in ("Choices", "Catch"):
        yield from state.objects(key)


def naming(state: State) -> Iterator[Finding]:
    """Yield the variables that a state assigns under names that no variable may have."""
    for path, fields in _assigning(state):
        for name in sorted(assigned(fields)):
            if name == "states":
                text = "is what Step Functions itself gives; choose another name"
            elif is_placeholder(name) or (name.isidentifier() and len(name) <= _LONGEST_NAME):
                continue
            else:
                text = f"expected a name of letters, digits and _, at most {_LONGEST_NAME}"
            yield Finding("wrong-value", f"{path}/Assign/{name}", text)


def shadowing(state: State, scope: Scope) -> Iterator[Finding]:
    """Yield the variables that a state inside of another assigns, and the scope around has."""
    outer = state.machine.outer
    if outer is None or state.machine.is_distributed:
        return
    around: set[str] = set()
    machine: Machine | None = outer.machine
    while machine is not None:
        for each in machine.states.values():
            around |= assigned(each.fields)
        is_own = machine.is_distributed or machine.outer is None
        machine = None if is_own or machine.outer is None else machine.outer.machine
    for path, fields in _assigning(state):
        for name in sorted(assigned(fields) & around & scope.may):
            text = f"{name} is a variable of the state machine around, which no state in here may"
            yield Finding("shadowed-variable", f"{path}/Assign/{name}", f"{text} assign; rename it")
