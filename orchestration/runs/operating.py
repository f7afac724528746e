"""Runs of a pipeline where it is deployed: listed, started, stopped, started again and watched."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orchestration.expressions import Json
from orchestration.runs.progress import Watched

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run, as a list shows it."""

    id: str
    """The ARN of an execution, or ``DAG/RUN``."""
    name: str
    """The name that commands take: ``digits:0f5b7f0e-…``, or ``digits/friday`` on Airflow."""
    status: str
    """As the service calls it: ``SUCCEEDED``, or ``success`` on Airflow. ``SKIPPED``, ``skipped``
    on Airflow: it has ended for another one (``overlap``)."""
    started: datetime.datetime | None
    """``None`` while it is queued."""
    ended: datetime.datetime | None
    error: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A run that was started, or one of the same name that was found running."""

    id: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A run that was stopped."""

    id: str
    was_running: bool
    """False if it had ended before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A failed run that was started again."""

    id: str
    run: str
    """The name of the run."""
    attempt: int | None = None
    """The number of the attempt, where each is an execution of its own: 2 after a failure."""


class Runs(Protocol):
    """The runs of one pipeline; each method raises :class:`~orchestration.errors.StartError`."""

    id_key: str
    """The name of ``id`` in JSON."""

    def listed(self, most: int) -> Sequence[Listed]:
        """List them, the newest first."""

    def start(self, pipeline: Pipeline, /, values: Mapping[str, Json], run: str | None) -> Started:
        """Start one with these values of parameters."""

    def stop(self, run: str) -> Stopped:
        """Stop one, and what it has started."""

    def rerun(self, run: str) -> Again:
        """Start a failed one again; jobs that finished are adopted."""

    def watched(self, pipeline: Pipeline, /, run: str) -> Watched:
        """Return one to be looked at."""
