"""Figures of a run, for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.runs import Snapshot, StageView


def duration(seconds: float) -> str:
    """Return hours, minutes and seconds.

    >>> duration(3723.4)
    '1:02:03'
    """
    hours, rest = divmod(max(0, round(seconds)), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"


def took(stage: StageView, snapshot: Snapshot) -> str:
    """Return how long a stage has taken, nothing before it begins."""
    if stage.started is None:
        return ""
    end = stage.ended or snapshot.ended or snapshot.at
    return duration((end - stage.started).total_seconds())


def dollars(snapshot: Snapshot) -> str:
    """Return the dollars that a run cost so far, and what for."""
    counted = " and ".join(["jobs", *snapshot.besides])
    without = f", without {', '.join(snapshot.unpriced)}" if snapshot.unpriced else ""
    return f"${snapshot.usd:,.2f} for {counted}{without}"


def figures(metrics: Mapping[str, float]) -> str:
    """Return metrics as text.

    >>> figures({"loss": 0.251234, "accuracy": 0.97})
    'accuracy 0.97, loss 0.251234'
    """
    return ", ".join(f"{name} {value:.6g}" for name, value in sorted(metrics.items()))
