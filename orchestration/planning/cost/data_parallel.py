"""What replicas of the model do together: sharing gradients and weights, and the optimizer step."""

from __future__ import annotations

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.collectives import Links, beside, gather, latency, reduce
from orchestration.planning.cost.model_states import (
    local_parameters,
    owned_parameters,
    parameter_bytes,
)
from orchestration.planning.cost.rates import Rates
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes


def data_time(c: Configuration, s: Sizes, to: Links, *, forward: float, backward: float) -> float:
    """Time of a step that gathering and reducing add to computing.

    `forward` and `backward` are the seconds of one micro-batch that communication may hide behind.
    """
    if c.data * c.context == 1:
        return 0.0
    if c.zero < 3:
        return _once(c, s, to, forward, backward)
    return c.micro_batches * _sharded(c, s, to, forward, backward)


def optimizer_time(c: Configuration, s: Sizes, r: Rates, k: Coefficients) -> float:
    """The update of what one device owns, on the device or by its host."""
    parameters = owned_parameters(c, s)
    if c.offload == "none":
        return parameters * k.optimizer_bytes / r.memory
    sharing = min(c.machine.devices, c.machine.devices_per_node)
    return parameters * sharing / (k.host_optimizer_gps * 1e9)


def _once(c: Configuration, s: Sizes, to: Links, forward: float, backward: float) -> float:
    """Once a step: an all-reduce of the gradients, or with ZeRO 1 and 2 its two halves."""
    ranks, inside = _ranks(c, to)
    parameters = c.trainable or local_parameters(c, s)
    gradient = parameter_bytes(c).gradient
    share = gather(gradient * parameters, ranks, inside, to)
    fetch = gather((c.element_bytes if c.zero else gradient) * parameters, ranks, inside, to)
    if c.deepspeed:
        share *= 2  # every rank gets whole gradients
    wait = 2 * s.layers / c.pipeline * latency(ranks, inside, to)
    if not c.overlap_data:
        return share + fetch + wait
    return beside(backward, share, to) + beside(forward, fetch, to) + wait


def _sharded(c: Configuration, s: Sizes, to: Links, forward: float, backward: float) -> float:
    """Every micro-batch: weights gathered for both passes, gradients reduced and scattered.

    Hybrid sharding also sums the scattered gradients among its groups.
    """
    ranks, inside = _ranks(c, to)
    parameters = local_parameters(c, s)
    shards = min(c.shards, ranks)
    near = min(shards, inside)
    gradients = parameter_bytes(c).gradient * float(c.trainable or parameters)
    fetch = gather(c.element_bytes * parameters, shards, near, to)
    share = gather(gradients, shards, near, to)
    if shards < ranks:
        share += reduce(gradients / shards, ranks // shards, max(1, inside // near), to)
    wait = 3 * s.layers / c.pipeline * latency(shards, near, to)
    if not c.overlap_data:
        return 2 * fetch + share + wait
    return beside(forward, fetch, to) + beside(backward, fetch + share, to) + wait


def _ranks(c: Configuration, to: Links) -> tuple[int, int]:
    """Ranks that hold the same weights, and how many of them share a node."""
    ranks = c.data * c.context
    return ranks, max(1, min(ranks, to.devices_per_node // c.tensor))
