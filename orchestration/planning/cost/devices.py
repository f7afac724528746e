"""Accelerators: the rates that predictions of time depend on."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from orchestration.catalog import Accelerator, accelerators
from orchestration.errors import near
from orchestration.planning.model.configuration import ConfigurationError

_UNMEASURED = 0.85
"""Best matrix product over peak, for accelerators without a measurement: 0.87 on the A100 (271 of
312), 0.80 on the H100 (795 of 989), 0.78 on the B200; smaller chips are near the A100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Rates of one device; 10^12 operations or 10^9 bytes per second."""

    key: str
    generation: str
    """``volta``, ``turing``, ``ampere``, ``ada``, ``hopper``, ``blackwell`` or ``neuron``."""
    matmul_tflops: float
    """Best measured rate of a 16-bit matrix product."""
    fp8_tflops: float | None
    fp4_tflops: float | None
    peak_tflops: float
    """Dense peak in 16 bits."""
    vector_tflops: float
    """Peak in fp32 outside the matrix units."""
    fp32_share: float
    """Rate of matrix products in fp32 (TF32 if available) over those in 16 bits."""
    memory_gb_per_s: float
    interconnect_gb_per_s: float
    """Usual bandwidth to the other devices of the node, one way."""
    domain: int
    """Devices that the interconnect joins across nodes (NVL72); 0: those of one node."""
    host_gb_per_s: float
    """Bandwidth to the host's memory, one way: PCIe with 16 lanes, or NVLink-C2C."""


@cache
def devices() -> Mapping[str, Device]:
    """Return every accelerator with known rates, by its key."""
    from importlib import resources

    text = resources.files(__package__).joinpath("devices.csv").read_text(encoding="utf-8")
    known = accelerators()
    return MappingProxyType({
        row["key"]: _device(row, known.get(row["key"]))
        for row in csv.DictReader(text.splitlines())
    })  # fmt: skip


def device(key: str) -> Device:
    """Return one accelerator.

    Raises:
        ConfigurationError: its rates are unknown.
    """
    if key not in devices():
        raise ConfigurationError(
            f"the rates of accelerator {key!r} are unknown, so nothing can be predicted for it"
            f"{near(key, devices())}"
        )
    return devices()[key]


def _device(row: Mapping[str, str], facts: Accelerator | None) -> Device:
    def rate(column: str, fact: float | None) -> float | None:
        return float(row[column]) if row[column] else fact

    peak = None if facts is None else facts.bf16_tflops or facts.fp16_tflops
    measured = rate("matmul_tflops", None if facts is None else facts.matmul_bf16_tflops)
    memory = rate("memory_gb_per_s", None if facts is None else facts.memory_gb_per_s)
    vector = rate("vector_tflops", None if facts is None else facts.fp32_tflops)
    measured = measured or (peak or 0) * _UNMEASURED
    if not measured or memory is None or vector is None:
        raise ConfigurationError(f"the catalog lacks rates of {row['key']!r}")
    return Device(
        key=row["key"],
        generation=row["generation"],
        matmul_tflops=measured,
        fp8_tflops=rate("fp8_tflops", None if facts is None else facts.fp8_tflops),
        fp4_tflops=rate("fp4_tflops", None),
        peak_tflops=peak or measured / _UNMEASURED,
        vector_tflops=vector,
        fp32_share=0.5 if facts is None or not peak else (facts.tf32_tflops or vector) / peak,
        memory_gb_per_s=memory,
        interconnect_gb_per_s=float(row["interconnect_gb_per_s"]),
        domain=int(row["domain"] or 0),
        host_gb_per_s=float(row["host_gb_per_s"]),
    )
