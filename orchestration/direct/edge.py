"""The edge that acts for the direct driver: blocking, in as many threads as the run needs."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import Any, assert_never

from orchestration.direct.clients import Clients
from orchestration.direct.interrupting import Interruption
from orchestration.direct.journal import Journal
from orchestration.direct.progress import Board
from orchestration.execution import timing
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
    Pause,
    Recall,
    Rest,
    Resume,
    Send,
    ServiceError,
    Started,
    Stop,
    Together,
    Verdict,
    Waited,
    Watch,
)
from orchestration.execution.verdicts import followed, stopped

_log = logging.getLogger("orchestration.direct")


@dataclass(slots=True)
class DirectEdge:
    """Answers the effects of one run."""

    clients: Clients
    journal: Journal
    board: Board
    interruption: Interruption
    time_scale: float
    """Real seconds per second of AWS."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _watched: dict[str, Watch] = field(default_factory=dict)
    """The jobs that are being waited for, by the path of their step."""
    stopped: list[str] = field(default_factory=list)
    """The jobs that AWS was asked to stop."""

    def aborted(self) -> bool:
        """Return whether the run was interrupted."""
        return self.interruption.asked.is_set()

    def running(self) -> list[str]:
        """Return the jobs that may still run; what cannot be stopped is no job."""
        with self._lock:
            return [w.subject for w in self._watched.values() if w.stop is not None]

    def answer(self, effect: Effect) -> Any:  # noqa: C901 - one arm for each effect
        """Answer an effect, however long that takes."""
        self.interruption.check()
        match effect:
            case Send(request):
                return self.clients.send(request)
            case Pause():
                length = timing.pause_length(effect, time.monotonic(), time_scale=self.time_scale)
                self.interruption.pause(length)
            case Rest(path, seconds, place):
                if place is not None:
                    self._waiting(path, place.waited - seconds)
                self.interruption.pause(timing.pause(seconds, time_scale=self.time_scale))
            case Waited(path, since):
                first = timing.elapsed(since, time.time(), time_scale=self.time_scale)
                return max(first, self._waited(path))
            case Deadline():
                return time.monotonic() + timing.allowed(effect, time_scale=self.time_scale)
            case Now():
                return time.time()
            case Recall(path):
                return self.apart(self.journal.recalled(path))
            case Acquiring(path):
                return self.apart(self.journal.acquires(path, anew=not self.aborted()))
            case Resume() | Started():
                pass
            case Follow():
                return self._followed(effect)
            case Stop(watch):
                self._stopped(watch)
            case Begun() | Broke():
                self.board.change(effect)
            case Finished():
                return self._finished(effect)
            case Note(text):
                _log.info("%s", text)
            case Together():
                raise TypeError("the driver itself performs side by side")
            case _:
                assert_never(effect)
        return None

    def apart(self, performance: Any) -> Any:
        """Perform what goes on after an interruption too: the journal, and stopping."""
        return driven(performance, self, aborting=True)

    def _followed(self, follow: Follow) -> Verdict:
        with self._lock:
            self._watched[follow.watch.path] = follow.watch
        verdict = driven(followed(follow.watch), self, aborting=follow.ending)
        self._forget(follow.watch)
        return verdict

    def _waiting(self, path: str, waited: float) -> None:
        """Keep since when a step waits for capacity, for the process that may go on with it."""
        since = time.time() - timing.pause(waited, time_scale=self.time_scale)
        try:
            self.apart(self.journal.waits(path, since))
        except ServiceError as error:
            _log.warning("it could not be kept since when %s waits: %s", path, error)

    def _waited(self, path: str) -> float:
        since = self.apart(self.journal.waits_since(path))
        if since is None or self.time_scale <= 0:
            return 0.0
        return max(0.0, (time.time() - float(since)) / self.time_scale)

    def _stopped(self, watch: Watch) -> None:
        with self._lock:
            self._watched[watch.path] = watch
        if self.apart(stopped(watch)):
            self._forget(watch)
            with self._lock:
                self.stopped.append(watch.subject)

    def _forget(self, watch: Watch) -> None:
        with self._lock:
            self._watched.pop(watch.path, None)

    def _finished(self, effect: Finished) -> Any:
        kept = None
        if effect.keep:
            kept = self.apart(self.journal.kept(effect.path, effect.outputs))
        self.board.change(effect)
        return kept
