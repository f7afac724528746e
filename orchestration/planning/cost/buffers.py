"""Memory that training engines and libraries allocate beside states and activations.

Sizes are those in the engines' source, for their default settings; none is fitted.
"""

from __future__ import annotations

from orchestration.planning.cost.model_states import (
    embedding_parameters,
    local_parameters,
    owned_parameters,
    parameter_bytes,
    stage_parameters,
    stored_gradient_bytes,
)
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

GIB = 2**30

_CONTEXT_GIB = 0.8
"""CUDA's context with the kernels of torch: 0.5 GiB if they load lazily (CUDA 11.7), 1.1 before."""

_COMMUNICATOR_GIB = 0.35
"""NCCL's channels for one group of ranks: 16 to 24, with buffers of 4 MiB for each of several
peers and protocols."""

_BUCKET = 5e8
"""Elements in one of DeepSpeed's two buckets for reducing gradients (``reduce_bucket_size``)."""

_LIVE = 1e9
"""Parameters that DeepSpeed's ZeRO 3 gathers ahead at most (``stage3_max_live_parameters``), and
those that it updates at once (``sub_group_size``)."""


def context_gib(c: Configuration) -> float:
    """Return the GiB of the driver's context and of communication libraries."""
    groups = (c.tensor, c.pipeline, c.context, c.expert, c.data)
    communicators = sum(ranks > 1 for ranks in groups) + (c.machine.devices > 1)
    return _CONTEXT_GIB + _COMMUNICATOR_GIB * communicators


def gathered_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes of weights and gradients that ZeRO 3 (FSDP) holds whole at once.

    FSDP gathers a layer and the next one, and holds the whole gradient of one layer, in the
    precision of the weights and in that of the reduction. Embedding and output layer are one unit
    that stays gathered, or two that are gathered like layers. DeepSpeed gathers up to a number of
    parameters.
    """
    if c.zero < 3 or c.shards == 1:
        return 0.0
    ends = embedding_parameters(c, s)
    layer = stage_parameters(c, s) / (s.layers / c.pipeline)
    element, reduced = c.element_bytes, parameter_bytes(c).gradient
    trained = c.trainable is None
    if c.deepspeed:
        weights = element * min(_LIVE, ends + local_parameters(c, s))
        return weights + (2 * element * min(_BUCKET, local_parameters(c, s)) if trained else 0.0)
    largest = layer
    if c.separate_ends:
        largest, ends = max(layer, ends if s.tied else ends / 2), 0.0
    # Packed matrices are gathered as they are stored (bitsandbytes' ``quant_storage``).
    stored = c.frozen_bits / 8 or element
    held = stored * layer + (stored if largest == layer else element) * largest + element * ends
    if not trained:
        return held
    if c.whole_gradients and c.micro_batches > 1:
        # There are no sharded gradients until the last micro-batch reduces the whole ones.
        sharded = stored_gradient_bytes(c) * owned_parameters(c, s)
        return held + max(0.0, reduced * local_parameters(c, s) - sharded)
    copy = reduced if reduced > element else 0
    return held + (element + copy) * largest + element * ends


def bucket_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes of the buffers in which ZeRO 1 and 2 of DeepSpeed reduce gradients."""
    if not c.deepspeed or c.zero not in (1, 2) or c.data == 1 or c.trainable is not None:
        return 0.0
    parameters = local_parameters(c, s)
    # With a pipeline, and bf16 weights, gradients are summed in fp32, and stage 1 shards none.
    whole = 2 * parameters if c.pipeline > 1 and c.precision == "bf16" else 0.0
    return whole + (2 if c.pipeline == 1 else 1) * c.element_bytes * min(_BUCKET, parameters)


def update_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes that an optimizer step needs when activations are gone.

    Kernels that are not fused hold intermediate results of every parameter. DeepSpeed flattens the
    gradients that a rank owns, copies them to fp32, and takes the norm of each tensor in fp64
    (``step`` and ``get_grad_norm_direct`` in ``stage_1_and_2.py``). ZeRO 3 does so for a part of
    the parameters at a time.
    """
    if c.offload != "none":
        return 0.0
    owned = owned_parameters(c, s)
    if not c.deepspeed:
        return c.update_bytes * owned
    if c.zero >= 3:
        return 4 * min(_LIVE, owned)
    largest = min(owned, s.hidden * max(s.words, s.up) / c.tensor)
    return (c.element_bytes + 4) * owned + 8 * largest
