"""Writes made-up sales of three markets: `python make.py FOLDER`. Units, weekday, price."""

from __future__ import annotations

import random
import sys
from pathlib import Path


def main(folder: str) -> None:
    for market, base in (("de", 80), ("fr", 60), ("it", 40)):
        chance = random.Random(market)
        lines = []
        for day in range(60):
            price = chance.choice((8, 10, 12))
            units = base + 20 * (day % 7 in (4, 5)) - 3 * (price - 10) + chance.gauss(0, 2)
            lines.append(f"{units:.1f},{day % 7},{price}\n")
        path = Path(folder, market, "sales.csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
