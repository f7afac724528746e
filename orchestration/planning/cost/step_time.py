"""Time of one optimizer step, by part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.collectives import cluster_links
from orchestration.planning.cost.compute import LayerTime, head_time, launch_times, layer_time
from orchestration.planning.cost.data_parallel import accumulation_time, data_time, optimizer_time
from orchestration.planning.cost.devices import Device, device
from orchestration.planning.cost.model_parallel import (
    context_time,
    expert_time,
    fill_time,
    tensor_time,
    transfer_time,
    wait_time,
)
from orchestration.planning.cost.rates import rates
from orchestration.planning.model.configuration import Configuration, Recompute
from orchestration.planning.model.layer_sizes import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one optimizer step on one device, by activity."""

    forward: float
    """Forward passes."""
    backward: float
    recompute: float
    head: float
    """The output layer and the loss."""
    tensor: float
    """Tensor-, context- and expert-parallel communication that computing does not hide."""
    pipeline: float
    """Waiting for the pipeline to fill and drain, for its slowest stage, and for transfers."""
    data: float
    """Data-parallel communication that computing does not hide."""
    optimizer: float
    other: float
    """Launches, data loading and bookkeeping."""

    @property
    def total(self) -> float:
        """Seconds of the whole step."""
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


_ROUNDED: Final = 1 - 1e-12
"""A bound that adds the same terms in another order must not come out above them."""


def step_time(c: Configuration, s: Sizes, k: Coefficients) -> StepTime:
    """Predict one optimizer step.

    Raises:
        ConfigurationError: the accelerator's rates are unknown.
    """
    d = device(c.machine.accelerator)
    r, links = rates(c, d, k), cluster_links(c, d, k)
    layer = layer_time(c, s, r, k)
    layers = s.layers / c.pipeline
    again = _recomputed(c, layer, c.recompute) * layers
    head = head_time(c, s, r, links, k)
    exchange = tensor_time(c, s, links) + expert_time(c, s, links)
    ring = context_time(c, s, links, layer)
    tensor = (exchange + ring) * layers
    ring *= layer.attention_forward / (layer.attention_forward + layer.attention_backward)
    sent = (exchange / 3 + ring) * layers  # in the forward pass
    launch, routing = _overhead(c, s, d, k)
    launches = layers * ((4 if again else 3) * launch + routing)
    forward, backward = layer.forward * layers, layer.backward * layers
    first, second = (0.0, 0.0) if _one_program(c, d) else launch_times(c, s, k)
    # The host runs ahead of what the device computes and of what it waits for from others.
    waiting = max(0.0, first * layers - forward - sent)
    launches += waiting + max(0.0, second * layers - backward - again - (tensor - sent))
    summing = accumulation_time(c, s, r)
    stage = forward + backward + again + tensor + launches + summing
    ahead = forward + waiting + sent
    m = c.micro_batches
    return StepTime(
        forward=m * forward,
        backward=m * (backward + summing),
        recompute=m * again,
        head=m * head / c.pipeline,
        tensor=m * tensor,
        pipeline=fill_time(c, stage + head / c.pipeline)
        + wait_time(c, s, stage / layers, head, k.head_exposure)
        + transfer_time(c, s, links),
        data=data_time(c, s, links, forward=ahead, backward=stage - ahead),
        optimizer=optimizer_time(c, s, r, k),
        other=m * launches + k.step_overhead_ms * 1e-3,
    )


def computing_times(
    c: Configuration, s: Sizes, k: Coefficients, kinds: Iterable[Recompute]
) -> tuple[float, ...]:
    """Return the least seconds of a step, by the kind of recomputation.

    Forward, backward and output layer are as in `step_time`, in a third of its time, and so are the
    exchanges of tensor parallelism on one machine and the launches of each layer. What depends on
    the cluster is left out.
    """
    d = device(c.machine.accelerator)
    r = rates(c, d, k)
    layer = layer_time(c, s, r, k)
    layers, m = s.layers / c.pipeline, c.micro_batches
    links = cluster_links(c, d, k)
    tensor = tensor_time(c, s, links) if c.tensor > 1 else 0.0
    launch, routing = _overhead(c, s, d, k)
    each = layer.forward + layer.backward + tensor + routing
    rest = accumulation_time(c, s, r) + head_time(c, s, r, links, k) / c.pipeline
    again = (_recomputed(c, layer, kind) for kind in kinds)
    return tuple(
        m * ((each + more + (4 if more else 3) * launch) * layers + rest) * _ROUNDED
        for more in again
    )


def _overhead(c: Configuration, s: Sizes, d: Device, k: Coefficients) -> tuple[float, float]:
    """Return the seconds that one layer loses to launches, in each pass, and to routing tokens."""
    if _one_program(c, d):
        return 0.0, 0.0
    return k.layer_overhead_us * 1e-6, s.sparse * k.expert_layer_ms * 1e-3


def _one_program(c: Configuration, d: Device) -> bool:
    """Return whether the device executes a micro-batch as one program, not kernel by kernel.

    PyTorch Neuron collects its operations, compiles them, and executes them at ``mark_step``.
    """
    return c.whole_graph or d.generation == "neuron"


def _recomputed(c: Configuration, layer: LayerTime, kind: Recompute) -> float:
    """Return the seconds that a kind of recomputation adds to one layer and micro-batch."""
    match kind:
        case "full":
            seconds = layer.forward
        case "operators":
            seconds = layer.matmul_forward / 2 + layer.elementwise_forward
        case "attention" if c.attention == "unfused":
            seconds = layer.attention_forward
        case _:
            seconds = 0.0
    return seconds * c.recompute_share
