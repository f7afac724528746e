"""An alias of a state machine as a value, desired or current."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from orchestration.phrases import counted

ALIAS: Final = "orchestration:alias"
"""The tag of a state machine with the name of the alias that starts its pipeline's runs."""
_MADE: Final = "Made by orchestration"
"""The beginning of the description of an alias that a deployment made; it can't be tagged."""
_BEFORE: Final = re.compile(r" Versions before: ([\d, ]+)\.")
_MOST_BEFORE: Final = 8
"""Versions that fit into a description, which has 256 characters at the most."""
_TRIAL: Final = re.compile(
    r" New versions get (\d+)%( more)? of them (?:for|every) (\d+) minutes?\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The part of the runs that a new version gets at first, beside the version before."""

    percent: int
    minutes: int
    """The least time before it gets all of them, or more."""
    is_linear: bool = False
    """True if it gets as many more each time."""

    @property
    def text(self) -> str:
        """The words of an alias's description."""
        more, when = (" more", "every") if self.is_linear else ("", "for")
        first = "" if self.is_linear else " first"
        time = counted(self.minutes, "minute")
        return f" New versions get {self.percent}%{more} of them {when} {time}{first}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A version that an alias leads to, and how many of 100 runs get it."""

    weight: int
    version: int | None = None
    """``None``: the state machine as the deployment leaves it, which becomes a version."""
    newest: bool = False
    """True if it does what the state machine itself does now."""
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
    trial: Trial | None = field(default=None, compare=False)
    """Asked for; of an alias that was read, as its description tells."""
    updated: datetime | None = field(default=None, compare=False)
    before: tuple[int, ...] = field(default=(), compare=False)
    """The versions that it led to before, the last one first: the way back."""

    @classmethod
    def wanted(cls, name: str, machine_arn: str, trial: Trial | None) -> Alias:
        """Return the alias that a deployment makes."""
        made = cls(name=name, machine_arn=machine_arn, trial=trial)
        return made if trial is None else replace(made, description=made.description + trial.text)

    @classmethod
    def read(cls, description: str, **fields: Any) -> Alias:
        """Return an alias whose description may tell what it led to before."""
        match = _BEFORE.search(description)
        before = () if match is None else tuple(map(int, match[1].split(", ")))
        own = _BEFORE.sub("", description)
        told = _TRIAL.search(own) if own.startswith(_MADE) else None
        trial = None
        if told is not None:
            percent, minutes = int(told[1]), int(told[3])
            trial = Trial(percent=percent, minutes=minutes, is_linear=told[2] is not None)
        return cls(description=own, before=before, trial=trial, **fields)

    @property
    def text(self) -> str:
        """The description, with what it led to before."""
        if not self.before:
            return self.description
        listed = ", ".join(map(str, self.before))
        return f"{self.description} Versions before: {listed}."

    def moved(self, routes: tuple[Route, ...]) -> Alias:
        """Return it as it leads elsewhere; a trial beside a version has not left that yet."""
        last = self.routes[0].version
        if len(routes) > 1 or last is None or routes[0].version == last:
            return replace(self, routes=routes)
        older = (version for version in self.before if version != last)
        return replace(self, routes=routes, before=(last, *older)[:_MOST_BEFORE])

    def back(self, version: int) -> Alias:
        """Return it as it leads to an earlier version again, and still knows the way from there."""
        routes = (Route(weight=100, version=version),)
        if version in self.before:
            rest = self.before[self.before.index(version) + 1 :]
            return replace(self, routes=routes, before=rest)
        if version >= (self.routes[0].version or 0):
            return self.moved(routes)
        return replace(self, routes=routes, before=())

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
