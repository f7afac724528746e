"""Metrics of a training job: what its metric definitions find in its logs."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from typing import Any


def final_metrics(
    definitions: Iterable[Mapping[str, str]], logs: str, at: datetime.datetime
) -> list[dict[str, Any]]:
    """The last value of each metric; those without any are left out."""
    found = []
    for definition in definitions:
        value = _last(definition["Regex"], logs)
        if value is not None:
            found.append({"MetricName": definition["Name"], "Value": value, "Timestamp": at})
    return found


def _last(pattern: str, logs: str) -> float | None:
    last = None
    for match in re.finditer(pattern, logs):
        try:
            last = float(match[1] if match.re.groups else match[0])
        except ValueError:
            continue
    return last
