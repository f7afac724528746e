"""Communication inside one replica of the model: tensor, context, expert and pipeline parallelism.

Times are those that computing does not hide, of one device.
"""

from __future__ import annotations

from orchestration.planning.cost.collectives import Links, beside, gather, latency, reduce, transfer
from orchestration.planning.cost.compute import LayerTime
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes


def tensor_time(c: Configuration, s: Sizes, to: Links) -> float:
    """Tensor parallelism: one layer and micro-batch."""
    if c.tensor == 1:
        return 0.0
    inside = min(c.tensor, to.devices_per_node)
    tokens = c.micro_batch * c.sequence / c.context
    result = c.element_bytes * tokens * s.hidden
    each = reduce(result, c.tensor, inside, to) + latency(c.tensor, inside, to)
    # Attention and the feed-forward network end in one each, forward, backward and recomputed.
    collectives = 4 + (2 * c.recompute_share if c.recompute == "full" else 0)
    return collectives * (each + to.sync) * to.exposed


def context_time(c: Configuration, s: Sizes, to: Links, one: LayerTime) -> float:
    """Context parallelism, which passes keys and values on while attention runs: one layer."""
    if c.context == 1:
        return 0.0
    inside = min(c.context, max(1, to.devices_per_node // c.tensor))
    pair = 2 * c.element_bytes * s.keys / c.tensor
    ring = 3 * gather(pair * c.micro_batch * c.sequence, c.context, inside, to)
    return beside(one.attention_forward + one.attention_backward, ring, to)


def expert_time(c: Configuration, s: Sizes, to: Links) -> float:
    """Tokens on their way to their experts and back: one average layer and micro-batch."""
    if c.expert == 1 or not s.experts:
        return 0.0
    tokens = c.micro_batch * c.sequence / c.context / c.tensor * s.hidden * c.element_bytes
    inside = min(c.expert, max(1, to.devices_per_node // c.tensor))
    near = tokens * s.routed * (inside - 1) / c.expert / to.inside
    far = 0.0
    if c.expert > inside:
        # A token crosses to each other node once, however many of its experts are there.
        nodes = c.expert / inside
        copies = (nodes - 1) * (1 - (1 - 1 / nodes) ** s.routed)
        far = tokens * copies / (to.node / to.devices_per_node)
    exchanges = 4 * (max(near, far) + latency(c.expert, inside, to))
    return exchanges * to.exposed * s.sparse


def fill_time(c: Configuration, stage: float) -> float:
    """Time that a pipeline fills and drains, for a stage that takes so long per micro-batch.

    https://arxiv.org/abs/2104.04473, section 2.2.
    """
    return (c.pipeline - 1) / c.interleave * stage


def wait_time(c: Configuration, head: float, exposure: float) -> float:
    """Time that stages wait for the last one, which has the output layer on top: the whole step."""
    return c.micro_batches * head * (1 - 1 / c.pipeline) * exposure / c.interleave


def transfer_time(c: Configuration, s: Sizes, to: Links) -> float:
    """Activations and their gradients on their way between stages: the whole step."""
    if c.pipeline == 1:
        return 0.0
    # Every tensor-parallel rank sends its share, which the other stage gathers inside its node
    # (https://arxiv.org/abs/2104.04473, section 4.1).
    tokens = c.micro_batch * c.sequence / c.context
    message = c.element_bytes * tokens * s.hidden / c.tensor
    crosses = c.machine.devices // c.pipeline >= to.devices_per_node
    each = transfer(message, crosses, to) + 4 * to.sync
    sent = 2 * (c.micro_batches + c.pipeline - 1) * c.interleave * each * to.exposed
    if not s.tied:
        return sent
    # The first and the last stage sum the gradients of their copies of the embedding.
    embedding = c.element_bytes * s.embedding_parameters / c.tensor
    return sent + 2 * transfer(embedding, crosses, to)
