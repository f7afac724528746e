"""Rates that a device reaches, in operations and bytes per second."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.devices import Device
from orchestration.planning.model.configuration import Configuration

_TERA = 1e12
_GIGA = 1e9

_HOST_SHARE = 0.8
"""Bandwidth that copies from pinned host memory reach over the nominal one: 25 of 31.5 GB/s over
PCIe 4 x16 (CUDA's bandwidthTest)."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one device in one configuration."""

    matmul: float
    """Operations of large matrix products in the configuration's precision."""
    matmul_16: float
    """The same in 16 bits."""
    matmul_backward: float
    """Time of a backward product over that of a forward product with as many operations."""
    operands: float
    """Bytes of operands and results, in 16 bits, whose memory traffic is not hidden."""
    attention: float
    attention_backward: float
    """Time of attention's backward pass over that of its forward pass."""
    memory: float
    """Bytes per second of elementwise kernels."""
    vector: float
    """Operations outside the matrix units."""
    host: float
    """Bytes per second to or from the host's memory."""


def rates(c: Configuration, d: Device, k: Coefficients) -> Rates:
    """Return the rates of a device in a configuration."""
    base = d.matmul_tflops * _TERA * _matmul_share(d.generation, k)
    if c.precision == "fp32":
        base *= d.fp32_share
    memory = d.memory_gb_per_s * _GIGA * k.memory_share
    return Rates(
        matmul=base * _faster(c, d, k),
        matmul_16=base,
        matmul_backward=k.backward_matmul,
        operands=memory / max(k.matmul_traffic, 1e-9) / (c.element_bytes / 2),
        attention=base * _attention_share(c, d, k),
        attention_backward=k.attention_backward,
        memory=memory,
        vector=d.vector_tflops * _TERA,
        host=d.host_gb_per_s * _GIGA * _HOST_SHARE,
    )


def _faster(c: Configuration, d: Device, k: Coefficients) -> float:
    """Return the rate of matrix products in fewer than 16 bits over those in 16.

    Measured products that are scaled by rows (``fp8_rowwise``) were no faster than in 16 bits.
    """
    if c.precision in ("fp8", "mxfp8") and d.fp8_tflops:
        return d.fp8_tflops / d.peak_tflops * k.matmul_fp8
    if c.precision == "nvfp4" and d.fp4_tflops:
        return d.fp4_tflops / d.peak_tflops * k.matmul_fp4
    return 1.0


def _attention_share(c: Configuration, d: Device, k: Coefficients) -> float:
    if c.attention == "unfused":
        return k.attention_matmul
    head = c.model.key_width
    share = {"flash1": k.flash1, "flash2": k.flash2, "flash3": k.flash3}[c.attention]
    share *= head / (head + k.flash_head_width) * (128 + k.flash_head_width) / 128
    share *= c.sequence / (c.sequence + k.flash_sequence)
    if c.attention != "flash3" and d.generation in ("hopper", "blackwell"):
        share *= k.flash_legacy
    return share


def _matmul_share(generation: str, k: Coefficients) -> float:
    match generation:
        case "volta" | "turing":
            return k.matmul_volta
        case "ampere" | "ada":
            return k.matmul_ampere
        case "hopper":
            return k.matmul_hopper
        case "blackwell":
            return k.matmul_blackwell
        case _:
            return k.matmul_neuron
