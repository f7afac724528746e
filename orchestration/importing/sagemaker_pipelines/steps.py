"""The steps of a definition, out of the branches that they stand in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestration.errors import PipelineError, Problem

_PARAMETER: Final = 40
_STAGE: Final = 30
"""The most characters of names."""
_BOTH: Final = 44
"""The most characters of a pipeline's and a stage's name together."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One side of a condition step."""

    name: str
    """Of the condition step."""
    conditions: Sequence[Any]
    """Of which all must hold, as the definition has them."""
    holds: bool
    """``IfSteps``; else ``ElseSteps``."""
    after: tuple[str, ...]
    """Names of the steps that the condition step waits for."""
    path: str
    """The place of the conditions."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step that does something."""

    name: str
    stage: str
    """The name of the stage that it becomes."""
    kind: str
    """``Training``."""
    path: str
    """Its place in the definition: ``Steps[2].Arguments.IfSteps[0]``."""
    given: Mapping[str, Any]
    """All that the definition says of it."""
    branches: tuple[Branch, ...] = ()
    """The conditions around it, the outermost first."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The request of the step."""
        arguments: Mapping[str, Any] = self.given.get("Arguments", {})
        return arguments

    @property
    def after(self) -> tuple[str, ...]:
        """Names of the steps that it waits for, and the conditions around it."""
        around = (name for branch in self.branches for name in branch.after)
        return tuple(dict.fromkeys((*around, *self.given.get("DependsOn", ()))))


def snake(text: str, longest: int = _PARAMETER) -> str:
    """Return our name for one of the definition's: ``AbaloneTrain`` is ``abalone_train``."""
    words = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3_\2", text)
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    name = name if name[:1].isalpha() else f"n_{name}"
    return name[:longest].strip("_")


def renamed(names: Sequence[str], longest: int = _PARAMETER) -> dict[str, str]:
    """Return our name for each of the definition's, no two of them equal."""
    given: dict[str, str] = {}
    for theirs in names:
        name, number = snake(theirs, longest), 2
        while name in given.values():
            name = f"{snake(theirs, longest - 3)}_{number}"
            number += 1
        given[theirs] = name
    return given


def steps_of(definition: Mapping[str, Any], pipeline: str) -> list[Step]:
    """Return the steps of a definition, in its order, as stages of a pipeline of that name.

    Raises :class:`~orchestration.errors.PipelineError` with everything that is no step.
    """
    found = list(_found(definition["Steps"], "Steps", ()))
    problems = [each for each in found if isinstance(each, Problem)]
    raw = [each for each in found if not isinstance(each, Problem)]
    names = [given["Name"] for given, _, _ in raw]
    problems += [
        Problem(path, f"another step is called {given['Name']!r}, too")
        for number, (given, path, _) in enumerate(raw)
        if given["Name"] in names[:number]
    ]
    if problems:
        raise PipelineError(problems)
    stages = renamed(names, min(_STAGE, _BOTH - len(pipeline)))
    return [
        Step(given["Name"], stages[given["Name"]], given["Type"], path, given, branches)
        for given, path, branches in raw
    ]


_Found = tuple[Mapping[str, Any], str, tuple[Branch, ...]]


def _found(steps: object, path: str, branches: tuple[Branch, ...]) -> Iterator[_Found | Problem]:
    if not isinstance(steps, list):
        yield Problem(path, f"expected a list of steps, got {steps!r:.60}")
        return
    for number, given in enumerate(steps):
        where = f"{path}[{number}]"
        if not isinstance(given, Mapping) or not {"Name", "Type"} <= given.keys():
            yield Problem(where, f"expected a step with Name and Type, got {given!r:.60}")
        elif given["Type"] == "Condition":
            yield from _inside(given, where, branches)
        else:
            yield given, where, branches


def _inside(
    given: Mapping[str, Any], where: str, branches: tuple[Branch, ...]
) -> Iterator[_Found | Problem]:
    arguments = given.get("Arguments", {})
    asked = arguments.get("Conditions", [])
    after, place = tuple(given.get("DependsOn", ())), f"{where}.Arguments.Conditions"
    for key, holds in (("IfSteps", True), ("ElseSteps", False)):
        side = Branch(given["Name"], asked, holds, after, place)
        yield from _found(arguments.get(key, []), f"{where}.Arguments.{key}", (*branches, side))
