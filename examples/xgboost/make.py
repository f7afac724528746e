"""Writes made-up rents of flats: `python make.py FOLDER [SEED]`."""

from __future__ import annotations

import random
import sys
from pathlib import Path


def rows(number: int, chance: random.Random) -> str:
    """Return lines of CSV: rent, square metres, rooms, minutes to the centre, floor."""
    lines = []
    for _ in range(number):
        size, minutes, floor = chance.randint(20, 140), chance.randint(2, 60), chance.randint(0, 8)
        rooms = max(1, min(6, round(size / 25 + chance.gauss(0, 0.6))))
        rent = 180 + 11 * size - 6 * minutes + 25 * rooms + (40 if floor > 4 else 0)
        lines.append(f"{rent * chance.gauss(1, 0.05):.0f},{size},{rooms},{minutes},{floor}\n")
    return "".join(lines)


def main(folder: str, seed: str = "1") -> None:
    chance = random.Random(seed)
    for name, number in (
        ("train/0", 600),
        ("train/1", 600),
        ("validation/0", 200),
        ("holdout/0", 200),
    ):
        path = Path(folder, f"{name}.csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rows(number, chance))


if __name__ == "__main__":
    main(*sys.argv[1:])
