"""Graceful stops on SIGTERM.

SageMaker sends SIGTERM and, 120 seconds later, SIGKILL: for StopTrainingJob, at the end of
MaxRuntimeInSeconds, and when a spot instance is taken back.
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StopTrainingJob.html
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from types import FrameType
from typing import Any, Callable, Iterator, Mapping, Sequence

from .errors import Stopped

_SAGEMAKER_GRACE_S = 120.0
# torchrun's time limit for its processes after it received SIGTERM (--shutdown-timeout).
_TORCHRUN_GRACE_S = 30.0


def default_grace_s(environ: Mapping[str, str] | None = None) -> float:
    """Return the seconds from SIGTERM to SIGKILL: 120, or torchrun's own 30 below it.

    TORCH_ELASTIC_SHUTDOWN_TIMEOUT, torchrun's own variable (2.8 and later), raises its 30 seconds.

    >>> default_grace_s({})
    120.0
    >>> default_grace_s({"TORCHELASTIC_RUN_ID": "none"})
    30.0
    """
    environ = os.environ if environ is None else environ
    if not environ.get("TORCHELASTIC_RUN_ID"):
        return _SAGEMAKER_GRACE_S
    try:
        granted = float(environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT") or _TORCHRUN_GRACE_S)
    except ValueError:
        granted = _TORCHRUN_GRACE_S
    return min(_SAGEMAKER_GRACE_S, granted)


class StopSignal:
    """The stop signal of this process; true in a condition once it was received."""

    def __init__(self, grace_s: float) -> None:
        self.grace_s = grace_s
        self.signal_number: int | None = None
        """The signal received first."""
        self.is_complete = False
        self._received_at = 0.0
        self._agreed = False

    def __bool__(self) -> bool:
        return self.signal_number is not None

    @property
    def remaining_s(self) -> float:
        """The seconds until the process is killed; infinite before the signal, never negative."""
        if self.signal_number is None:
            return float("inf")
        return max(0.0, self._received_at + self.grace_s - time.monotonic())

    def agreed(self, any_rank: Callable[[bool], bool]) -> bool:
        """Return whether any rank received the signal: the same answer on all ranks.

        Signals don't reach all ranks in the same step, and a rank that leaves the loop alone would
        keep the others waiting. `any_rank` is an all-reduce (maximum), called by every rank.
        """
        self._agreed = any_rank(bool(self) or self._agreed)
        return self._agreed

    def complete(self) -> None:
        """Declare training complete: a stop, earlier or later, then interrupts nothing."""
        self.is_complete = True

    def _receive(self, number: int) -> None:
        if self.signal_number is None:
            self._received_at = time.monotonic()
            self.signal_number = number

    def _interrupted_by(self) -> int | None:
        if self.is_complete:
            return None
        # A rank that stops because another received the signal was interrupted, too.
        return self.signal_number or (signal.SIGTERM if self._agreed else None)


@contextlib.contextmanager
def graceful_stop(
    grace_s: float | None = None, *, signals: Sequence[int] = (signal.SIGTERM,)
) -> Iterator[StopSignal]:
    """Record a stop signal instead of dying from it, so that the block can end in its own time.

    An earlier handler is called too, and is restored after the block. An interrupted run never ends
    with status 0: unless `complete()` was called, the block raises Stopped (status 143 for
    SIGTERM), even if the script exited with 0. Other exceptions propagate unchanged. Works in the
    main thread only; raises RuntimeError elsewhere. `grace_s`: seconds until SIGKILL,
    `default_grace_s()` by default.

    >>> with graceful_stop() as stop:
    ...     for step in range(3):
    ...         if stop:
    ...             break
    ...     else:
    ...         stop.complete()
    >>> stop.remaining_s
    inf
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("graceful_stop must run in the main thread: signals arrive only there")
    stop = StopSignal(default_grace_s() if grace_s is None else grace_s)
    earlier: dict[int, Any] = {}

    def receive(number: int, frame: FrameType | None) -> None:
        stop._receive(number)
        chained = earlier.get(number)
        if callable(chained):
            chained(number, frame)

    try:
        for number in signals:
            earlier[number] = signal.getsignal(number)
            signal.signal(number, receive)
        yield stop
    except SystemExit as error:
        interrupted_by = stop._interrupted_by()
        if interrupted_by is None or error.code not in (None, 0):
            raise
        raise Stopped(interrupted_by) from error
    finally:
        for number, handler in earlier.items():
            # None: a handler that was not installed from Python, which cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    interrupted_by = stop._interrupted_by()
    if interrupted_by is not None:
        raise Stopped(interrupted_by)
