"""Communication inside one replica of the model: tensor, context, expert and pipeline parallelism.

All functions return seconds of one device that computing does not hide.
"""

from __future__ import annotations

from math import gcd

from orchestration.planning.cost.collectives import (
    Links,
    exposed_time,
    gather,
    latency,
    reduce,
    transfer,
)
from orchestration.planning.cost.compute import LayerTime
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

_ENDS = 3
"""Modules of a model beside its layers: embedding, final norm and output layer."""


def tensor_time(c: Configuration, s: Sizes, links: Links) -> float:
    """Predict tensor parallelism of one layer and micro-batch."""
    if c.tensor == 1:
        return 0.0
    inside = min(c.tensor, links.devices_per_node)
    tokens = c.micro_batch * c.sequence / c.context
    result = c.element_bytes * tokens * s.hidden
    each = reduce(result, c.tensor, inside, links) + latency(c.tensor, inside, links)
    # Attention and the feed-forward network end in one collective each: in the forward pass, in
    # the backward pass, and when recomputed.
    collectives = 4 + (2 * c.recompute_share if c.recompute == "full" else 0)
    if c.separate_projections and s.gated and not c.sequence_parallel:
        collectives += 1
    return collectives * (each + links.sync) * links.exposed


def logits_time(c: Configuration, s: Sizes, links: Links) -> float:
    """Predict gathering the logits of the whole vocabulary of one micro-batch once."""
    if c.tensor == 1 or not c.whole_logits:
        return 0.0
    logits = c.element_bytes * c.micro_batch * c.sequence / c.context * s.words
    return gather(logits, c.tensor, min(c.tensor, links.devices_per_node), links)


def context_time(c: Configuration, s: Sizes, links: Links, layer: LayerTime) -> float:
    """Predict context parallelism of one layer: a ring passes keys and values during attention."""
    if c.context == 1:
        return 0.0
    inside = min(c.context, max(1, links.devices_per_node // c.tensor))
    pair = 2 * c.element_bytes * s.keys / c.tensor
    ring = 3 * gather(pair * c.micro_batch * c.sequence, c.context, inside, links)
    return exposed_time(layer.attention_forward + layer.attention_backward, ring, links)


def expert_time(c: Configuration, s: Sizes, links: Links) -> float:
    """Predict sending tokens to experts and back, for one average layer and micro-batch."""
    if c.expert == 1 or not s.experts:
        return 0.0
    tokens = c.micro_batch * c.sequence / c.context / c.tensor * s.hidden * c.element_bytes
    inside = min(c.expert, max(1, links.devices_per_node // c.tensor))
    copies = _reached(c, s, c.expert) if c.joined_dispatch else float(s.routed)
    near = tokens * copies * (inside - 1) / c.expert / links.inside
    far = 0.0
    if c.expert > inside:
        # A token goes to each other node at most once, however many of its experts are there.
        nodes = c.expert / inside
        copies = _reached(c, s, nodes) * (1 - 1 / nodes)
        far = tokens * copies / (links.node / links.devices_per_node)
    exchanges = 4 * (max(near, far) + latency(c.expert, inside, links))
    return exchanges * links.exposed * s.sparse


def _reached(c: Configuration, s: Sizes, places: float) -> float:
    """Return over how many of the devices, or nodes, that share the experts a token's are spread.

    Experts are independent, unless a benchmark's gate counts through them: it begins at multiples
    of the number that a token passes.
    """
    if not c.consecutive_experts:
        return places * (1 - (1 - 1 / places) ** s.routed)
    each = max(1, round(s.experts / places))
    return min(places, 1 + (s.routed - gcd(s.routed, each)) / each)


def fill_time(c: Configuration, stage: float) -> float:
    """Predict filling and draining a pipeline whose stages take `stage` seconds per micro-batch.

    https://arxiv.org/abs/2104.04473, section 2.2.
    """
    return (c.pipeline - 1) / c.interleave * stage


def wait_time(c: Configuration, s: Sizes, layer: float, head: float, exposure: float) -> float:
    """Predict how long the average stage waits, per step, for the one that takes longest.

    The last one also has the output layer. Where stages have as many modules each, others have more
    layers instead; the first ones have what does not divide.
    """
    if not c.even_modules or c.pipeline == 1:
        return c.micro_batches * head * (1 - 1 / c.pipeline) * exposure / c.interleave
    modules, further = divmod(s.layers + _ENDS, c.pipeline)
    first, last = modules - 1 + (further > 0), modules - (_ENDS - 1)
    between = modules + (further > 1) if c.pipeline > 2 else first
    slowest = max(max(first, between) * layer, last * layer + head)
    return c.micro_batches * (slowest - (s.layers * layer + head) / c.pipeline)


def transfer_time(c: Configuration, s: Sizes, links: Links) -> float:
    """Predict sending activations and their gradients between stages, per step."""
    if c.pipeline == 1:
        return 0.0
    # Every tensor-parallel rank sends its part, and the next stage gathers the parts in its node
    # (https://arxiv.org/abs/2104.04473, section 4.1).
    tokens = c.micro_batch * c.sequence / c.context
    whole = c.whole_transfers and not c.sequence_parallel
    message = c.element_bytes * tokens * s.hidden / (1 if whole else c.tensor)
    crosses = c.machine.devices // c.pipeline >= links.devices_per_node
    each = transfer(message, crosses, links) + 4 * links.sync
    sent = 2 * (c.micro_batches + c.pipeline - 1) * c.interleave * each * links.exposed
    if not s.tied:
        return sent
    # The first and the last stage sum the gradients of their copies of the embedding.
    embedding = c.element_bytes * s.embedding_parameters / c.tensor
    return sent + 2 * transfer(embedding, crosses, links)
