"""An alias of a state machine as a value, desired or current."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

ALIAS: Final = "orchestration:alias"
"""The tag of a state machine with the name of the alias that starts its pipeline's runs."""
_MADE: Final = "Made by orchestration"
"""The beginning of the description of an alias that a deployment made; it can't be tagged."""
_TRIAL: Final = re.compile(r"for (\d+) minutes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """The part of the runs that a new version gets at first, beside the version before."""

    percent: int
    minutes: int
    """The least time before it gets all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A version that an alias leads to, and how many of 100 runs get it."""

    weight: int
    version: int | None = None
    """``None``: the state machine as the deployment leaves it, which becomes a version."""
    newest: bool = False
    """True if it is what the state machine itself is now."""
    definition: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The definition of a version that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """An alias of a state machine."""

    name: str
    machine_arn: str
    routes: tuple[Route, ...] = (Route(weight=100),)
    """Empty: it is gone, and only the tag of its state machine remains."""
    description: str = f"{_MADE}: runs of the pipeline start here."
    canary: Canary | None = field(default=None, compare=False)
    """Asked for; of an alias that was read, its description tells the minutes."""
    updated: datetime | None = field(default=None, compare=False)

    @classmethod
    def wanted(cls, name: str, machine_arn: str, canary: Canary | None) -> Alias:
        """Return the alias that a deployment makes."""
        made = cls(name=name, machine_arn=machine_arn, canary=canary)
        if canary is None:
            return made
        trial = f" New versions get {canary.percent}% of them for {canary.minutes} minutes first."
        return replace(made, description=made.description + trial)

    @property
    def minutes(self) -> int | None:
        """The least time of a trial, if the deployment that made the alias asked for one."""
        match = _TRIAL.search(self.description) if self.made else None
        return None if match is None else int(match[1])

    @property
    def arn(self) -> str:
        """The ARN that starts runs."""
        return f"{self.machine_arn}:{self.name}"

    @property
    def made(self) -> bool:
        """True if a deployment made it."""
        return self.description.startswith(_MADE)

    def aspects(self) -> dict[str, Any]:
        """Return its parts for comparing and showing."""
        weights = {_label(route): route.weight for route in self.routes}
        return {"weights": weights, "description": self.description}


def _label(route: Route) -> str:
    return "the new version" if route.version is None else f"version {route.version}"


def starts(arn: str, machine_arn: str) -> bool:
    """Return whether an ARN is that of a state machine, or of an alias or a version of it."""
    return arn == machine_arn or arn.startswith(f"{machine_arn}:")
