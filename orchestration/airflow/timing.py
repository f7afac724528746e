"""How long to wait, in the seconds of whoever runs this."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

from orchestration.graph import Retry

TIME_SCALE = "ORCHESTRATION_TIME_SCALE"
"""Environment variable: real seconds per second of AWS. Only the embedded AWS sets it."""

_LONGEST_PAUSE_S = 60.0
_jitter = random.SystemRandom()


def scale() -> float:
    """Real seconds per second of AWS, read when it is asked for."""
    return float(os.environ.get(TIME_SCALE) or 1)


def pause(seconds: float) -> float:
    """Real seconds of a pause in which nothing has to happen."""
    return max(0.0, seconds * scale())


def limit(seconds: float) -> float:
    """Real seconds that bound work: a scale shortens pauses, not what really runs."""
    return max(pause(seconds), seconds)


def backoff(retry: Retry) -> Iterator[float]:
    """The real seconds before each further attempt."""
    for attempt in range(retry.attempts - 1):
        longest = min(retry.interval_s * retry.backoff_rate**attempt, _LONGEST_PAUSE_S)
        yield pause(longest * _jitter.uniform(0.5, 1.0))
