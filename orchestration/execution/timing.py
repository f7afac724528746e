"""The lengths of pauses, in real seconds."""

from __future__ import annotations

import datetime
import os
import random
import time

from orchestration.execution.effects import Deadline, Pause

TIME_SCALE = "ORCHESTRATION_TIME_SCALE"
"""Environment variable: real seconds per second of AWS. Only the embedded AWS sets it."""
_jitter = random.SystemRandom()


def scale() -> float:
    """Return the real seconds per second of AWS, read when it is asked for."""
    return float(os.environ.get(TIME_SCALE) or 1)


def pause(seconds: float, *, time_scale: float | None = None) -> float:
    """Return the real seconds of a pause in which nothing has to happen."""
    return max(0.0, seconds * (scale() if time_scale is None else time_scale))


def wait(seconds: float) -> None:
    """Wait until there may be news: of the embedded AWS sooner, as its scale says."""
    time.sleep(pause(seconds))


def allowed(effect: Deadline, *, begun: float = 0.0, time_scale: float | None = None) -> float:
    """Return the real seconds from now until a deadline.

    ``begun``: the moment at which the run was last started, before which nothing counts.
    """
    passed = 0.0 if effect.since is None else time.time() - max(effect.since, begun)
    length = pause if effect.idle else limit
    return length(effect.seconds, time_scale=time_scale) - passed


def pause_length(effect: Pause, now: float, *, time_scale: float | None = None) -> float:
    """Return the real seconds of a pause, at most those left until its deadline.

    ``now`` is read from the clock that the deadline is on.
    """
    share = _jitter.uniform(0.5, 1.0) if effect.jitter else 1.0
    length = pause(effect.seconds * share, time_scale=time_scale)
    return length if effect.deadline is None else max(0.0, min(length, effect.deadline - now))


def elapsed(since: str | None, now: float, *, time_scale: float | None = None) -> float:
    """Return the seconds of AWS since a moment in ISO 8601; 0 where it is not known.

    ``now`` is in seconds since 1970.
    """
    length = scale() if time_scale is None else time_scale
    if since is None or length <= 0:
        return 0.0
    return max(0.0, (now - datetime.datetime.fromisoformat(since).timestamp()) / length)


def limit(seconds: float, *, time_scale: float | None = None) -> float:
    """Return the real seconds that bound work: a scale shortens pauses, not what really runs."""
    return max(pause(seconds, time_scale=time_scale), seconds)
