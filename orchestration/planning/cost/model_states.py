"""Model states of one device: weights, gradients and optimizer states.

Their bytes follow ZeRO's paper (https://arxiv.org/abs/1910.02054, section 3.1). With Adam in mixed
precision a weight takes 2, its gradient 2 or 4, and the optimizer 12 for a master weight and two
moments in fp32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil

from orchestration.planning.model.configuration import Configuration, Optimizer, Precision
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
_MOMENTS = {"adamw": 2, "adamw_8bit": 2, "momentum": 1, "sgd": 0}
"""The number of moments that an optimizer keeps."""


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes of model states on one device."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """Bytes of all states."""
        return self.weights + self.gradients + self.optimizer


def parameter_bytes(c: Configuration) -> ParameterBytes:
    """Return the bytes of one parameter's states in the configuration's precision."""
    # Autocast copies weights of fp32 for the products alone.
    precision: Precision = "fp32" if c.autocast else c.precision
    return _parameter_bytes(precision, c.optimizer, c.gradient_bytes)


@cache
def _parameter_bytes(
    precision: Precision, optimizer: Optimizer, gradient_bytes: int
) -> ParameterBytes:
    usual = _BYTES.get(precision, _MIXED)
    moment = 2 if precision == "bf16_true" else 4
    kept = 1 if optimizer == "adamw_8bit" else moment
    states = usual.optimizer - 2 * moment + kept * _MOMENTS[optimizer]
    return ParameterBytes(usual.weight, gradient_bytes or usual.gradient, states)


def has_master_weights(c: Configuration) -> bool:
    """Return whether the optimizer keeps the weights in fp32, beside those in fewer bits."""
    return c.precision not in ("fp32", "bf16_true", "bf16_sr")


def stored_gradient_bytes(c: Configuration) -> int:
    """Return the bytes of a gradient between two micro-batches.

    FSDP casts what it has reduced to the precision of its weights: with master weights these are
    in fp32, which the 16 bytes of mixed precision count already.
    """
    usual = _BYTES.get(c.precision, _MIXED)
    cast = c.zero >= 3 and not c.deepspeed
    return usual.gradient if cast or c.precision == "bf16_true" else parameter_bytes(c).gradient


def state_bytes(c: Configuration, common: float, experts: float = 0.0) -> StateBytes:
    """Return the states of a device that would hold these parameters without ZeRO.

    ZeRO 1 shards the optimizer's states, 2 also the gradients, 3 (FSDP) also the weights. FSDP
    keeps the master weights as its weights, which adds up to the same bytes. Experts are sharded
    over fewer ranks, as expert parallelism has already divided them.
    """
    per_parameter = parameter_bytes(c)
    trained = (common, experts) if c.trainable is None else (float(c.trainable), 0.0)
    weights = per_parameter.weight * _sharded(c, common, experts, at=3)
    gradients = stored_gradient_bytes(c) * _sharded(c, *trained, at=2)
    optimizer = per_parameter.optimizer * _sharded(c, *trained, at=1)
    if c.trainable is not None and c.offload != "all":
        # Adapters of matrices that are packed in few bits are in fp32, as no cast fits them.
        adapter = _BYTES["fp32"] if c.frozen_bits else per_parameter
        weights += adapter.weight * _sharded(c, *trained, at=3)
        gradients = adapter.gradient * _sharded(c, *trained, at=2)
        optimizer = adapter.optimizer * _sharded(c, *trained, at=1)
    if c.offload != "none":
        optimizer = 0.0
    # DeepSpeed moves the gradients to the optimizer's states as soon as they are reduced.
    if c.offload == "all" or (c.offload == "optimizer" and c.deepspeed and c.zero >= 2):
        gradients = 0.0
    if c.offload == "all":  # weights are on the device only while they are gathered
        weights = 0.0
    return StateBytes(weights, gradients, optimizer)


def packed_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes that frozen matrices of few bits save on one device."""
    if not c.frozen_bits or c.offload == "all":
        return 0.0
    saved = parameter_bytes(c).weight - c.frozen_bits / 8
    return saved * stage_parameters(c, s) / (c.shards if c.zero >= 3 else 1)


def widened_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes by which embedding and output layer in fp32 are larger on one device."""
    if not c.widened or c.offload == "all":
        return 0.0
    added = 4 - parameter_bytes(c).weight
    return added * embedding_parameters(c, s) / (c.shards if c.zero >= 3 else 1)


def owned_parameters(c: Configuration, s: Sizes) -> float:
    """Return the number of trained parameters that one device updates."""
    if c.trainable is not None:
        return _sharded(c, float(c.trainable), 0.0, at=1)
    experts = local_experts(c, s)
    return _sharded(c, local_parameters(c, s) - experts, experts, at=1)


def local_parameters(c: Configuration, s: Sizes) -> float:
    """Return the parameters of the fullest pipeline stage on one device, without ZeRO."""
    return stage_parameters(c, s) + embedding_parameters(c, s)


def stage_layers(c: Configuration, s: Sizes) -> int:
    """Return the layers of the fullest pipeline stage: each of its chunks has whole ones."""
    return ceil(s.layers / (c.pipeline * c.interleave)) * c.interleave


def stage_parameters(c: Configuration, s: Sizes) -> float:
    """Return the parameters of the fullest pipeline stage's layers on one device."""
    common = s.common_parameters / c.tensor
    return common / s.layers * stage_layers(c, s) + local_experts(c, s)


def local_experts(c: Configuration, s: Sizes) -> float:
    """Return the parameters of that stage's routed experts on one device."""
    return s.expert_parameters / c.expert / s.layers * stage_layers(c, s)


def embedding_parameters(c: Configuration, s: Sizes) -> float:
    """Return the embedding parameters on one device of the stage that has most of them."""
    whole = s.embedding_parameters / c.tensor
    if c.whole_embedding and not s.tied:
        whole += s.embedding_parameters / 2 * (1 - 1 / c.tensor)
    return whole if c.pipeline == 1 or s.tied else whole / 2


def _sharded(c: Configuration, common: float, experts: float, *, at: int) -> float:
    """Return the parameters that one rank keeps of a state that ZeRO shards from stage `at` on."""
    if c.zero < at:
        return common + experts
    return common / c.shards + experts / max(1, c.shards // c.expert)
