"""Predictions for one configuration: time of a step, memory, and their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Final, NamedTuple

from orchestration.planning.cost.coefficients import Coefficients, fitted
from orchestration.planning.cost.memory import MemoryUse, memory_use
from orchestration.planning.cost.step_time import StepTime, step_time
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.model.regimes import Regime, is_known, regime

USABLE = 0.98
"""Fraction of the nominal memory that programs can fill. They see 0.99 of it (79.2 of an A100's 80
GiB, 31.7 of 32), and an allocator never fills the last percent."""

_SLACK = 0.4
"""Part of the interval's half width above the expected need that a fit leaves free. The half width
is 1.28 standard deviations, so that 0.4 of it is exceeded in three of ten cases."""

_SLOWER_HOST = 4.0
"""Seconds of a host's optimizer over those expected, up to which the interval of offloaded states
reaches. Adam of DeepSpeed's authors updates 47 million parameters a second with each virtual
processor; in other measurements it took three to fifteen times as long: DeepSpeed's ZenFlow blog
(over 4 s for Llama 2 7B beside four A100) and issues 6834 and 1635."""

_WIDER = 2.0
"""Factor on the intervals of models with guessed shapes, and of what was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Time and memory of one optimizer step of a configuration."""

    time: StepTime
    memory: MemoryUse
    step_time_s: float
    low_s: float
    """Four in five measurements are between this and `high_s`."""
    high_s: float
    tokens_per_s: float
    """Tokens per second of the whole cluster."""
    memory_gib: float
    """Memory of the fullest device as ``nvidia-smi`` shows it."""
    memory_low_gib: float
    memory_high_gib: float
    fits: bool
    """The needed memory fits the device in seven of ten cases, by the interval's width."""


def predict(c: Configuration, coefficients: Coefficients | None = None) -> Prediction:
    """Predict a configuration; equal configurations have equal predictions.

    Raises:
        ConfigurationError: the accelerator's rates are unknown.
    """
    k = fitted() if coefficients is None else coefficients
    s = sizes(c.model, c.sequence)
    time, memory = step_time(c, s, k), memory_use(c, s, k)
    step, shown = time.total, memory.total
    half_widths = uncertainty(c, k)
    spread, margin = exp(half_widths.time), exp(half_widths.memory)
    slower = (_SLOWER_HOST - 1) * time.optimizer if c.offload != "none" else 0.0
    return Prediction(
        time=time,
        memory=memory,
        step_time_s=step,
        low_s=step / spread,
        high_s=step * spread + slower,
        tokens_per_s=c.tokens / step,
        memory_gib=shown,
        memory_low_gib=shown / margin,
        memory_high_gib=shown * margin,
        fits=fitting(c, memory.need, margin),
    )


def fitting(c: Configuration, need_gib: float, margin: float) -> bool:
    """Return whether a need fits a device in seven of ten cases; `margin`: its high end over it."""
    room: float = c.machine.device_memory_gib * USABLE
    return need_gib * exp(_SLACK * log(margin)) <= room


class Uncertainty(NamedTuple):
    """Half widths of the 80 % intervals, of the logarithms."""

    time: float
    memory: float


def uncertainty(c: Configuration, coefficients: Coefficients | None = None) -> Uncertainty:
    """Return how unsure the prediction for a configuration is."""
    k = fitted() if coefficients is None else coefficients
    wider = _guessed(c)
    unsure = (wider if measured(c) else wider * _WIDER) * _other_kind(c)
    return Uncertainty(_half_width(regime(c), k) * unsure, k.interval_memory * wider)


def _guessed(c: Configuration) -> float:
    """Return how much wider intervals are, since the shape is guessed or the device unmeasured."""
    return 1.0 if is_known(c.machine.accelerator) and not c.model.approximate else _WIDER


def _other_kind(c: Configuration) -> float:
    """Return how much wider intervals of time are, since only models of words are fitted.

    Those are decoders, and encoders with logits; none encodes images, or has both halves.
    """
    kind, has_head = c.model.kind, c.model.has_head
    return 1.0 if kind == "decoder" or (kind == "encoder" and has_head) else _FURTHER


_FURTHER: Final = 6.0
"""Factor on the intervals of kinds of models of which nothing is fitted: BART-large takes 6 to 23 %
longer than predicted (rows of `unseen.csv`), and ViT g/14 took up to 47 % longer before the kernels
of its engine were looked up."""


def measured(c: Configuration) -> bool:
    """Return whether step times of such configurations are among those that are fitted.

    None are of adapters, of DeepSpeed's ZeRO 2 and 3 in the device's memory, or of experts under
    FSDP. What was measured apart, as single operators and tensor parallelism, is not new together.
    """
    sharded = (c.deepspeed and c.zero >= 2) or (c.zero == 3 and c.model.experts > 0)
    return c.trainable is None and not sharded


def _half_width(kind: Regime, k: Coefficients) -> float:
    match kind:
        case "data":
            return k.interval_data
        case "model":
            return k.interval_model
        case "bits":
            return k.interval_bits
        case "experts":
            return k.interval_experts
        case "offload":
            return k.interval_offload
        case "neuron":
            return k.interval_neuron
