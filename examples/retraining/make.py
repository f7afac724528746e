"""Writes made-up customers: `python make.py FOLDER [SEED]`."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path


def rows(number: int, chance: random.Random) -> str:
    """Customers leave who are new, call support often and pay much."""
    lines = []
    for _ in range(number):
        months, calls, charge = chance.randint(1, 72), chance.randint(0, 9), chance.randint(20, 110)
        score = 0.6 * (calls - 4) - 0.05 * (months - 30) + 0.02 * (charge - 60)
        left = int(chance.random() < 1 / (1 + math.exp(-score)))
        lines.append(f"{left},{months},{calls},{charge}\n")
    return "".join(lines)


def main(folder: str, seed: str = "1") -> None:
    chance = random.Random(seed)
    for name, number in (("train/0", 300), ("train/1", 300), ("holdout/0", 200)):
        path = Path(folder, f"{name}.csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rows(number, chance))


if __name__ == "__main__":
    main(*sys.argv[1:])
