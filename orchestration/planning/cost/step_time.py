"""Time of one optimizer step, by part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.collectives import Links, cluster_links
from orchestration.planning.cost.compute import LayerTime, head_time, launch_times, layer_time
from orchestration.planning.cost.data_parallel import (
    Exchange,
    accumulation_time,
    exchange,
    exposed_exchange,
    optimizer_time,
)
from orchestration.planning.cost.devices import Device, device
from orchestration.planning.cost.model_parallel import (
    context_time,
    expert_time,
    fill_time,
    logits_time,
    tensor_time,
    transfer_time,
    wait_time,
)
from orchestration.planning.cost.rates import Rates, rates
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
    def in_replica(self) -> float:
        """Seconds of computing and of all communication inside a replica."""
        return (
            self.forward + self.backward + self.recompute + self.head + self.tensor + self.pipeline
        )

    @property
    def total(self) -> float:
        """Seconds of the whole step."""
        return self.in_replica + self.data + self.optimizer + self.other


ROUNDED: Final = 1 - 1e-12
"""A bound that adds the same terms in another order must not come out above them."""


@dataclass(frozen=True, slots=True)
class MicroTime:
    """Seconds of one micro-batch on one device, however many there are and whatever is sharded."""

    rates: Rates
    links: Links
    forward: float
    backward: float
    again: float
    """Computing what was not kept."""
    tensor: float
    launches: float
    head: float
    ahead: float
    """Time of the forward pass in which ranks can gather weights."""
    least: float
    """Least time that a micro-batch adds to a step."""

    def replica(self, c: Configuration, s: Sizes, k: Coefficients) -> ReplicaTime:
        """Return the time of all micro-batches in a step."""
        summing = accumulation_time(c, s, self.rates)
        stage = self.forward + self.backward + self.again + self.tensor + self.launches + summing
        m, layer = c.micro_batches, stage * c.pipeline / s.layers
        parts = StepTime(
            forward=m * self.forward,
            backward=m * (self.backward + summing),
            recompute=m * self.again,
            head=m * self.head / c.pipeline,
            tensor=m * self.tensor,
            pipeline=fill_time(c, stage + self.head / c.pipeline)
            + wait_time(c, s, layer, self.head, k.head_exposure)
            + transfer_time(c, s, self.links),
            data=0.0,
            optimizer=0.0,
            other=m * self.launches + k.step_overhead_ms * 1e-3,
        )
        return ReplicaTime(c, self.links, parts, self.ahead, stage - self.ahead)


@dataclass(frozen=True, slots=True)
class ReplicaTime:
    """The part of a step that depends neither on ranks that share states nor on offloading."""

    configuration: Configuration
    links: Links
    parts: StepTime
    """All parts but `data` and `optimizer`, which are 0."""
    ahead: float
    """Seconds of a micro-batch in which ranks can gather weights."""
    behind: float
    """Seconds of a micro-batch in which they can reduce gradients."""

    def exposed(self, exchanged: Exchange) -> float:
        """Return the seconds of a step that ranks with the same weights wait for each other."""
        return exposed_exchange(
            self.configuration, exchanged, self.links, forward=self.ahead, backward=self.behind
        )

    def seconds(self, exchanged: Exchange, optimizer: float) -> float:
        """Return the seconds of a whole step."""
        parts = self.parts
        return parts.in_replica + self.exposed(exchanged) + optimizer + parts.other


def step_time(c: Configuration, s: Sizes, k: Coefficients) -> StepTime:
    """Predict one optimizer step.

    Raises:
        ConfigurationError: the accelerator's rates are unknown.
    """
    micro = micro_time(c, s, k, device_time(c, s, k))
    replica = micro.replica(c, s, k)
    return replace(
        replica.parts,
        data=replica.exposed(exchange(c, s, micro.links)),
        optimizer=optimizer_time(c, s, micro.rates, k),
    )


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Computing of one micro-batch on one device, whatever links it to others.

    That of an average layer, in however many stages there are.
    """

    rates: Rates
    layer: LayerTime
    head: float
    head_again: float
    """Recomputing the output of the output layer."""


def device_time(c: Configuration, s: Sizes, k: Coefficients) -> DeviceTime:
    """Predict the computing of one micro-batch."""
    r = rates(c, device(c.machine.accelerator), k)
    return DeviceTime(r, layer_time(c, s, r, k), *head_time(c, s, r, k))


def micro_time(c: Configuration, s: Sizes, k: Coefficients, computing: DeviceTime) -> MicroTime:
    """Predict one micro-batch, with what it communicates inside a replica."""
    d = device(c.machine.accelerator)
    r, layer, links = computing.rates, computing.layer, cluster_links(c, d, k)
    head, gathered = computing.head, logits_time(c, s, links)
    if c.recomputed_head and c.recompute == "full":
        head, gathered = head + computing.head_again, 2 * gathered
    head += gathered
    layers = s.layers / c.pipeline
    again = _recomputed(c, layer, c.recompute, stops_early=c.stops_early) * layers
    joint = tensor_time(c, s, links) + expert_time(c, s, links)
    ring = context_time(c, s, links, layer)
    tensor = (joint + ring) * layers
    ring *= layer.attention_forward / (layer.attention_forward + layer.attention_backward)
    sent = (joint / 3 + ring) * layers  # in the forward pass
    launch, routing = _overhead(c, s, d, k)
    launches = layers * ((4 if again else 3) * launch + routing)
    forward, backward = layer.forward * layers, layer.backward * layers
    first, second = (0.0, 0.0) if _one_program(c, d) else launch_times(c, s, k)
    # The host runs ahead of what the device computes and of what it waits for from others.
    waiting = max(0.0, first * layers - forward - sent)
    launches += waiting + max(0.0, second * layers - backward - again - (tensor - sent))
    ahead = forward + waiting + sent
    least = (forward + backward + again + head / c.pipeline + tensor + launches) * ROUNDED
    return MicroTime(r, links, forward, backward, again, tensor, launches, head, ahead, least)


def computing_times(
    c: Configuration,
    s: Sizes,
    k: Coefficients,
    computing: DeviceTime,
    kinds: Iterable[Recompute],
) -> tuple[float, ...]:
    """Return the least seconds of a step, by the kind of recomputation.

    Forward, backward and output layer are as in `step_time`, in a third of its time, and so are the
    exchanges of tensor parallelism on one machine and the launches of each layer. What depends on
    the cluster is left out. Layouts share it whose engines may recompute less (`stops_early`).
    """
    d, layer = device(c.machine.accelerator), computing.layer
    layers, m = s.layers / c.pipeline, c.micro_batches
    tensor = tensor_time(c, s, cluster_links(c, d, k)) if c.tensor > 1 else 0.0
    launch, routing = _overhead(c, s, d, k)
    each = layer.forward + layer.backward + tensor + routing
    rest = accumulation_time(c, s, computing.rates) + computing.head / c.pipeline
    again = (_recomputed(c, layer, kind, stops_early=True) for kind in kinds)
    return tuple(
        m * ((each + more + (4 if more else 3) * launch) * layers + rest) * ROUNDED
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


def _recomputed(c: Configuration, layer: LayerTime, kind: Recompute, *, stops_early: bool) -> float:
    """Return the seconds that a kind of recomputation adds to one layer and micro-batch."""
    match kind:
        case "full":
            seconds = layer.forward - (layer.last_forward if stops_early else 0.0)
        case "operators":
            seconds = layer.matmul_forward / 2 + layer.elementwise_forward
        case "attention" if c.attention == "unfused":
            seconds = layer.attention_forward
        case _:
            seconds = 0.0
    return seconds * c.recompute_share
