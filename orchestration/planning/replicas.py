"""What replicas of the model do together: sharing gradients and weights, and the optimizer step."""

from __future__ import annotations

from orchestration.planning.coefficients import Coefficients
from orchestration.planning.collectives import Links, beside, gather, latency, reduce
from orchestration.planning.configuration import Configuration
from orchestration.planning.rates import Rates
from orchestration.planning.sizes import Sizes
from orchestration.planning.states import local_parameters, parameter_bytes


def data_time(
    c: Configuration, s: Sizes, forward: float, backward: float, to: Links, k: Coefficients
) -> float:
    """Time of a step that gathering and reducing add to computing.

    `forward` and `backward` are the seconds of one micro-batch that communication may hide behind.
    """
    ranks = c.data * c.context
    if ranks == 1:
        return 0.0
    inside = max(1, min(ranks, to.devices_per_node // c.tensor))
    if c.zero < 3:
        return _once(c, s, forward, backward, ranks, inside, to, k)
    return c.micro_batches * _sharded(c, s, forward, backward, ranks, inside, to, k)


def optimizer_time(c: Configuration, s: Sizes, r: Rates, k: Coefficients) -> float:
    """The update of what one device owns, on the device or by its host."""
    parameters = c.trainable or local_parameters(c, s)
    if c.zero:
        parameters /= c.shards
    if c.offload == "none":
        return parameters * k.optimizer_bytes / r.memory
    sharing = min(c.machine.devices, c.machine.devices_per_node)
    return parameters * sharing / (k.host_optimizer_gps * 1e9)


def _once(
    c: Configuration, s: Sizes, forward: float, backward: float, ranks: int, inside: int,
    to: Links, k: Coefficients,
) -> float:  # fmt: skip
    """Once a step: an all-reduce of the gradients, or with ZeRO 1 and 2 its two halves."""
    parameters = c.trainable or local_parameters(c, s)
    gradient = parameter_bytes(c).gradient
    share = gather(gradient * parameters, ranks, inside, to)
    fetch = gather((2 if c.zero else gradient) * parameters, ranks, inside, to)
    if c.deepspeed:
        share *= 2  # every rank gets whole gradients
    wait = 2 * s.layers / c.pipeline * latency(ranks, inside, to)
    if not c.overlap_data:
        return share + fetch + wait
    x = k.overlap_interference
    return beside(backward, share, x) - backward + beside(forward, fetch, x) - forward + wait


def _sharded(
    c: Configuration, s: Sizes, forward: float, backward: float, ranks: int, inside: int,
    to: Links, k: Coefficients,
) -> float:  # fmt: skip
    """Every micro-batch: weights gathered for both passes, gradients reduced and scattered.

    Hybrid sharding also sums the scattered gradients among its groups.
    """
    parameters = local_parameters(c, s)
    shards = min(c.shards, ranks)
    near = min(shards, inside)
    gradients = parameter_bytes(c).gradient * float(c.trainable or parameters)
    fetch = gather(2 * parameters, shards, near, to)
    share = gather(gradients, shards, near, to)
    if shards < ranks:
        share += reduce(gradients / shards, ranks // shards, max(1, inside // near), to)
    x = k.overlap_interference
    hidden = forward + backward
    both = beside(forward, fetch, x) + beside(backward, fetch + share, x)
    return both - hidden + 3 * s.layers / c.pipeline * latency(shards, near, to)
