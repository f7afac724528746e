"""Kinds of configurations whose predictions are fitted and scored apart."""

from __future__ import annotations

from typing import Literal

from orchestration.planning.model.configuration import Configuration

Regime = Literal["data", "model", "bits", "experts", "offload", "neuron"]
"""Replicas and sharding only; tensor, pipeline or context parallelism as well; products in 8 or 4
bits; mixtures of experts; states in the host's memory; Trainium. The first two are the dense
regimes, which all coefficients but a few are fitted on."""

DENSE: frozenset[Regime] = frozenset({"data", "model"})


def regime(c: Configuration) -> Regime:
    """The regime of a configuration."""
    if c.machine.accelerator.startswith(("trn", "inf")):
        return "neuron"
    if c.model.experts:
        return "experts"
    if c.offload != "none":
        return "offload"
    if c.narrow:
        return "bits"
    return "data" if c.tensor * c.pipeline * c.context == 1 else "model"
