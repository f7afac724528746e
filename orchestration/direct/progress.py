"""The progress of a run: the state of each step, its repetitions in a loop taken together."""

from __future__ import annotations

import datetime
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestration.execution.effects import Begun, Broke, Finished

StepState = Literal["running", "succeeded", "failed", "skipped"]

_log = logging.getLogger("orchestration.direct")


@dataclass(frozen=True, slots=True)
class Progress:
    """A change of a step while a run goes on."""

    step: str
    state: StepState
    elapsed_s: float
    """Real seconds since the run began."""

    @property
    def stage(self) -> str:
        """The stage that the step belongs to."""
        return self.step.partition(".")[0]


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class StepRun:
    """The state and times of a step, its repetitions in a loop taken together."""

    step: str
    state: StepState
    started: datetime.datetime | None
    ended: datetime.datetime | None

    @property
    def duration_s(self) -> float | None:
        """Real seconds from start to end."""
        if self.started is None or self.ended is None:
            return None
        return (self.ended - self.started).total_seconds()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        started, ended = _text(self.started), _text(self.ended)
        return {"step": self.step, "state": self.state, "started": started, "ended": ended}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StepRun:
        """Return what ``to_json`` wrote down."""
        return cls(data["step"], data["state"], _time(data["started"]), _time(data["ended"]))


@dataclass(slots=True)
class _Tally:
    """The repetitions of one step."""

    started: datetime.datetime
    running: set[str] = field(default_factory=set)
    failed: bool = False
    ended: datetime.datetime | None = None

    @property
    def state(self) -> StepState:
        if self.running:
            return "running"
        return "failed" if self.failed else "succeeded"


class Board:
    """The states of a run's steps, which report from several threads."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._tallies: dict[str, _Tally] = {}

    def change(self, effect: Begun | Finished | Broke) -> None:
        """Take in that a step has begun or ended, and tell it."""
        step = effect.path.rpartition("/")[2]
        with self._lock:
            before = self._tallies.get(step)
            tally = before or self._tallies.setdefault(step, _Tally(_now()))
            old = None if before is None else tally.state
            if isinstance(effect, Begun):
                tally.running.add(effect.path)
            else:
                tally.running.discard(effect.path)
                tally.failed = tally.failed or isinstance(effect, Broke)
                tally.ended = _now()
            if tally.state != old:
                self._tell(Progress(step, tally.state, time.monotonic() - self._began))

    def state(self, step: str) -> StepState | None:
        """Return what a step is at; ``None`` where it has not begun."""
        with self._lock:
            tally = self._tallies.get(step)
            return None if tally is None else tally.state

    def steps(self) -> tuple[StepRun, ...]:
        """Return every step that has begun, in the order of their beginnings."""
        with self._lock:
            return tuple(
                StepRun(step, tally.state, tally.started, tally.ended)
                for step, tally in self._tallies.items()
            )

    def _tell(self, progress: Progress) -> None:
        if self._on_progress is None:
            return
        try:
            self._on_progress(progress)
        except Exception:
            # Jobs run and cost: a display that fails must not leave them to themselves.
            _log.exception("the progress callback failed; it is not called again")
            self._on_progress = None


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _text(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _time(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text)
