"""How long to wait, in the seconds of whoever waits."""

from __future__ import annotations

import os

TIME_SCALE = "ORCHESTRATION_TIME_SCALE"
"""Environment variable: real seconds per second of AWS. Only the embedded AWS sets it."""


def scale() -> float:
    """Return the real seconds per second of AWS, read when it is asked for."""
    return float(os.environ.get(TIME_SCALE) or 1)


def pause(seconds: float, *, time_scale: float | None = None) -> float:
    """Return the real seconds of a pause in which nothing has to happen."""
    return max(0.0, seconds * (scale() if time_scale is None else time_scale))


def limit(seconds: float, *, time_scale: float | None = None) -> float:
    """Return the real seconds that bound work: a scale shortens pauses, not what really runs."""
    return max(pause(seconds, time_scale=time_scale), seconds)
