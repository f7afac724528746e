"""Work between replicas of the model: reducing gradients, gathering weights, the optimizer."""

from __future__ import annotations

from typing import Final, NamedTuple

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.collectives import (
    Links,
    broadcast_latency,
    exposed_time,
    gather,
    latency,
    reduce,
)
from orchestration.planning.cost.model_states import (
    has_master_weights,
    local_experts,
    local_parameters,
    owned_parameters,
    parameter_bytes,
)
from orchestration.planning.cost.rates import Rates
from orchestration.planning.model.configuration import Configuration, Machine
from orchestration.planning.model.layer_sizes import Sizes

_HOST_BYTES_PER_VCPU = 1.3e9
"""Bytes per second of host memory that the optimizer reaches with each virtual processor: Adam
moves 28 for each of 10^9 parameters in 0.22 s on 96 of them (https://arxiv.org/abs/2101.06840,
table 4)."""

_HOST_BYTES_PER_THREAD = 13.3e9
"""The same of one thread if others leave it the memory: 536.9 million parameters, each in 12 passes
over 4 bytes, in 1.93 s beside eight H100 (https://github.com/ISEEKYAN/Megatron-LM/issues/188)."""

_VCPUS_PER_DEVICE = 12
"""Virtual processors per device where nobody says how many: those of a p4d."""

_SCALING = 8
"""Bytes by which DeepSpeed reads and writes a gradient in fp32 to scale and clip it, on the host
(``unscale_and_clip_grads`` in ``stage3.py`` and ``stage_1_and_2.py``)."""


_PAGEABLE_TO_HOST = 1.4e9
"""Bytes per second that copies from an A100 to pageable memory reach, beside 12.6 to pinned memory
(https://github.com/pytorch/pytorch/pull/138018)."""

_PAGEABLE_FROM_HOST = 1 / 6
"""Rate of copies from pageable memory over that from pinned memory
(https://github.com/deepspeedai/DeepSpeed/pull/5301)."""


_TENSORS: Final = 9
"""Tensors of a layer that InternEvo's ranks share out: five matrices, two biases and two norms
(``PackedFlashBaseLayer1D`` in ``model/modeling_internlm.py``)."""


_Group = tuple[float, int, int]


def data_time(
    c: Configuration, s: Sizes, links: Links, *, forward: float, backward: float
) -> float:
    """Predict the seconds that gathering and reducing add to the computing of a step.

    Communication can overlap with `forward` and `backward`, the seconds of one micro-batch.
    """
    return exposed_exchange(c, exchange(c, s, links), links, forward=forward, backward=backward)


class Exchange(NamedTuple):
    """Seconds of exchanging states, by themselves: of a step, or of a micro-batch with ZeRO 3."""

    fetch: float = 0.0
    """Gathering weights once."""
    share: float = 0.0
    """Reducing gradients once."""
    wait: float = 0.0
    """Latencies that nothing hides."""


def exchange(c: Configuration, s: Sizes, links: Links) -> Exchange:
    """Predict what ranks with the same weights exchange, whatever the batch is split into."""
    if c.data * c.context == 1:
        return Exchange()
    return _replicated(c, s, links) if c.zero < 3 else _sharded(c, s, links)


def exposed_exchange(
    c: Configuration, e: Exchange, links: Links, *, forward: float, backward: float
) -> float:
    """Return the part of an exchange that adds to the computing of a step.

    ZeRO 3 gathers weights in both passes of every micro-batch and reduces gradients in the second.
    ZeRO 2 of DeepSpeed reduces gradients of every micro-batch, as it keeps only its part of them
    (``reduce_ready_partitions_and_remove_grads`` in ``stage_1_and_2.py``).
    """
    fetch, share, wait = e
    if c.zero >= 3:
        if not c.overlap_data:
            return c.micro_batches * (2 * fetch + share + wait)
        exposed = exposed_time(forward, fetch, links) + exposed_time(backward, fetch + share, links)
        return c.micro_batches * (exposed + wait)
    times = c.micro_batches if c.deepspeed and c.zero == 2 else 1
    if not c.overlap_data:
        return times * share + fetch + wait
    exposed = times * exposed_time(backward, share, links)
    return exposed + exposed_time(forward, fetch, links) + wait


def optimizer_time(c: Configuration, s: Sizes, r: Rates, k: Coefficients) -> float:
    """Predict updating the parameters that one device owns, on the device or on its host.

    A host receives gradients after every micro-batch, and sends weights back after the update. If
    it also holds the weights, both passes of every micro-batch fetch them. DeepSpeed sums gradients
    on the device, so that all but the first micro-batch fetch the sum, and sends it in fp32 at last
    (``async_accumulate_grad_in_cpu_via_gpu`` in ``stage_1_and_2.py``, ``partition_grads`` in
    ``stage3.py``).
    """
    parameters = owned_parameters(c, s)
    if c.offload == "none":
        more = c.update_traffic if c.optimizer == "adamw" else 1.0
        moved = k.optimizer_traffic * more * updated_bytes(c)
        return parameters * moved / r.memory
    gradient = parameter_bytes(c).gradient
    sent, fetched = c.micro_batches * gradient, c.element_bytes
    if c.deepspeed:
        sent += 0 if c.micro_batches == 1 else 4
        fetched += (c.micro_batches - 1) * gradient
    if c.offload == "all":
        fetched += 2 * c.micro_batches * c.element_bytes
    to_host = _PAGEABLE_TO_HOST if c.pageable else r.host
    from_host = r.host * (_PAGEABLE_FROM_HOST if c.pageable else 1.0)
    copying = sent / to_host + fetched / from_host
    return parameters * (updated_bytes(c) / host_rate(c.machine) + copying)


def updated_bytes(c: Configuration) -> float:
    """Return the bytes that updating one parameter moves in the memory of the device or its host.

    An update reads gradient and states, and writes the states: the weight is one of them, in fp32
    in mixed precision, and then another pass makes it 16 bits wide.
    """
    each = parameter_bytes(c)
    master = has_master_weights(c)
    states = each.optimizer + (0 if master else each.weight)
    moved = (4 if master else each.gradient) + 2 * states
    if c.deepspeed:
        moved += _SCALING
    return moved + (4 + each.weight if master else 0)


def host_rate(machine: Machine) -> float:
    """Return the bytes per second of its memory that a host moves for each of its devices."""
    sharing = min(machine.devices, machine.devices_per_node)
    vcpus = machine.vcpus or _VCPUS_PER_DEVICE * machine.devices_per_node
    shared = vcpus * _HOST_BYTES_PER_VCPU / sharing
    if machine.host_threads is None:
        return shared
    return min(shared, machine.host_threads * _HOST_BYTES_PER_THREAD)


def accumulation_time(c: Configuration, s: Sizes, r: Rates) -> float:
    """Predict adding the gradients of a micro-batch to those before it.

    Autograd reads both and writes the sum, of every micro-batch but the first. Megatron's fused
    kernels add to a sum in the precision of the reduction, unless DeepSpeed's engine drives them.
    FSDP and ZeRO 3 copy whole gradients to the buffer that they reduce.
    """
    trained = local_parameters(c, s) if c.trainable is None else float(c.trainable)
    gradient = parameter_bytes(c).gradient
    if c.zero >= 3:
        return trained * (c.element_bytes + gradient) / r.memory
    if c.kernels == "fused" and not c.deepspeed:
        return trained * (2 * gradient - c.element_bytes) / r.memory
    return (1 - 1 / c.micro_batches) * trained * 3 * gradient / r.memory


def _replicated(c: Configuration, s: Sizes, links: Links) -> Exchange:
    """Predict one all-reduce of gradients, or its two halves with ZeRO 1 and 2."""
    groups = _trained(c, _groups(c, s, links))
    gradient = c.reduced_bytes or parameter_bytes(c).gradient
    weight = c.element_bytes if c.zero else gradient
    share = sum(gather(gradient * n, ranks, near, links) for n, ranks, near in groups)
    fetch = sum(gather(weight * n, ranks, near, links) for n, ranks, near in groups)
    if c.whole_reduction and c.zero:
        share *= 2
    _, ranks, inside = groups[0]
    wait = 2 * s.layers / c.pipeline * latency(ranks, inside, links)
    if c.broadcast_weights and c.zero:
        return Exchange(0.0, share, wait + _broadcast_time(c, s, links, groups))
    return Exchange(fetch, share, wait)


def _broadcast_time(c: Configuration, s: Sizes, links: Links, groups: list[_Group]) -> float:
    """Predict the broadcasts of updated weights, which wait for each other.

    A tensor is on one rank, so that no more ranks than there are tensors have something to send
    (InternEvo's ``_partition_param_list`` and ``broadcast_params``).
    """
    seconds, tensors = 0.0, _TENSORS * s.layers / c.pipeline
    for parameters, ranks, inside in groups:
        owners = min(c.shards, ranks)
        near = min(owners, inside)
        seconds += gather(c.element_bytes * parameters, owners, near, links)
        seconds += min(owners, tensors) * broadcast_latency(owners, near, links)
    return seconds


def _sharded(c: Configuration, s: Sizes, links: Links) -> Exchange:
    """Predict one gathering of weights with FSDP, and one reduce-scatter of gradients.

    Hybrid sharding also sums the scattered gradients across its groups.
    """
    fetch = share = 0.0
    gradient = parameter_bytes(c).gradient
    weights = _groups(c, s, links)
    for parameters, ranks, inside in weights:
        shards = min(_shards(c, ranks), ranks)
        fetch += gather(c.element_bytes * parameters, shards, min(shards, inside), links)
    for parameters, ranks, inside in _trained(c, weights):
        shards = min(_shards(c, ranks), ranks)
        near = min(shards, inside)
        share += gather(gradient * parameters, shards, near, links)
        if shards < ranks:
            across = max(1, inside // near)
            share += reduce(gradient * parameters / shards, ranks // shards, across, links)
    _, ranks, inside = weights[0]
    shards = min(c.shards, ranks)
    wait = 3 * s.layers / c.pipeline * latency(shards, min(shards, inside), links)
    return Exchange(fetch, share, wait)


def _shards(c: Configuration, ranks: int) -> int:
    """Return over how many of the ranks with the same weights these are sharded."""
    return max(1, c.shards * ranks // (c.data * c.context))


def _trained(c: Configuration, groups: list[_Group]) -> list[_Group]:
    """Return the groups whose gradients are reduced: only those of an adapter, if there is one."""
    if c.trainable is None:
        return groups
    _, ranks, inside = groups[0]
    return [(float(c.trainable), ranks, inside)]


def _groups(c: Configuration, s: Sizes, links: Links) -> list[_Group]:
    """Return parameters of a device, the ranks that have the same, and those of them in a node.

    Expert parallelism leaves fewer ranks with the same experts than with the same other weights.
    """
    ranks, inside = _ranks(c, links)
    experts = local_experts(c, s)
    common = (local_parameters(c, s) - experts, ranks, inside)
    if not experts:
        return [common]
    return [common, (experts, max(1, ranks // c.expert), max(1, inside // c.expert))]


def _ranks(c: Configuration, links: Links) -> tuple[int, int]:
    """Return the number of ranks with the same weights, and how many of them share a node."""
    ranks = c.data * c.context
    return ranks, max(1, min(ranks, links.devices_per_node // c.tensor))
