"""Tasks and spaces that several tests search."""

from __future__ import annotations

import datetime
from dataclasses import replace
from functools import cache
from typing import Any

from orchestration.planning.model.measurements import Measurement, model_digest
from orchestration.planning.model.shapes import ModelShape
from orchestration.planning.model.typical_shapes import transformer
from orchestration.planning.search.answers.plans import Plan, Plans
from orchestration.planning.search.find import find_plans
from orchestration.planning.search.measured.known import measured_layout
from orchestration.planning.search.objective import (
    CHEAPEST,
    Objective,
)
from orchestration.planning.search.space import Space
from orchestration.planning.search.task import Batch, Task

LLAMA_7B = transformer(layers=32, hidden=4096, heads=32, vocabulary=32000, name="llama-2-7b")


LLAMA_70B = transformer(
    layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocabulary=128256, name="llama-3-70b"
)


GPT2 = transformer(
    layers=12, hidden=768, heads=12, vocabulary=50257, gated=False, tied_embeddings=True
)


def task(model: ModelShape = LLAMA_7B, batch: int | Batch = 256, **change: object) -> Task:
    sizes = batch if isinstance(batch, Batch) else Batch(least=batch, most=batch)
    usual = Task(model=model, sequence=2048, samples=100_000, batch=sizes)
    return replace(usual, **change)  # type: ignore[arg-type]  # names of its own fields


def space(*types: str, counts: tuple[int, ...] = (1, 2, 4), **change: object) -> Space:
    return replace(Space(types=types or ("ml.*",), counts=counts), **change)  # type: ignore[arg-type]  # names of its own fields


@cache
def whole(model: ModelShape, objective: Objective = CHEAPEST) -> Plans:
    """A search over the whole catalog."""
    return find_plans(task(model, 1024), Space(), objective)


def chosen(answer: Plans) -> Plan:
    assert answer.chosen is not None
    return answer.chosen


def plans(types: str = "ml.p4d.24xlarge", **change: Any) -> Plans:
    return find_plans(task(**change), Space(types=(types,), counts=(1, 2, 4)))


def measurement(plan: Plan, **figures: object) -> Measurement:
    """A measurement of what a plan is about."""
    c = plan.configuration
    usual: dict[str, object] = {
        "date": datetime.date(2026, 11, 1),
        "source": "probe",
        "job": f"job-{plan.instance_type}-{plan.instance_count}",
        "model": model_digest(c.model),
        "instance_type": plan.instance_type,
        "instance_count": plan.instance_count,
        "layout": measured_layout(plan.layout),
        "sequence": c.sequence,
        "global_batch": c.global_batch,
        "micro_batch": c.micro_batch,
        "recompute": c.recompute,
        "offload": c.offload,
        "precision": c.precision,
        "optimizer": c.optimizer,
    }
    return Measurement.model_validate(usual | figures)
