"""The metrics of a training job: the matches of its metric definitions in its logs."""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any


def final_metrics(
    definitions: Iterable[Mapping[str, str]], logs: str, at: datetime.datetime
) -> list[dict[str, Any]]:
    """Return the last value of each metric that has one."""
    metrics = []
    for definition in definitions:
        value = _last(definition["Regex"], logs)
        if value is not None:
            metrics.append({"MetricName": definition["Name"], "Value": value, "Timestamp": at})
    return metrics


def _last(pattern: str, logs: str) -> float | None:
    last = None
    for match in re.finditer(pattern, logs):
        try:
            last = _kept(float(match[1] if match.re.groups else match[0]))
        except (ValueError, OverflowError):
            continue
    return last


def _kept(value: float) -> float:
    """Return a value as SageMaker keeps it: public recordings show numbers of 32 bits.

    It sends them to CloudWatch, which takes neither NaN nor infinities; that the value before then
    stays the last one follows from it, and nobody could verify it.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} is no finite number")
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded
