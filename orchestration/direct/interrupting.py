"""Interrupting a run: Ctrl-C stops the jobs and cleans up, a second one leaves at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

_log = logging.getLogger("orchestration.direct")

# A signal that comes just before the main thread begins to wait does not wake it.
_LOOK_EVERY_S = 0.5


class Interrupted(KeyboardInterrupt):
    """A run was interrupted by its user; the message says what was stopped and what may still run.

    It is a ``KeyboardInterrupt``, so that a program around it ends too, as it does without us.
    """

    def __init__(self, message: str, *, at_once: bool = False) -> None:
        super().__init__(message)
        self.at_once = at_once
        """Whether it was left at the second interruption; threads may hang in a request still."""


class Left(BaseException):
    """Nothing more is to be sent: the process is being left at once."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """The interruptions of a run, counted for the threads that read them."""

    asked: threading.Event = field(default_factory=threading.Event)
    """Jobs are stopped and clean-ups run."""
    left: threading.Event = field(default_factory=threading.Event)
    """Nothing more is sent."""

    def pause(self, seconds: float) -> None:
        """Wait; less long where the first interruption comes meanwhile, or the second one."""
        if self.asked.is_set():
            self.left.wait(seconds)
        else:
            self.asked.wait(seconds)

    def check(self) -> None:
        """Raise :class:`Left` after the second interruption."""
        if self.left.is_set():
            raise Left


def attended(work: Callable[[], T], interruption: Interruption, left: Callable[[], str]) -> T:
    """Do the work in another thread, while this one takes interruptions.

    Python delivers a Ctrl-C to the main thread as an exception in the middle of whatever it does,
    where a job that was just created would be forgotten. ``left`` says what a second one leaves.
    """
    future: Future[T] = Future()
    taken = threading.Event()
    args = (future, work, taken, interruption)
    thread = threading.Thread(target=_settle, args=args, daemon=True)
    try:
        thread.start()
        while True:
            try:
                taken.set()
                while not future.done():
                    wait((future,), timeout=_LOOK_EVERY_S)
                return future.result()
            except KeyboardInterrupt:
                if interruption.asked.is_set():
                    interruption.left.set()
                    raise Interrupted(left(), at_once=True) from None
                interruption.asked.set()
                _log.warning(
                    "interrupted: stopping what runs and cleaning up; interrupt again to leave "
                    "at once"
                )
    finally:
        if not future.done():
            interruption.left.set()
            taken.set()


def _settle(
    future: Future[T], work: Callable[[], T], taken: threading.Event, interruption: Interruption
) -> None:
    # An interruption while the thread starts ends the program, and must find nothing begun.
    taken.wait()
    try:
        interruption.check()
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
