"""The progress of a run, as the service that drives it tells it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from orchestration.direct.progress import StepRun
from orchestration.direct.stages import RunState
from orchestration.expressions import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a run and of the steps that have begun."""

    state: RunState
    started: datetime.datetime | None
    ended: datetime.datetime | None
    begun: datetime.datetime | None = None
    """No job of the run is older: the start of its first attempt, or a time before it."""
    error: str = ""
    cause: str = ""
    steps: tuple[StepRun, ...] = ()
    to_come: frozenset[str] = frozenset()
    """Steps that have not begun, and still will; where the service tells of them."""
    parameters: Mapping[str, Json] = field(default_factory=dict)
    """The values that it was started with."""
    logs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The logs of failed steps, where the service keeps any; of the first few, if many failed."""
    outputs: Mapping[str, Json] | None = None
    """The outputs by stage, once the run has succeeded."""
    transitions: int | None = None
    """States entered and tasks tried again, which Step Functions bills; only there."""


class Watched(Protocol):
    """A run whose progress can be asked for."""

    name: str
    """The name that commands take: ``digits:0f5b7f0e-…``, or ``digits/friday`` on Airflow."""
    token: str
    """The run's identity in the tags of what it creates."""

    def look(self) -> Progress:
        """Ask how it does."""
