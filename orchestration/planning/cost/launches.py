"""Launches: the time in which the host tells the device what to compute."""

from __future__ import annotations

from typing import Final

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import Sizes

_EAGER: Final = (34.0, 88.0)
"""Kernels of a layer of transformers' Llama, forward and backward (traced with a dispatch mode of
PyTorch 2.13; views and shapes launch nothing)."""

_FUSED: Final = (16.0, 36.0)
"""The same with fused or compiled elementwise work: one kernel for each norm, rotary positions,
gating and attention beside the matrix products, and as many for gradients of inputs and weights."""

_NORM: Final = 7.0
"""Kernels that a norm takes more if it is not one."""

_ADAPTERS: Final = (50.0, 57.0)
"""Further kernels with adapters: of PEFT's LoRA on five to seven projections 40 to 58, and 45 to
69 (traced as above)."""

_UNPACKING: Final = 13.0
"""Kernels that unpack one matrix operator by operator."""

_MATRICES: Final = 5.0
"""Packed matrices in a layer: four of attention and three of a gated network, of which models store
some together."""


def launch_time(c: Configuration, s: Sizes, k: Coefficients) -> float:
    """Predict launching the kernels of one layer for one micro-batch, all passes.

    The host runs ahead of the device, which waits only if this takes longer than computing.
    """
    eager = c.kernels == "eager"
    forward, backward = _EAGER if eager else _FUSED
    if eager and (c.fused_norms or not s.rotary):
        forward, backward = forward - 2 * _NORM, backward - 4 * _NORM
    if c.trainable is not None:
        forward, backward = forward + _ADAPTERS[0], backward + _ADAPTERS[1]
    if c.frozen_bits:
        forward += _MATRICES * (_UNPACKING if c.separate_unpacking else 1)
        backward += 0 if c.separate_unpacking else _MATRICES
    again = {"full": 1.0, "operators": 0.5}.get(c.recompute, 0.0) * c.recompute_share
    return ((1 + again) * forward + backward) * k.launch_us * 1e-6
