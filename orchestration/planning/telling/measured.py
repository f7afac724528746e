"""Measurements of a training, against what was predicted before."""

from __future__ import annotations

from typing import Final

from orchestration.planning.search.amounts import duration
from orchestration.planning.search.answers.plans import Plans
from orchestration.planning.search.measured.corrections import corrections
from orchestration.planning.search.measured.known import Known

_SHOWN: Final = 4
_SAME: Final = 0.005


def measured(plans: Plans) -> list[str]:
    """Return a line for each of the last measurements that a search knew, the newest first."""
    if not plans.task.measurements:
        return []
    corrected = corrections(plans.task)
    known = corrected.known
    newest = sorted(known, key=lambda each: each.measurement.date, reverse=True)
    lines = [_line(each) for each in newest[:_SHOWN]]
    if len(known) > _SHOWN:
        lines.append(f"and {len(known) - _SHOWN} more")
    lines += [f"{count} left out: {reason}" for reason, count in corrected.left_out.items()]
    return lines


def _line(known: Known) -> str:
    measured = known.measurement
    what = f"{measured.instance_count} x {measured.instance_type}, {_how(known)}"
    if measured.step_time_s is None:
        result = "out of memory" if measured.out_of_memory else "memory only"
        return f"{what}: {result} ({measured.date})"
    steps = f"{what}: steps of {duration(measured.step_time_s)}"
    if known.configuration.model.kind == "custom":
        return f"{steps} ({measured.date})"
    before = known.prediction.step_time_s
    difference = measured.step_time_s / before - 1
    word = "more than" if difference > 0 else "less than"
    compared = (
        "as predicted" if abs(difference) < _SAME else f"{abs(difference):.0%} {word} predicted"
    )
    return f"{steps}, {compared} ({measured.date})"


def _how(known: Known) -> str:
    c = known.configuration
    sharded = {0: "data parallel", 1: "ZeRO-1", 2: "ZeRO-2", 3: "FSDP"}[c.zero]
    degrees = [
        f"{name} {degree}"
        for name in ("tensor", "pipeline", "context", "expert")
        if (degree := getattr(c, name)) > 1
    ]
    recomputed = [f"{c.recompute} recomputation"] if c.recompute != "none" else []
    return ", ".join([sharded, *degrees, f"{c.micro_batch} at a time", *recomputed])
