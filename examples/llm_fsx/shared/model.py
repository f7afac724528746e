"""A decoder-only transformer over bytes, and the file it is kept in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

VOCABULARY = 256
FILE = "model.pt"


@dataclass(frozen=True)
class Config:
    """1.2 billion parameters unless told otherwise: 12 x layers x width squared."""

    layers: int = 24
    width: int = 2048
    heads: int = 16
    context: int = 4096

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")


class Block(nn.Module):
    """Causal attention and a feed-forward layer, each normalised first and added to its input."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(config.width)
        self.query_key_value = nn.Linear(config.width, 3 * config.width, bias=False)
        self.attention_out = nn.Linear(config.width, config.width, bias=False)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(config.width),
            nn.Linear(config.width, 4 * config.width, bias=False),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * config.width, config.width, bias=False),
        )

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        projected = self.query_key_value(self.attention_norm(hidden))
        split = projected.view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))
        out: Tensor = hidden + self.feed_forward(hidden)
        return out


class ByteTransformer(nn.Module):
    """Predicts each next byte.

    `recompute` trades time for memory: activations inside blocks are computed again on the way
    back instead of kept.
    """

    def __init__(self, config: Config, *, recompute: bool = False) -> None:
        super().__init__()
        self.config = config
        self.recompute = recompute
        self.bytes = nn.Embedding(VOCABULARY, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, VOCABULARY, bias=False)
        self.apply(_initialise)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [batch, length, 256] for the byte after each one of `tokens` [batch, length]."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden: Tensor = self.bytes(tokens) + self.positions(positions)
        for block in self.blocks:
            if self.recompute and self.training:
                hidden = checkpoint(block, hidden, use_reentrant=False)
            else:
                hidden = block(hidden)
        logits: Tensor = self.head(self.norm(hidden))
        return logits


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)


def next_byte_loss(model: nn.Module, windows: Tensor) -> Tensor:
    """Mean cross-entropy, in nats per byte, of each byte given those before it in its window."""
    logits: Tensor = model(windows[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1).float(), windows[:, 1:].flatten())


def save(config: Config, state: dict[str, Any], directory: Path) -> None:
    torch.save({"config": asdict(config), "state_dict": state}, directory / FILE)


def load(directory: Path) -> ByteTransformer:
    """The network in a checkpoint or model folder, on the CPU, ready to predict."""
    if not (directory / FILE).is_file():
        found = sorted(path.name for path in directory.glob("*"))
        raise FileNotFoundError(f"no {FILE} in {directory}, which holds {found}")
    saved = torch.load(directory / FILE, map_location="cpu", weights_only=True)
    model = ByteTransformer(Config(**saved["config"]))
    model.load_state_dict(saved["state_dict"])
    return model.eval()
