"""Training tasks: the model, its data and batch, and the precision."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from orchestration.planning.model.configuration import Attention, Kernels, Optimizer, Precision
from orchestration.planning.model.recipes import Engine
from orchestration.planning.model.shapes import ModelError, ModelShape, Targets

if TYPE_CHECKING:
    from orchestration.planning.model.measurements import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples in one optimizer step: a number, or a range to choose from."""

    least: int
    most: int
    critical: float | None = None
    """Batch, in samples, beyond which more samples per step hardly save steps: the gradient's noise
    scale, https://arxiv.org/abs/1812.06162. ``None``: far beyond the range."""

    def __post_init__(self) -> None:
        """Refuse an empty range."""
        if not 1 <= self.least <= self.most:
            raise ModelError(f"a batch can't range from {self.least} to {self.most} samples")
        if self.critical is not None and self.critical <= 0:
            raise ModelError(f"the critical batch must be above 0, got {self.critical}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batches to choose from: doublings of the smallest, and the largest."""
        doublings = range((self.most // self.least).bit_length())
        return tuple(sorted({*(self.least << exponent for exponent in doublings), self.most}))

    def samples_factor(self, batch: int) -> float:
        """Return how many times the samples of the smallest batch this one needs to learn as much.

        https://arxiv.org/abs/1812.06162 section 2.3: samples grow as 1 + batch / critical.
        """
        if self.critical is None:
            return 1.0
        return (self.critical + batch) / (self.critical + self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """Fine-tuning of low-rank adapters while the model's own weights are frozen."""

    rank: int
    targets: Targets = "attention"
    bits: Literal[4, 8] | None = None
    """Bits of a frozen weight, as bitsandbytes stores it; ``None``: those of the precision."""

    @property
    def frozen_bits(self) -> float:
        """Bits of a frozen weight with its share of scales; 0: those of the precision."""
        return 0.0 if self.bits is None else _WITH_SCALES[self.bits]

    def __str__(self) -> str:
        """Name the method with what takes memory."""
        bits = "" if self.bits is None else f" over weights of {self.bits} bits"
        return f"LoRA of rank {self.rank}{bits}"


_WITH_SCALES: Final = {4: 4.5, 8: 8.25}
"""NF4 has a scale of 32 bits for every 64 weights (https://arxiv.org/abs/2305.14314, section 3,
without double quantization); 8 bits as published rows count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """Checkpoints that training waits for."""

    every_steps: int
    gb_per_s: float
    """GB/s at which the whole cluster writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRate:
    """A learning rate that works for a batch."""

    value: float
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """Framework of the training script, as the support rules read it."""

    name: str = "pytorch"
    version: str | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One training, independent of the machines."""

    model: ModelShape
    sequence: int
    """Tokens of one sample."""
    samples: int
    """Samples in the whole training with the smallest batch, over all epochs."""
    batch: Batch
    precision: Precision = "bf16"
    optimizer: Optimizer = "adamw"
    lora: Lora | None = None
    learning_rate: KnownRate | None = None
    framework: Framework = field(default_factory=Framework)
    engine: Engine | None = None
    """The engine of the training script; ``None``: PyTorch's DDP and FSDP, DeepSpeed for ZeRO 1 and
    2. On Trainium it is always NeuronX."""
    attention: Attention | None = None
    """The attention kernel; ``None``: the one that PyTorch picks on the accelerator."""
    kernels: Kernels = "eager"
    checkpoints: Checkpoints | None = None
    startup_s: float = 0.0
    """Billed seconds before the first step."""
    measurements: tuple[Measurement, ...] = ()
    """Measured ways to train it; predictions of all others are corrected by them."""

    @property
    def trainable(self) -> int | None:
        """Number of trained parameters in adapters; ``None``: all parameters."""
        if self.lora is None:
            return None
        return self.model.lora_parameters(self.lora.rank, self.lora.targets)

    @property
    def flops_per_token(self) -> float:
        """Operations per token that every way of training needs.

        A frozen matrix needs no gradient of its own: LoRA saves a third.
        """
        forward = self.model.forward_flops_per_token(self.sequence)
        return forward * (2 if self.lora is not None else 3)

    def steps(self, batch: int) -> int:
        """Return the number of optimizer steps in the whole training with this batch."""
        return math.ceil(self.samples * self.batch.samples_factor(batch) / batch)


def evened(samples: float) -> int:
    """Return the number within 5 % that can be halved most often, at least 1.

    >>> evened(4e6 / 4096), evened(1.5), evened(700)
    (1024, 2, 704)
    """
    step = 1
    while abs(round(samples / (2 * step)) * 2 * step - samples) <= _LEEWAY * samples:
        step *= 2
        if step > samples:
            break
    return max(1, round(samples / step) * step)


_LEEWAY: Final = 0.05
