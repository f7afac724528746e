"""Steps of a definition, out of the branches that they stand in, and their names here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ORDER: Final = "Order"
"""The kind of a step that does nothing, and stands in an order."""
_PARAMETER: Final = 40
_PIPELINE: Final = 32
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
    implied: bool = False
    """True if conditions hold only where the steps whose results they read have run."""


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
    field: str = "Arguments"
    """The name of its request in the definition."""
    keeps_names: bool = False
    """True if the names in requests for models and endpoint configurations are meant."""
    parts: tuple[Step, ...] = ()
    """Steps whose requests its stage makes, too: its model, its configuration."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The request of the step."""
        arguments: Mapping[str, Any] = self.given.get("Arguments", {})
        return arguments

    @property
    def request_path(self) -> str:
        """The place of the request in the definition."""
        return f"{self.path}.{self.field}"

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


def stage_names(names: Sequence[str], pipeline: str) -> dict[str, str]:
    """Return the names of stages by those of steps, in a pipeline of that name."""
    return renamed(names, min(_STAGE, _BOTH - len(pipeline)))


def pipeline_name(text: str) -> str:
    """Return a pipeline's name made of a definition's, or of a file's."""
    return snake(text).replace("_", "-").removeprefix("n-")[:_PIPELINE].strip("-") or "imported"
