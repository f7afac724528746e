"""Memory that training engines and libraries allocate beside states and activations.

Sizes are those in the engines' source, for their default settings; none is fitted.
"""

from __future__ import annotations

from orchestration.planning.cost.model_states import (
    embedding_parameters,
    local_parameters,
    owned_parameters,
    parameter_bytes,
    stage_layers,
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
    that stays gathered, or two that are gathered like layers.
    """
    if c.zero < 3:
        return 0.0
    if c.deepspeed:
        return _deepspeed_bytes(c, s)
    if c.shards == 1:
        return _unreduced_bytes(c, s)
    ends = embedding_parameters(c, s)
    layer = stage_parameters(c, s) / stage_layers(c, s)
    element, reduced = c.element_bytes, parameter_bytes(c).gradient
    trained = c.trainable is None
    largest = layer
    if c.separate_ends:
        largest, ends = max(layer, ends if s.tied else ends / 2), 0.0
    # Packed matrices are gathered as they are stored (bitsandbytes' ``quant_storage``).
    stored = c.frozen_bits / 8 or element
    held = stored * layer + (stored if largest == layer else element) * largest + element * ends
    if not trained:
        return held
    if unreduced := _unreduced_bytes(c, s):
        return held + unreduced
    copy = reduced if reduced > element else 0
    return held + (element + copy) * largest + element * ends


def _deepspeed_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes of weights that ZeRO 3 of DeepSpeed gathers, and of gradients in its bucket.

    It gathers up to a number of parameters, and none for one rank. A gradient larger than the
    bucket is reduced by itself; what is reduced is copied for it (``__add_grad_to_ipg_bucket`` in
    ``stage3.py``, ``reduce_scatter_coalesced``). The bucket is there whatever is trained,
    and no larger than a model for which somebody chose it.
    """
    local, ends = local_parameters(c, s), embedding_parameters(c, s)
    gathered = min(_LIVE, ends + local) if c.shards > 1 else 0.0
    largest = s.hidden * max(s.words, s.up) / c.tensor
    bucket = min(c.reduce_bucket, local)
    reduced = 2 * max(bucket, largest) if c.trainable is None else bucket
    return c.element_bytes * (gathered + reduced)


def _unreduced_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes by which whole gradients that FSDP accumulates exceed sharded ones.

    Of the latter there are none until the last micro-batch reduces the whole ones.
    """
    if c.deepspeed or c.trainable is not None or not c.whole_gradients or c.micro_batches == 1:
        return 0.0
    sharded = stored_gradient_bytes(c) * owned_parameters(c, s)
    return max(0.0, parameter_bytes(c).gradient * local_parameters(c, s) - sharded)


def bucket_bytes(c: Configuration, s: Sizes) -> float:
    """Return the bytes of the buffers in which ZeRO 1 and 2 of DeepSpeed reduce gradients.

    Without a pipeline there are two for every backward pass, whatever is trained, and on one rank
    too (``backward`` in ``stage_1_and_2.py``). Nobody takes buckets larger than the model.
    """
    if not c.deepspeed or c.zero not in (1, 2):
        return 0.0
    # With a pipeline, and bf16 weights, gradients are summed in fp32, and stage 1 shards none.
    parameters = local_parameters(c, s)
    whole = 2 * parameters if c.pipeline > 1 and c.precision == "bf16" and c.data > 1 else 0.0
    buffers = 2 if c.pipeline == 1 else 1
    return whole + buffers * c.element_bytes * min(c.reduce_bucket, parameters)


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
        return (c.element_bytes + 4) * min(_LIVE, owned)
    # The matrices of an adapter are small.
    largest = 0.0 if c.trainable is not None else s.hidden * max(s.words, s.up) / c.tensor
    largest = min(owned, largest)
    return (c.element_bytes + 4) * owned + 8 * largest
