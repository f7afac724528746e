"""Coefficients of the cost formulas: names, values, units, bounds and meanings."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """Values of all coefficients; `facts` explains each."""

    matmul_volta: float
    matmul_ampere: float
    matmul_hopper: float
    matmul_blackwell: float
    matmul_neuron: float
    matmul_fp8: float
    matmul_fp4: float
    backward_matmul: float
    attention_backward: float
    cast_bytes: float
    expert_matmul: float
    expert_layer_ms: float
    matmul_traffic: float
    flash1: float
    flash2: float
    flash3: float
    flash_legacy: float
    flash_head_width: float
    flash_sequence: float
    attention_matmul: float
    memory_share: float
    elementwise_eager: float
    elementwise_fused: float
    logit_bytes: float
    layer_overhead_us: float
    launch_us: float
    interconnect_share: float
    interconnect_latency_us: float
    network_share: float
    network_start_us: float
    network_latency_us: float
    sync_latency_us: float
    tensor_exposed: float
    overlap_interference: float
    head_exposure: float
    optimizer_traffic: float
    step_overhead_ms: float
    fragmentation: float
    interval_data: float
    interval_model: float
    interval_bits: float
    interval_experts: float
    interval_offload: float
    interval_neuron: float
    interval_memory: float


@dataclass(frozen=True, slots=True)
class Fact:
    """One coefficient: a row of ``coefficients.csv``."""

    name: str
    value: float
    unit: str
    low: float
    high: float
    prior: float
    """Best guess without the benchmarks."""
    spread: float
    """Standard deviation of the logarithm around that of `prior`."""
    meaning: str


@cache
def facts() -> Mapping[str, Fact]:
    """Return every coefficient by its name."""
    from importlib import resources

    text = resources.files(__package__).joinpath("coefficients.csv").read_text(encoding="utf-8")
    return MappingProxyType({row["name"]: _fact(row) for row in csv.DictReader(text.splitlines())})


@cache
def fitted() -> Coefficients:
    """Return the coefficients that ``tools/planning/fit.py`` found: the default of predictions."""
    return coefficients({name: fact.value for name, fact in facts().items()})


def coefficients(values: Mapping[str, float]) -> Coefficients:
    """Return coefficients with these values."""
    return Coefficients(**{field.name: values[field.name] for field in fields(Coefficients)})


def _fact(row: Mapping[str, str]) -> Fact:
    return Fact(
        name=row["name"],
        value=float(row["value"]),
        unit=row["unit"],
        low=float(row["low"]),
        high=float(row["high"]),
        prior=float(row["prior"]),
        spread=float(row["spread"]),
        meaning=row["meaning"],
    )
