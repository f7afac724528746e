"""Regimes: kinds of configurations that are fitted and scored separately."""

from __future__ import annotations

from typing import Final, Literal

from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.shapes import ModelShape

Regime = Literal["data", "model", "bits", "experts", "offload", "neuron"]
"""Data parallelism or sharding only; also tensor, pipeline or context parallelism; products in 8 or
4 bits; mixtures of experts; states in the host's memory; Trainium. All coefficients but a few are
fitted to the first two, the dense regimes."""

DENSE: frozenset[Regime] = frozenset({"data", "model"})


def regime(c: Configuration) -> Regime:
    """Return the regime of a configuration."""
    if c.machine.accelerator.startswith(("trn", "inf")):
        return "neuron"
    if c.model.experts:
        return "experts"
    if c.offload != "none":
        return "offload"
    if c.narrow:
        return "bits"
    return "data" if c.tensor * c.pipeline * c.context == 1 else "model"


Kind = Literal["dense", "experts", "bits"]

MEASURED: Final[dict[Kind, frozenset[str]]] = {
    "dense": frozenset(
        {"a100-40", "a100-80", "a10g", "h100", "h100-96hbm2e", "h200", "trn1", "v100"}
    ),
    "experts": frozenset({"b200", "b300", "gb200", "gb300", "h100", "h200"}),
    "bits": frozenset({"b200", "gb200", "gb300", "h100", "h100-96hbm2e"}),
}
"""Accelerators with published measurements, by kind of training; a test holds it to the tables."""


def kind(model: ModelShape, precision: str) -> Kind:
    """Return the kind of a training, for which there are measurements or not."""
    if model.experts:
        return "experts"
    return "bits" if precision in ("fp8", "fp8_rowwise", "mxfp8", "nvfp4") else "dense"


def is_known(accelerator: str) -> bool:
    """Return whether trainings of any kind were measured on an accelerator."""
    return any(accelerator in devices for devices in MEASURED.values())
