"""Operations and bytes per second that a device reaches."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.coefficients import Coefficients
from orchestration.planning.configuration import Configuration
from orchestration.planning.devices import Device

_TERA = 1e12
_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Rates:
    """What a device reaches, in operations and bytes per second."""

    matmul: float
    """Large matrix products in the configuration's precision."""
    matmul_16: float
    """The same in 16 bits."""
    attention: float
    memory: float
    vector: float
    multiprocessors: int


def rates(c: Configuration, d: Device, k: Coefficients) -> Rates:
    """What the device reaches in this configuration."""
    base = d.matmul_tflops * _TERA * _matmul_share(d.generation, k)
    matmul = base
    if c.precision in ("fp8", "mxfp8") and d.fp8_tflops:
        matmul = base * d.fp8_tflops / d.peak_tflops * k.matmul_fp8
    elif c.precision == "nvfp4" and d.fp4_tflops:
        matmul = base * d.fp4_tflops / d.peak_tflops * k.matmul_fp4
    elif c.precision == "fp32":
        matmul = base = base * d.fp32_share
    return Rates(
        matmul=matmul,
        matmul_16=base,
        attention=base * _attention_share(c, d, k),
        memory=d.memory_gb_per_s * _GIGA * k.memory_share,
        vector=d.vector_tflops * _TERA,
        multiprocessors=d.multiprocessors,
    )


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
