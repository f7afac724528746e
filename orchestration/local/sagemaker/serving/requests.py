"""The requests that an endpoint answered lately, as the metrics of CloudWatch count them.

https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_MOST = 100_000
_BAD_REQUEST = 400
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class Answered:
    """A request: when it was answered, by what, and how."""

    at: float
    config_name: str
    variant: str
    status: int
    latency_us: float


METRICS: Final[Mapping[str, Callable[[Answered], float]]] = {
    "Invocations": lambda _: 1.0,
    "Invocation4XXErrors": lambda each: float(_BAD_REQUEST <= each.status < _SERVER_ERROR),
    "Invocation5XXErrors": lambda each: float(each.status >= _SERVER_ERROR),
    "InvocationModelErrors": lambda each: float(each.status >= _BAD_REQUEST),
    "ModelLatency": lambda each: each.latency_us,
}
"""The metrics of an endpoint that are simulated, each with a request's value."""

BACKLOG: Final = "HasBacklogWithoutCapacity"
"""The metric of an asynchronous endpoint, 1 while requests wait and there are no instances:
https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html"""

_STATISTICS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "Average": statistics.fmean,
    "Sum": math.fsum,
    "Minimum": min,
    "Maximum": max,
    "SampleCount": len,
}


class Requests:
    """The last requests to an endpoint."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answered: deque[Answered] = deque(maxlen=_MOST)
        self._waiting: deque[float] = deque(maxlen=_MOST)

    def add(self, config_name: str, variant: str, status: int, latency_s: float) -> None:
        """Note a request that was answered now."""
        row = Answered(time.monotonic(), config_name, variant, status, latency_s * 1e6)
        with self._lock:
            self._answered.append(row)

    def wait(self) -> None:
        """Note that a request waits now, and nothing could answer it."""
        with self._lock:
            self._waiting.append(time.monotonic())

    def waiting(self, start: float, end: float) -> list[float]:
        """Return the values of ``HasBacklogWithoutCapacity`` in a time."""
        with self._lock:
            return [1.0 for at in self._waiting if start < at <= end]

    def values(
        self, metric: str, dimensions: Mapping[str, str], start: float, end: float
    ) -> list[float]:
        """Return the values of a metric in a time, maybe of one variant, or configuration."""
        value = METRICS[metric]
        variant, config_name = dimensions.get("VariantName"), dimensions.get("EndpointConfigName")
        with self._lock:
            rows = [each for each in self._answered if start < each.at <= end]
        return [
            value(each)
            for each in rows
            if variant in (None, each.variant) and config_name in (None, each.config_name)
        ]


def statistic(name: str, values: Sequence[float]) -> float:
    """Return a statistic of CloudWatch: ``Average``, ``Sum``, ``p99``."""
    if name in _STATISTICS:
        return _STATISTICS[name](values)
    rank = math.ceil(float(name.removeprefix("p")) / 100 * len(values))
    return sorted(values)[max(0, rank - 1)]
