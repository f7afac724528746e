"""The metrics of a training job: the matches of its metric definitions in its logs."""

from __future__ import annotations

import datetime
import re
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
            last = float(match[1] if match.re.groups else match[0])
        except ValueError:
            continue
    return last
