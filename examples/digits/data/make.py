"""Write this folder's data files from the copy of the digits that scikit-learn carries.

Run it with an interpreter that has scikit-learn: `python make.py`. It writes the same bytes each
time: rows are ordered by a seeded generator, gzip headers hold neither a time nor a file name.
Each row is the label, then 64 pixels (0-16) row by row, without a header.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
SEED = 1998
HELD_BACK_PER_LABEL = 36
TRAIN_SHARDS = 4

Row = tuple[int, ...]


def all_rows() -> list[Row]:
    """The 1,797 digits as (label, pixel, ..., pixel)."""
    # Only this script needs scikit-learn, which has no types.
    from sklearn.datasets import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        load_digits,
    )

    digits = load_digits()
    return [
        (int(label), *(int(pixel) for pixel in pixels))
        for label, pixels in zip(digits.target, digits.data, strict=True)
    ]


def shuffled(rows: Iterable[Row], generator: random.Random) -> list[Row]:
    """The rows in a random order; `random()` is the one method stable across Python versions."""
    return [row for _, row in sorted((generator.random(), row) for row in rows)]


def split(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows to train on and rows held back, the same number of each label held back."""
    generator = random.Random(SEED)
    train: list[Row] = []
    held_back: list[Row] = []
    for label in range(10):
        same = shuffled((row for row in rows if row[0] == label), generator)
        held_back += same[:HELD_BACK_PER_LABEL]
        train += same[HELD_BACK_PER_LABEL:]
    return shuffled(train, generator), shuffled(held_back, generator)


def compressed(rows: Iterable[Row]) -> bytes:
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text.encode())
    return buffer.getvalue()


def files() -> dict[str, bytes]:
    train, held_back = split(all_rows())
    label, *pixels = held_back[0]
    made = {
        f"train-{shard:02}.csv.gz": compressed(train[shard::TRAIN_SHARDS])
        for shard in range(TRAIN_SHARDS)
    }
    made["holdout.csv.gz"] = compressed(held_back)
    made["sample.json"] = (json.dumps({"instances": [pixels]}) + "\n").encode()
    made["sample-label.json"] = (json.dumps({"label": label}) + "\n").encode()
    return made


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name}  {len(content)} bytes")
