"""Regimes: kinds of configurations that are fitted and scored separately."""

from __future__ import annotations

from typing import Literal

from orchestration.planning.model.configuration import Configuration

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
