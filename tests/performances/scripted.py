"""An edge without I/O: a script of responses, and a clock that moves when something waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

from orchestration.execution.driving import driven
from orchestration.execution.effects import (
    Acquiring,
    Begun,
    Broke,
    Deadline,
    Effect,
    Finished,
    Follow,
    Note,
    Now,
    Outputs,
    Pause,
    Performance,
    Recall,
    Request,
    Rest,
    Resume,
    Send,
    ServiceError,
    Started,
    Stop,
    Together,
    Waited,
    Watch,
)
from orchestration.execution.timing import elapsed
from orchestration.execution.verdicts import followed, stopped
from orchestration.expressions import Json

Answer: TypeAlias = "Json | ServiceError"
Script = Callable[[Request], Answer]


@dataclass
class ScriptedEdge:
    """Answers requests by a script; everything that was asked is kept."""

    script: Script
    now: float = 0.0
    kept: dict[str, Outputs] = field(default_factory=dict)
    decided: dict[str, Outputs | ServiceError] = field(default_factory=dict)
    """What another performance of the run has kept of a step; or why nothing can be kept."""
    pending: dict[str, Watch | Rest] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)
    """Seconds that other processes have waited at a step."""
    acquiring: set[str] = field(default_factory=set)
    """The steps that were about to acquire something."""
    sent: list[Request] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    broke: dict[str, tuple[str, str]] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    abort_at: str | None = None
    """The operation whose response is the last one before the run is ended from outside."""
    aborting: bool = False
    _lock: Any = field(default_factory=threading.RLock)

    @property
    def operations(self) -> list[str]:
        return [request.operation for request in self.sent]

    def aborted(self) -> bool:
        return self.aborting

    def answer(self, effect: Effect) -> Any:
        with self._lock:
            if isinstance(effect, Follow | Stop):
                return self._job(effect)
            return self._plain(effect)

    def _job(self, effect: Follow | Stop) -> Any:
        if isinstance(effect, Stop):
            return driven(stopped(effect.watch), self, aborting=True)
        return driven(followed(effect.watch), self, aborting=effect.ending)

    def _plain(self, effect: Effect) -> Any:  # noqa: C901 - one arm for each effect
        match effect:
            case Send(request):
                self.sent.append(request)
                response = self.script(request)
                self.aborting = self.aborting or request.operation == self.abort_at
                if isinstance(response, ServiceError):
                    raise response
                return response
            case Pause(seconds, _, deadline):
                self.now = min(self.now + seconds, deadline or float("inf"))
            case Rest(_, seconds):
                self.now += seconds
            case Deadline(seconds, _, since):
                return (self.now if since is None else since) + seconds
            case Now():
                return self.now
            case Recall(path):
                return self.kept.get(path)
            case Acquiring(path):
                earlier = path in self.acquiring
                self.acquiring.add(path)
                return earlier
            case Waited(path, since):
                return max(self.waited.get(path, 0.0), elapsed(since, self.now, time_scale=1))
            case Resume(path):
                return self.pending.get(path)
            case Finished(path, outputs, _):
                decided = self.decided.get(path)
                if isinstance(decided, ServiceError):
                    raise decided
                self.kept[path] = outputs
                self.finished.append(path)
                return decided
            case Broke(path, error, cause):
                self.broke[path] = (error, cause)
            case Note(text):
                self.notes.append(text)
            case Begun() | Started():
                pass
            case Follow() | Stop() | Together():
                raise AssertionError("answered elsewhere")
            case _:
                assert_never(effect)
        return None


def answers(responses: Mapping[str, Answer | list[Answer]]) -> Script:
    """A script by operation: one answer for all, or a list of which the last one stays."""

    def script(request: Request) -> Answer:
        response = responses[request.operation]
        if isinstance(response, list):
            return response.pop(0) if len(response) > 1 else response[0]
        return response

    return script


def perform(performance: Performance[Any], edge: ScriptedEdge) -> Any:
    """Drive a performance to its end."""
    return driven(performance, edge)
