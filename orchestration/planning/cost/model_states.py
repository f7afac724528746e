"""Parameters, gradients and optimizer states that one device holds.

The bytes are those of ZeRO's paper (https://arxiv.org/abs/1910.02054, section 3.1): with Adam in
mixed precision 2 for a weight, 2 or 4 for its gradient and 12 for the optimizer, which holds a
master weight and two moments in fp32.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes


@dataclass(frozen=True, slots=True)
class ParameterBytes:
    """Bytes of one parameter's states."""

    weight: int
    gradient: int
    optimizer: int


_BYTES = {
    "fp32": ParameterBytes(4, 4, 8),
    "bf16_true": ParameterBytes(2, 2, 4),
    "bf16_sr": ParameterBytes(2, 2, 8),
    "bf16_fp32opt": ParameterBytes(2, 4, 12),
}
_MIXED = ParameterBytes(2, 2, 12)
_FEWER_MOMENTS = {"adamw": 0, "momentum": 1, "sgd": 2}
"""Moments of Adam's two that an optimizer does without."""


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes of model states on one device."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.weights + self.gradients + self.optimizer


def parameter_bytes(c: Configuration) -> ParameterBytes:
    """Bytes of one parameter's states in this precision."""
    kept = _BYTES.get(c.precision, _MIXED)
    moment = 2 if c.precision == "bf16_true" else 4
    optimizer = kept.optimizer - moment * _FEWER_MOMENTS[c.optimizer]
    return ParameterBytes(kept.weight, c.gradient_bytes or kept.gradient, optimizer)


def state_bytes(c: Configuration, common: float, experts: float = 0.0) -> StateBytes:
    """States of a device that holds so many parameters before ZeRO shares them out.

    ZeRO 1 shares the optimizer's states, 2 the gradients as well, 3 (FSDP) the weights, too. FSDP
    keeps the master weights as its weights, which adds up to the same bytes. Experts that expert
    parallelism spreads are shared by fewer ranks.
    """
    each = parameter_bytes(c)
    trained = (common, experts) if c.trainable is None else (float(c.trainable), 0.0)
    weights = each.weight * _shared(c, common, experts, at=3)
    gradients = each.gradient * _shared(c, *trained, at=2)
    optimizer = each.optimizer * _shared(c, *trained, at=1)
    if c.offload != "none":
        optimizer = 0.0
    if c.offload == "all":
        gradients = 0.0
    return StateBytes(weights, gradients, optimizer)


def owned_parameters(c: Configuration, s: Sizes) -> float:
    """Trained parameters that one device updates."""
    if c.trainable is not None:
        return _shared(c, float(c.trainable), 0.0, at=1)
    experts = local_experts(c, s)
    return _shared(c, local_parameters(c, s) - experts, experts, at=1)


def local_parameters(c: Configuration, s: Sizes) -> float:
    """Parameters of the fullest pipeline stage on one device, before ZeRO shares them out."""
    return stage_parameters(c, s) + embedding_parameters(c, s)


def stage_parameters(c: Configuration, s: Sizes) -> float:
    """Parameters of one pipeline stage's layers on one device."""
    return s.common_parameters / c.tensor / c.pipeline + local_experts(c, s)


def local_experts(c: Configuration, s: Sizes) -> float:
    """Parameters of one pipeline stage's routed experts on one device."""
    return s.expert_parameters / c.expert / c.pipeline


def embedding_parameters(c: Configuration, s: Sizes) -> float:
    """Embedding parameters on one device of the pipeline stage that has most of them."""
    whole = s.embedding_parameters / c.tensor
    return whole if c.pipeline == 1 or s.tied else whole / 2


def _shared(c: Configuration, common: float, experts: float, *, at: int) -> float:
    """Parameters left to one rank by ZeRO that shares from stage `at` on."""
    if c.zero < at:
        return common + experts
    return common / c.shards + experts / max(1, c.shards // c.expert)
