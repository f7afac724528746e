"""PEFT's LoRA on one frozen matrix in torch, and the bytes that it moves.

Its operators are those of ``forward`` of ``Linear`` in PEFT's ``tuners/lora/layer.py``.
"""

from __future__ import annotations

from typing import Any

import torch as untyped
from torch.utils._python_dispatch import TorchDispatchMode as untyped_mode
from torch.utils._pytree import tree_leaves

torch: Any = untyped
Mode: Any = untyped_mode
TOKENS = 2048
_FREE = frozenset({"aten.t", "aten.view", "aten._unsafe_view", "aten.transpose", "aten.detach"})
"""Operators that move nothing."""


class Traffic(Mode):  # type: ignore[misc]  # torch is not typed for us
    """Sum the bytes of the tensors that operators read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):  # type: ignore[no-untyped-def]  # torch's tensors
        result = operator(*arguments, **(options or {}))
        if str(operator.overloadpacket) not in _FREE:
            tensors = [x for x in tree_leaves((arguments, options, result)) if torch.is_tensor(x)]
            self.bytes += sum(x.numel() * x.element_size() for x in tensors)
        return result


def count(inputs: int, outputs: int, *, wide: bool, dropout: bool) -> tuple[float, float]:
    """Bytes per token that an adapter of rank 1 moves: forward, backward.

    `wide`: it is in fp32, beside a matrix whose products take 16 bits.
    """
    without, adapted = (_moved(inputs, outputs, wide, dropout, each) for each in (False, True))
    return adapted[0] - without[0], adapted[1] - without[1]


def _moved(
    inputs: int, outputs: int, wide: bool, dropout: bool, adapted: bool
) -> tuple[float, float]:
    linear = torch.nn.Linear
    frozen = linear(inputs, outputs, bias=False).bfloat16().requires_grad_(False)
    dtype = torch.float32 if wide else torch.bfloat16
    first = linear(inputs, 1, bias=False).to(dtype)
    second = linear(1, outputs, bias=False).to(dtype)
    x = torch.randn(TOKENS, inputs, dtype=torch.bfloat16, requires_grad=True)
    with Traffic() as forward, torch.autocast("cpu", torch.bfloat16):
        result = frozen(x)
        if adapted:
            y = x.to(dtype)
            if dropout:  # as CUDA does it: one kernel, which also writes the mask
                y = torch.native_dropout(y, 0.05, True)[0]
            result = (result + second(first(y)) * 2.0).to(result.dtype)
    with Traffic() as backward:
        result.backward(torch.ones_like(result))
    return forward.bytes / TOKENS, backward.bytes / TOKENS
