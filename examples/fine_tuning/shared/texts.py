"""Lines of text as batches of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

HELD_OUT = "held-out.txt"


def to_train_on(folder: Path) -> list[str]:
    """Return the lines of all files of a folder but the one that is held back."""
    # Your code: read your texts here, an element for each sample.
    files = sorted(path for path in folder.glob("*.txt") if path.name != HELD_OUT)
    return [line for path in files for line in path.read_text("utf-8").splitlines()]


def batches(
    lines: list[str], tokenizer: Any, size: int, sequence: int
) -> Iterator[dict[str, Tensor]]:
    """Yield lines as tokens, padded at their ends, which no loss counts."""
    for start in range(0, len(lines), size):
        tokens = tokenizer(
            [line + tokenizer.eos_token for line in lines[start : start + size]],
            padding=True,
            truncation=True,
            max_length=sequence,
            return_tensors="pt",
        )
        labels = tokens.input_ids.masked_fill(tokens.attention_mask == 0, -100)
        attention = tokens.attention_mask
        yield {"input_ids": tokens.input_ids, "attention_mask": attention, "labels": labels}
