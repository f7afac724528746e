"""Reads digits: gzipped CSV, each row a label and 64 pixels, no header."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import torch
from torch import Tensor

VALIDATION_EVERY = 10
"""Every tenth training row is kept out of training, to tell epochs apart."""

Digits = tuple[Tensor, Tensor]
"""Pixels, float32 of [n, 64], and labels, int64 of [n]."""


def read(directory: Path, pattern: str) -> Digits:
    """All rows of the files that match, in the order of their names."""
    paths = sorted(directory.glob(pattern))
    if not paths:
        found = sorted(path.name for path in directory.glob("*"))
        raise FileNotFoundError(f"no {pattern} in {directory}, which holds {found}")
    rows: list[list[float]] = []
    for path in paths:
        with gzip.open(path, "rt", newline="") as file:
            rows += [[float(value) for value in row] for row in csv.reader(file)]
    table = torch.tensor(rows, dtype=torch.float32)
    return table[:, 1:], table[:, 0].long()


def train_and_validation(directory: Path) -> tuple[Digits, Digits]:
    """The rows to train on and the rows to compare epochs by, the same ones in every run."""
    pixels, labels = read(directory, "train-*.csv.gz")
    kept_out = torch.arange(len(labels)) % VALIDATION_EVERY == 0
    return (pixels[~kept_out], labels[~kept_out]), (pixels[kept_out], labels[kept_out])
