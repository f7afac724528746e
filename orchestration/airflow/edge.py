"""Effects answered on an Airflow worker."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from orchestration.airflow.clients import Clients
from orchestration.airflow.journal import Journal
from orchestration.execution.driving import Suspended, driven
from orchestration.execution.effects import (
    Acquiring,
    Begun,
    Broke,
    Deadline,
    Effect,
    Failed,
    Finished,
    Follow,
    Note,
    Now,
    Pause,
    Recall,
    Rest,
    Resume,
    Send,
    Started,
    Stop,
    Together,
    Verdict,
    Waited,
    Watch,
)
from orchestration.execution.reading.job_logs import last_lines
from orchestration.execution.timing import allowed, elapsed, pause, pause_length
from orchestration.execution.verdicts import followed, stopped
from orchestration.graph import JOB_FAILED

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.sdk.types import Logger

_LONGEST_REST_S = 30.0
"""Seconds of AWS that a worker sleeps through; longer pauses are the triggerer's."""


_NAP_S = 0.2
"""A signal does not end a sleep: how soon it is seen that the task is being ended."""


class GoesOnElsewhere(Exception):
    """The task is being ended, and another attempt follows what it has started."""


@dataclass(slots=True)
class WorkerEdge:
    """The side of a task that answers effects; several threads use it if steps run side by side."""

    clients: Clients
    journal: Journal
    log: Logger
    deferrable: bool
    started: Callable[[Started], None]
    another_follows: Callable[[], bool]
    """Asked once, where the task is being ended."""
    begun: float = 0.0
    """The moment at which the run was last started, in seconds since 1970."""
    killed: bool = False
    newer: Callable[[], str | None] | None = None
    """Asks for the newer run that takes the place of the task's own."""
    superseded_by: str | None = None
    _left: bool | None = None
    _deciding: threading.Lock = field(default_factory=threading.Lock)
    _stopped: set[str] = field(default_factory=set)

    def aborted(self) -> bool:
        """Return whether the task was marked or cleared, or ends for good.

        Raises :class:`GoesOnElsewhere` where nothing is to be stopped.
        """
        if not self.killed:
            return False
        with self._deciding:
            if self._left is None:
                self._left = self.another_follows()
        if self._left:
            raise GoesOnElsewhere
        return True

    def kill(self) -> None:
        """End it from outside; called from a signal handler, in the middle of anything."""
        self.killed = True

    def look(self) -> None:
        """End the task, and stop what it has started, where a newer run has begun."""
        if self.newer is None or self.killed:
            return
        try:
            newer = self.newer()
        except Exception:
            # It only ends what runs; who pays next asks for itself. The next poll asks again.
            self.log.warning("whether a newer run has begun can't be told")
            return
        # Another thread may have seen one that has ended since: what it found stands.
        if newer is not None:
            self.superseded_by = newer
            self._left = False
            self.killed = True

    def answer(self, effect: Effect) -> Any:  # noqa: C901 - one arm for each effect
        """Answer an effect."""
        match effect:
            case Send(request):
                return self.clients.send(request)
            case Pause():
                self._sleep(pause_length(effect, time.time()))
            case Deadline():
                return time.time() + allowed(effect, begun=self.begun)
            case Now():
                return time.time()
            case Recall(path):
                return self.journal.recalled(path)
            case Resume(path):
                return self.journal.resumed(path)
            case Follow(watch, ending):
                return self._follow(watch, ending=ending)
            case Stop(watch):
                self._stop(watch)
            case Rest():
                self._rest(effect)
            case Started():
                self.started(effect)
            case Finished(path, outputs, _):
                self.journal.finish(path, outputs)
            case Broke():
                self.journal.broke(effect)
            case Note(text):
                self.log.info("%s", text)
            case Acquiring():
                # A retry sends the same request, and its teardown releases what that tells.
                return False
            case Waited(_, since):
                # Airflow wipes what the attempt before this one left, but its first job is there.
                return elapsed(since, time.time())
            case Begun(path):
                self.journal.begin(path)
            case Together():
                pass
            case _:
                assert_never(effect)
        return None

    def _follow(self, watch: Watch, *, ending: bool) -> Verdict:
        verdict = self.journal.verdicts.pop(watch.path, None)
        if verdict is not None:
            self.journal.watches.pop(watch.path, None)
            self._told(watch, verdict)
            return verdict
        # A task that is being ended comes back from no triggerer.
        if self.deferrable and not ending:
            raise Suspended([watch])
        verdict = driven(followed(watch), self, aborting=ending)
        self._told(watch, verdict)
        return verdict

    def _told(self, watch: Watch, verdict: Verdict) -> None:
        """Show the last lines of a job's own log where it failed."""
        if isinstance(verdict, Failed) and verdict.error == JOB_FAILED:
            for line in last_lines(watch.poll, self.clients.send):
                self.log.info("%s", line)

    def _stop(self, watch: Watch) -> None:
        # By the request, not by the path: a step may have had several jobs.
        key = repr(watch.stop)
        if key not in self._stopped:
            self._stopped.add(key)
            driven(stopped(watch), self, aborting=True)

    def _rest(self, rest: Rest) -> None:
        path, journal = rest.path, self.journal
        until = journal.rests.get(path, time.time() + pause(rest.seconds))
        is_long = rest.seconds > _LONGEST_REST_S or path in journal.rests
        if self.deferrable and is_long and time.time() < until:
            if rest.place is not None:
                journal.places[path] = rest.place
            raise Suspended([], [(path, until)])
        self._sleep(until - time.time())
        if rest.place is not None:
            journal.rested(path)

    def _sleep(self, seconds: float) -> None:
        """Let time pass, and no more than a moment once the task is being ended."""
        killed = self.killed
        self.look()
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self.killed == killed:
            time.sleep(min(left, _NAP_S))
