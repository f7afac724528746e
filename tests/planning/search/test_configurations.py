"""The search predicts the same configurations as those that published rows validate."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from orchestration.planning.calibration.rows import Row, complete, year
from orchestration.planning.calibration.rows import configuration as validated
from orchestration.planning.cost.prediction import predict
from orchestration.planning.model.configuration import (
    Configuration,
    ConfigurationError,
    LayoutFamily,
)
from orchestration.planning.model.recipes import Engine, recipe
from orchestration.planning.model.shapes import ModelError
from orchestration.planning.search.configurations import configuration
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.task import Batch, Task

TABLES = Path("tests/data/planner")


@cache
def rows() -> list[tuple[Row, Configuration]]:
    """The published rows that can be read, each as the evaluator validates it."""
    read = []
    for name in ("benchmarks.csv", "unseen.csv"):
        with (TABLES / name).open(newline="", encoding="utf-8-sig") as file:
            for row in map(complete, csv.DictReader(file)):
                try:
                    read.append((row, validated(row)))
                except (ConfigurationError, ModelError):
                    continue
    return read


def family(c: Configuration) -> LayoutFamily:
    if c.machine.accelerator.startswith("trn"):
        return "neuron"
    if c.tensor * c.pipeline * c.context > 1:
        return "smp_v2" if c.zero == 3 else "smp_v1"
    if c.zero:
        return "sharded"
    return "single" if c.machine.devices == 1 else "replicated"


def engine(row: Row) -> Engine | None:
    """The engine of a row, if users can ask for it: not those of years ago."""
    theirs = recipe(row["framework"], year(row["date"]))
    name = "nemo" if theirs == recipe("nemo") else row["framework"].lower()
    near = max((e for e in get_args(Engine) if name.startswith(e)), key=len, default=None)
    return near if near is not None and recipe(near) == theirs else None


def searched(row: Row, c: Configuration) -> Configuration:
    """The search's configuration of the row's model, layout and engine."""
    layout = Layout(
        family=family(c), rank=0, zero=c.zero, shard=c.shard,
        tensor=c.tensor, pipeline=c.pipeline, context=c.context, expert=c.expert,
    )  # fmt: skip
    # What a table says about kernels is the user's; the rest is for the search to know.
    told = row["flash_attn"] or c.attention == "unfused"
    task = Task(
        model=c.model, sequence=c.sequence, samples=c.global_batch,
        batch=Batch(least=c.global_batch, most=c.global_batch),
        precision=c.precision, optimizer=c.optimizer, engine=engine(row),
        attention=c.attention if told else None,
        kernels="compiled" if c.kernels == "compiled" else "eager",
    )  # fmt: skip
    ours = configuration(
        task, layout, c.machine,
        batch=c.global_batch, micro=c.micro_batch, recompute=c.recompute, offload=c.offload,
    )  # fmt: skip
    # Tables count an adapter's parameters, and say what a training drops, whether its host pins
    # memory, and what single recipes fuse.
    names = ("trainable", "adapter_dropout", "dropout", "pageable", "whole_graph", "fused_experts")
    return replace(ours, **{name: getattr(c, name) for name in names})


def expressible(row: Row, c: Configuration) -> bool:
    """Whether the search has the row's engine and all of its settings."""
    known = engine(row) is not None or family(c) == "neuron"
    whole = c.interleave == 1 and c.recompute_share == 1
    return known and whole and (c.tensor == 1 or c.sequence_parallel)


def test_the_searchs_configurations_are_those_that_published_rows_validate() -> None:
    accelerators: Counter[str] = Counter()
    families: Counter[LayoutFamily] = Counter()
    for row, c in rows():
        if expressible(row, c):
            ours = searched(row, c)
            assert predict(ours).step_time_s == pytest.approx(predict(c).step_time_s), row["id"]
            assert predict(ours).memory.need == pytest.approx(predict(c).memory.need), row["id"]
            accelerators[c.machine.accelerator] += 1
            families[family(c)] += 1
    assert sum(accelerators.values()) > 200
    assert accelerators.keys() >= {"a100-40", "a100-80", "h100", "h200", "b200", "a10g", "trn1"}
    assert families.keys() >= {"single", "replicated", "sharded", "smp_v1", "neuron"}


def test_trainium_is_predicted_fused_as_its_compiler_makes_it() -> None:
    published = [(row, c) for row, c in rows() if c.machine.accelerator.startswith("trn")]
    assert len(published) > 20
    for row, c in published:
        usual = searched({**row, "framework": "", "flash_attn": ""}, c)
        assert (usual.attention, usual.kernels) == (c.attention, c.kernels)
        assert predict(usual).step_time_s == pytest.approx(predict(c).step_time_s, rel=0.02)
