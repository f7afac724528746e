"""Text files as windows of bytes, mapped into memory: a file system serves what is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor


@dataclass(frozen=True)
class Corpus:
    """Bytes of several files; a window lies within one file."""

    texts: tuple[Tensor, ...]
    window: int

    def __post_init__(self) -> None:
        if not self.texts:
            raise ValueError(f"no text is as long as one window of {self.window} bytes")

    @property
    def _ends(self) -> list[int]:
        return list(accumulate(len(text) - self.window + 1 for text in self.texts))

    def __len__(self) -> int:
        """How many windows there are, counting one for each byte at which one can start."""
        return self._ends[-1]

    def windows(self, starts: Iterable[int]) -> Tensor:
        """Windows as int64 [n, window]."""
        ends = self._ends
        rows = []
        for start in starts:
            index = bisect_right(ends, start)
            offset = start - (ends[index - 1] if index else 0)
            rows.append(self.texts[index][offset : offset + self.window])
        return torch.stack(rows).long()

    def batch(self, *, seed: int, step: int, rank: int, world_size: int, size: int) -> Tensor:
        """One replica's share of a step's random windows.

        The step alone decides the windows, so a resumed run goes on where the last one stopped
        without a record of what was read, whatever its number of replicas.
        """
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        starts = torch.randint(len(self), (world_size * size,), generator=generator)
        return self.windows(starts[rank * size : (rank + 1) * size].tolist())

    def consecutive(self, size: int) -> Iterator[Tensor]:
        """Batches of windows that cover each text once, but for a last part shorter than one.

        Windows overlap by one byte, so that every byte but a text's first is predicted once.
        """
        for text in self.texts:
            rows = text.unfold(0, self.window, self.window - 1)
            for batch in torch.split(rows, size):
                yield batch.long()


def read(directory: Path, pattern: str) -> list[Tensor]:
    """The files that match, in the order of their names, each a uint8 tensor."""
    paths = sorted(directory.glob(pattern))
    if not paths:
        found = sorted(path.name for path in directory.glob("*"))
        raise FileNotFoundError(f"no {pattern} in {directory}, which holds {found}")
    sizes = [path.stat().st_size for path in paths]
    return [
        torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8)
        for path, size in zip(paths, sizes, strict=True)
        if size
    ]


def long_enough(texts: Iterable[Tensor], window: int) -> Corpus:
    return Corpus(tuple(text for text in texts if len(text) >= window), window)


def train_and_validation(directory: Path, window: int) -> tuple[Corpus, Corpus]:
    """What to train on, and the last twentieth of each file to tell checkpoints apart."""
    texts = read(directory, "train*.txt")
    cuts = [len(text) * 19 // 20 for text in texts]
    pairs = list(zip(texts, cuts, strict=True))
    return (
        long_enough((text[:cut] for text, cut in pairs), window),
        long_enough((text[cut:] for text, cut in pairs), window),
    )
