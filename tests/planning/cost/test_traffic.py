"""Traffic of elementwise work, held against what operators moved on a GPU."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest

from orchestration.planning.cost import compute, traffic
from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.compute import product_time
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.rates import rates
from orchestration.planning.model import recipes
from orchestration.planning.model.configuration import Configuration, Machine
from orchestration.planning.model.shapes import ModelShape

DATA = Path(__file__).parents[2] / "data/planner"
COUNTED = {
    "llama_norm": traffic._LLAMA_NORM,
    "llama_norm_of_fp32": traffic._LLAMA_NORM_OF_FP32,
    "layer_norm_of_fp32": traffic._LAYER_NORM_OF_FP32,
    "fused_norm": traffic._FUSED_NORM,
    "rotary": traffic._ROTARY,
    "rotary_of_fp32": traffic._ROTARY_OF_FP32,
    "gating": traffic._GATING,
    "dropout": traffic._DROPOUT,
    **{f"gelu_{name}": both for name, both in traffic._ACTIVATION.items()},
    **{f"softmax_{name}": both for name, both in traffic._SOFTMAX.items()},
}
PASSES = ("forward", "input_gradient", "weight_gradient")
LOSSES = {"loss": "eager", "loss_and_accuracy": "copied", "loss_of_16_bits": "plain"}


def _measured() -> dict[str, tuple[float, float]]:
    """Return the bytes of each kind of operators, forward and backward, on average of shapes."""
    found = defaultdict(list)
    with (DATA / "traffic.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["operators"]].append((row["forward_bytes"], row["backward_bytes"]))
    return {
        name: (fmean(float(first) for first, _ in each), fmean(float(last) for _, last in each))
        for name, each in found.items()
    }


@pytest.mark.parametrize("name", COUNTED)
def test_operators_are_counted_as_they_were_measured(name: str) -> None:
    assert sum(COUNTED[name]) == pytest.approx(sum(_measured()[name]), rel=0.1)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_counted_as_they_were_measured(name: str) -> None:
    assert compute._LOSS[LOSSES[name]] == pytest.approx(sum(_measured()[name]), rel=0.1)


def test_a_weight_of_4_bits_is_unpacked_as_long_as_it_was_measured() -> None:
    assert (
        pytest.approx(sum(_measured()["unpacking_4_bits"]), rel=0.05)
        == compute._UNPACKED_SEPARATELY
    )


@pytest.mark.parametrize(
    ("name", "times"), [("foreach", recipes._FOREACH), ("one_by_one", recipes._ONE_BY_ONE)]
)
def test_updates_of_many_kernels_are_counted_as_they_were_measured(name: str, times: float) -> None:
    fused, slower = _measured()["update_fused"][0], _measured()[f"update_{name}"][0]
    assert slower / fused == pytest.approx(times, rel=0.05)


def test_products_take_as_long_as_they_were_measured() -> None:
    """Last waves of tiles are in no formula, and products of many shapes show none."""
    setting = Configuration(
        model=ModelShape(
            layers=1, hidden=64, heads=1, kv_heads=1, ffn=64, gated=True, vocabulary=64
        ),
        machine=Machine(accelerator="h100", devices=1, devices_per_node=1, device_memory_gib=80),
        sequence=64, global_batch=1, micro_batch=1,
    )  # fmt: skip
    reached = rates(setting, device("h100"), fitted())
    errors, slower = [], []
    with (DATA / "products.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows, inner, outer = (float(row[name]) for name in ("rows", "inner", "outer"))
            forward, backward = product_time(rows, inner, outer, reached)
            if outer % 8:
                first, *others = (float(row[f"{name}_us"]) * 1e-6 for name in PASSES)
                slower.append((forward / first, backward / sum(others)))
                continue
            if (seconds := float(row["forward_us"]) * 1e-6) > 100e-6:  # a launch is in the others
                gradients = float(row["input_gradient_us"]) + float(row["weight_gradient_us"])
                errors += [forward / seconds - 1, backward / (gradients * 1e-6) - 1]
    assert len(errors) > 400
    assert fmean(map(abs, errors)) < 0.12
    for back, share in enumerate(compute._UNALIGNED["hopper"]):
        assert share == pytest.approx(fmean(each[back] for each in slower), rel=0.15)
