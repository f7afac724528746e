"""Time of one optimizer step, by part."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.collectives import links
from orchestration.planning.cost.compute import LayerTime, head_time, layer_time
from orchestration.planning.cost.data_parallel import data_time, optimizer_time
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.model_parallel import (
    context_time,
    expert_time,
    fill_time,
    tensor_time,
    transfer_time,
    wait_time,
)
from orchestration.planning.cost.rates import rates
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one optimizer step of every device, and what they go to."""

    forward: float
    """Forward passes."""
    backward: float
    recompute: float
    head: float
    """The output layer and the loss."""
    tensor: float
    """Tensor- and context-parallel communication that computing does not hide."""
    pipeline: float
    """Waiting for the pipeline to fill and drain, for its slowest stage, and for transfers."""
    data: float
    """Gathering and reducing among data-parallel ranks that computing does not hide."""
    optimizer: float
    other: float
    """Launches, data loading and bookkeeping."""

    @property
    def total(self) -> float:
        """The step."""
        return (
            self.forward
            + self.backward
            + self.recompute
            + self.head
            + self.tensor
            + self.pipeline
            + self.data
            + self.optimizer
            + self.other
        )


def step_time(c: Configuration, s: Sizes, k: Coefficients) -> StepTime:
    """Predict one optimizer step.

    Raises:
        ConfigurationError: the accelerator is not known.
    """
    d = device(c.machine.accelerator)
    r, to = rates(c, d, k), links(c, d, k)
    one = layer_time(c, s, r, k)
    layers = s.layers / c.pipeline
    again = _recomputed(c, one) * layers
    head = head_time(c, s, r, k)
    exchange = tensor_time(c, s, to) + context_time(c, s, to, one) + expert_time(c, s, to)
    tensor = exchange * layers
    launches = layers * (4 if again else 3) * k.layer_overhead_us * 1e-6
    launches += layers * s.sparse * k.expert_layer_ms * 1e-3
    forward, backward = one.forward * layers, one.backward * layers
    stage = forward + backward + again + tensor + launches
    ahead = forward + tensor / 3
    m = c.micro_batches
    return StepTime(
        forward=m * forward,
        backward=m * backward,
        recompute=m * again,
        head=m * head / c.pipeline,
        tensor=m * tensor,
        pipeline=fill_time(c, stage + head / c.pipeline)
        + wait_time(c, head, k.head_exposure)
        + transfer_time(c, s, to),
        data=data_time(c, s, to, forward=ahead, backward=stage - ahead),
        optimizer=optimizer_time(c, s, r, k),
        other=m * launches + k.step_overhead_ms * 1e-3,
    )


def _recomputed(c: Configuration, one: LayerTime) -> float:
    """Seconds of one layer and micro-batch that recomputation adds."""
    match c.recompute:
        case "full":
            seconds = one.forward
        case "operators":
            seconds = one.matmul_forward / 2 + one.elementwise_forward
        case "attention" if c.attention == "unfused":
            seconds = one.attention_forward
        case _:
            seconds = 0.0
    return seconds * c.recompute_share
