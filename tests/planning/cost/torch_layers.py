"""Layers of GPT and Llama in torch, and the bytes that it saves for their backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch as untyped

torch: Any = untyped
Module: Any = torch.nn.Module
WIDTH, HEADS, TOKENS, BATCH = 128, 4, 64, 2


def saved_bytes(run: Callable[[], object], parameters: set[int]) -> int:
    """Bytes of the distinct tensors that autograd saves while `run` runs."""
    seen: dict[int, int] = {}

    def pack(tensor: object) -> object:
        storage = tensor.untyped_storage()  # type: ignore[attr-defined]  # torch's tensor
        if storage.data_ptr() not in parameters:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        alive = run()
    assert alive is not None
    return sum(seen.values())


class Norm(Module):  # type: ignore[misc]  # torch is not typed for us
    """Llama's norm, spelt out as torchtitan and transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):  # type: ignore[no-untyped-def]  # torch's tensors
        wide = x.float()
        normal = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x)
        return normal * self.weight


class Layer(Module):  # type: ignore[misc]  # torch is not typed for us
    """A layer of GPT, or, gated, of Llama."""

    def __init__(self, gated: bool) -> None:
        super().__init__()
        linear = torch.nn.Linear
        self.gated = gated
        self.before = Norm() if gated else torch.nn.LayerNorm(WIDTH, bias=False)
        self.between = Norm() if gated else torch.nn.LayerNorm(WIDTH, bias=False)
        self.mix = linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = linear(WIDTH, WIDTH, bias=False)
        self.up = linear(WIDTH, 4 * WIDTH, bias=False)
        self.gate = linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):  # type: ignore[no-untyped-def]  # torch's tensors
        heads = (BATCH, TOKENS, HEADS, WIDTH // HEADS)
        q, k, v = (
            part.reshape(heads).transpose(1, 2) for part in self.mix(self.before(x)).chunk(3, -1)
        )
        seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH))
        y = self.between(x)
        if self.gated:
            return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))
        return x + self.down(torch.nn.functional.gelu(self.up(y)))


def count(gated: bool, layers: int, recompute: bool = False) -> float:
    """Bytes per token and layer that torch saves."""
    stack = [Layer(gated).bfloat16() for _ in range(layers)]
    parameters = {p.untyped_storage().data_ptr() for layer in stack for p in layer.parameters()}
    x = torch.randn(BATCH, TOKENS, WIDTH, dtype=torch.bfloat16, requires_grad=True)

    def run() -> object:
        y = x
        for layer in stack:
            if recompute:
                y = torch.utils.checkpoint.checkpoint(layer, y, use_reentrant=False)
            else:
                y = layer(y)
        return y

    return saved_bytes(run, parameters) / (BATCH * TOKENS * layers)
