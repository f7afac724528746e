"""Communication inside one replica of the model: tensor, context, expert and pipeline parallelism.

Times are those that computing does not hide, of one device.
"""

from __future__ import annotations

from orchestration.planning.coefficients import Coefficients
from orchestration.planning.collectives import Links, beside, gather, latency, reduce, transfer
from orchestration.planning.compute import LayerTime
from orchestration.planning.configuration import Configuration
from orchestration.planning.sizes import Sizes


def tensor_time(c: Configuration, s: Sizes, one: LayerTime, to: Links, k: Coefficients) -> float:
    """Tensor and context parallelism: one layer and micro-batch."""
    tokens = c.micro_batch * c.sequence / c.context
    seconds = 0.0
    if c.tensor > 1:
        inside = min(c.tensor, to.devices_per_node)
        each = reduce(2 * tokens * s.hidden, c.tensor, inside, to) + latency(c.tensor, inside, to)
        if c.deepspeed:
            each += k.sync_latency_us * 1e-6
        passes = 4 + (2 * c.recompute_share if c.recompute == "full" else 0)
        seconds += passes * each * _exposed(c, k)
    if c.context > 1:
        inside = min(c.context, max(1, to.devices_per_node // c.tensor))
        keys = 4 * tokens * s.keys / c.tensor
        ring = 3 * gather(keys * c.context, c.context, inside, to)
        attention = one.attention_forward + one.attention_backward
        seconds += beside(attention, ring, k.overlap_interference) - attention
    return seconds


def expert_time(c: Configuration, s: Sizes, to: Links, k: Coefficients) -> float:
    """Tokens on their way to their experts and back: one average layer and micro-batch."""
    if c.expert == 1 or not s.experts:
        return 0.0
    tokens = 2 * c.micro_batch * c.sequence / c.context / c.tensor * s.hidden
    inside = min(c.expert, max(1, to.devices_per_node // c.tensor))
    near = tokens * s.routed * (inside - 1) / c.expert / to.inside
    far = 0.0
    if c.expert > inside:
        # A token crosses to each other node once, however many of its experts are there.
        nodes = c.expert / inside
        copies = (nodes - 1) * (1 - (1 - 1 / nodes) ** s.routed)
        far = tokens * copies / (to.node / to.devices_per_node)
    exchanges = 4 * (max(near, far) + latency(c.expert, inside, to))
    return exchanges * _exposed(c, k) * s.sparse


def pipeline_time(
    c: Configuration, s: Sizes, stage: float, head: float, to: Links, k: Coefficients
) -> float:
    """What the pipeline adds to the work of an average stage: the whole step.

    It fills and drains (arXiv 2104.04473, section 2.2), waits for the last stage, which also has
    the output layer, and sends activations and their gradients on.
    """
    if c.pipeline == 1:
        return 0.0
    p, m = c.pipeline, c.micro_batches
    fill = (p - 1) / c.interleave * (stage + head / p)
    slowest = m * head * (1 - 1 / p) * k.head_exposure / c.interleave
    # Every tensor-parallel rank sends its share; the other stage gathers inside the node
    # (section 4.1).
    message = 2 * c.micro_batch * c.sequence / c.context * s.hidden / c.tensor
    crosses = c.machine.devices // p >= to.devices_per_node
    tied = 0.0
    if s.tied:
        # The first and the last stage sum the gradients of their copies of the embedding.
        tied = 2 * transfer(2 * s.embedding_parameters / c.tensor, crosses, to)
    sent = 2 * (m + p - 1) * c.interleave * transfer(message, crosses, to)
    return fill + slowest + tied + sent * _exposed(c, k)


def _exposed(c: Configuration, k: Coefficients) -> float:
    return k.tensor_exposed if c.overlap_tensor else 1.0
