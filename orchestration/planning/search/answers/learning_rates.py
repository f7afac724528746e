"""Learning rates for a plan's batch."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.search.task import Task

_LINEAR = ("sgd", "momentum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A learning rate scaled to a batch."""

    rule: str
    """``linear`` or ``square root``."""
    factor: float
    """The rate over the known one."""
    rate: float
    note: str


def advice(task: Task, batch: int) -> Advice | None:
    """Return the rate for a batch; ``None``: the task has no known rate.

    SGD scales linearly with the batch, with warm-up (https://arxiv.org/abs/1706.02677). Adam and
    its relatives scale with the square root, and down again past the critical batch
    (https://arxiv.org/abs/2405.14578).
    """
    known = task.learning_rate
    if known is None:
        return None
    # The runtime is for containers; loading it only here keeps it out of all else.
    from orchestration.runtime.learning_rate import scaled_by_root, scaled_linearly

    if task.optimizer in _LINEAR:
        rate = scaled_linearly(known.value, known.batch, batch)
        note = "warm up from the known rate" if batch > known.batch else ""
        return Advice(rule="linear", factor=rate / known.value, rate=rate, note=note)
    critical = task.batch.critical
    rate = scaled_by_root(known.value, known.batch, batch, critical_batch=critical)
    note = ""
    if critical is not None and batch > critical:
        note = f"the batch is past the critical {critical:,.0f}: more samples save few steps"
    elif batch > known.batch:
        note = "warm up; a sweep around this rate is worth its cost"
    return Advice(rule="square root", factor=rate / known.value, rate=rate, note=note)
