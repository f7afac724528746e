"""Other names for the states and variables of a definition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_FOLLOWING: Final = ("Next", "Default", "StartAt")
_WORD: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|\$(?P<name>[A-Za-z_]\w*)""", re.DOTALL
)
"""A text, a quoted field, or a variable of JSONata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Beginnings of names."""

    state: str
    variable: str
    variables: frozenset[str]
    """The variables to rename; all others are JSONata's own."""

    def expression(self, text: str) -> str:
        """Rename the variables in a text, if it is an expression."""
        if not text.startswith("{%"):
            return text
        return _WORD.sub(self._word, text)

    def _word(self, match: re.Match[str]) -> str:
        name = match["name"]
        return f"${self.variable}{name}" if name in self.variables else match[0]

    def made(self, machine: Mapping[str, Any]) -> list[str]:
        """Return the names of a renamed machine's states, and of its variables."""
        states = [name for each in _machines(machine) for name in each["States"]]
        return [*states, *(f"{self.variable}{name}" for name in self.variables)]


def variables(machine: Mapping[str, Any]) -> frozenset[str]:
    """Return the variables that any state of a machine assigns."""
    states = [state for each in _machines(machine) for state in each["States"].values()]
    ways = [way for state in states for way in _ways(state)]
    return frozenset(name for part in (*states, *ways) for name in part.get("Assign", {}))


def renamed(value: Any, names: Names) -> Any:
    """Return a part of a definition with other names."""
    if isinstance(value, str):
        return names.expression(value)
    if isinstance(value, list):
        return [renamed(each, names) for each in value]
    if not isinstance(value, Mapping):
        return value
    if "StartAt" in value and "States" in value:
        return _machine(value, names)
    return {key: renamed(each, names) for key, each in value.items()}


def _machine(machine: Mapping[str, Any], names: Names) -> dict[str, Any]:
    rest = {key: value for key, value in machine.items() if key not in ("StartAt", "States")}
    return {
        **renamed(rest, names),
        "StartAt": names.state + machine["StartAt"],
        "States": {
            names.state + name: _state(state, names) for name, state in machine["States"].items()
        },
    }


def _state(state: Mapping[str, Any], names: Names) -> dict[str, Any]:
    made = _step(state, names)
    for key in ("Choices", "Catch"):
        if key in state:
            made[key] = [_step(way, names) for way in state[key]]
    return made


def _step(part: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Rename what a state, or a way out of it, names itself: followers, and what it assigns."""
    made = {key: renamed(value, names) for key, value in part.items()}
    for key in _FOLLOWING:
        if key in part:
            made[key] = names.state + part[key]
    if "Assign" in part:
        assigned = part["Assign"].items()
        made["Assign"] = {names.variable + key: renamed(value, names) for key, value in assigned}
    return made


def _ways(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [way for key in ("Choices", "Catch") for way in state.get(key, ())]


def _machines(machine: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield machine
    for state in machine["States"].values():
        for inner in (*state.get("Branches", ()), state.get("ItemProcessor")):
            if inner is not None:
                yield from _machines(inner)
