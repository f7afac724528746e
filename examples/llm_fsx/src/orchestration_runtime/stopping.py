# Copied from orchestration.runtime 0.1.0: change it there, not here.
"""Being told to stop.

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
# What torchrun grants its processes after it was told to stop (--shutdown-timeout).
_TORCHRUN_GRACE_S = 30.0


def default_grace_s(environ: Mapping[str, str] | None = None) -> float:
    """Seconds from SIGTERM to SIGKILL: 120, but 30 below torchrun, which kills by itself.

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
    """Whether this process was told to stop; true in a condition once it was."""

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
        """Seconds until the process is killed; infinite before the signal, never less than 0."""
        if self.signal_number is None:
            return float("inf")
        return max(0.0, self._received_at + self.grace_s - time.monotonic())

    def agreed(self, any_rank: Callable[[bool], bool]) -> bool:
        """Whether any rank was told to stop: the same answer on all, which leave the loop together.

        Signals don't reach all ranks in the same step, and one that leaves alone lets the others
        wait for it. `any_rank` is an all-reduce (maximum), called by every rank each time.
        """
        self._agreed = any_rank(bool(self) or self._agreed)
        return self._agreed

    def complete(self) -> None:
        """Say that training is complete, so that a stop from now on, or before, cut off nothing."""
        self.is_complete = True

    def _receive(self, number: int) -> None:
        if self.signal_number is None:
            self._received_at = time.monotonic()
            self.signal_number = number

    def _interrupted_by(self) -> int | None:
        if self.is_complete:
            return None
        # A rank that stops because another one was told to was interrupted just as well.
        return self.signal_number or (signal.SIGTERM if self._agreed else None)


@contextlib.contextmanager
def graceful_stop(
    grace_s: float | None = None, *, signals: Sequence[int] = (signal.SIGTERM,)
) -> Iterator[StopSignal]:
    """Note a signal to stop instead of dying of it, and leave the block when it suits.

    A handler that was there before is called too, and is back after the block. An interrupted run
    never ends with status 0: the block ends by raising Stopped (status 143 for SIGTERM), also
    where the script exited with 0, unless `complete()` was called. Exceptions stay what they are.
    For the main thread of a process; raises RuntimeError elsewhere. `grace_s`: seconds until
    SIGKILL, `default_grace_s()` by default.

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
        raise RuntimeError("graceful_stop belongs in the main thread: signals arrive only there")
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
            # None: a handler that was not installed from Python, which can't be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    interrupted_by = stop._interrupted_by()
    if interrupted_by is not None:
        raise Stopped(interrupted_by)
