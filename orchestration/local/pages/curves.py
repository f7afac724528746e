"""Metrics over the course of a job, read from what it has printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestration.local.run.report import RunReport

_MOST_POINTS: Final = 300
_WIDTH: Final = 360
_HEIGHT: Final = 150
_ROOM: Final = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of a metric, in the order in which a job printed them."""

    job: str
    metric: str
    values: tuple[float, ...]


def curves(report: RunReport, logs: Mapping[str, str]) -> Iterator[Curve]:
    """Yield the curves of a run's training jobs: metrics with more than one value."""
    for call in report.calls:
        if call.operation != "CreateTrainingJob" or call.error_code is not None:
            continue
        job = str(call.request["TrainingJobName"])
        for definition in call.request["AlgorithmSpecification"].get("MetricDefinitions", ()):
            values = tuple(_values(definition["Regex"], logs.get(job, "")))
            if len(values) > 1:
                yield Curve(job, definition["Name"], values)


def _values(pattern: str, log: str) -> Iterator[float]:
    for match in re.finditer(pattern, log):
        try:
            value = float(match[1] if match.re.groups else match[0])
        except (TypeError, ValueError):
            continue
        if math.isfinite(value):
            yield value


def drawn(curve: Curve) -> str:
    """Return a curve as a figure: its line, its least and largest value and its last one."""
    values = _thinned(curve.values)
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = (_WIDTH - 2 * _ROOM) / max(1, len(values) - 1)
    points = [
        (_ROOM + number * step, _ROOM + (1 - (value - low) / span) * (_HEIGHT - 2 * _ROOM))
        for number, value in enumerate(values)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    x, y = points[-1]
    name = f"{curve.metric}: {len(curve.values)} values, the last {curve.values[-1]:.6g}"
    return (
        f'<figure class="curve"><figcaption><b>{escape(curve.metric)}</b> '
        f'{curve.values[-1]:.6g}<br><span class="quiet">{escape(curve.job)}</span></figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(name)}">'
        f'<polyline points="{line}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="3.5"/></svg>'
        f'<figcaption class="quiet">{low:.6g} to {high:.6g}, {len(curve.values)} values'
        "</figcaption></figure>"
    )


def _thinned(values: Sequence[float]) -> list[float]:
    """Return at most so many values, the last one among them."""
    every = math.ceil(len(values) / _MOST_POINTS)
    return [*values[:-1:every], values[-1]]
