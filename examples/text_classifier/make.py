"""Writes made-up messages to a shop, with the team that each is for: `python make.py FOLDER`."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

ABOUT = {
    "delivery": ("parcel", "courier", "tracking number", "delivery", "shipment"),
    "payment": ("invoice", "payment", "credit card", "refund", "receipt"),
    "account": ("password", "login", "account", "e-mail address", "profile"),
    "product": ("charger", "display", "manual", "battery", "spare part"),
}
SAID = {
    "delivery": ("is late", "went to a neighbour", "never came", "shows no progress"),
    "payment": ("was taken twice", "is wrong", "has not arrived", "was declined"),
    "account": ("no longer works", "can not be changed", "is locked", "was forgotten"),
    "product": ("is broken", "is missing from the box", "gets hot", "does not fit"),
}
BEFORE = ("hello,", "please help:", "urgent!", "again", "since Monday", "")
AFTER = ("what can I do?", "thanks", "this is the second time", "please answer", "")


def message(chance: random.Random) -> dict[str, str]:
    """Make up a message; one in ten speaks of something else than its team's business."""
    label = chance.choice(list(ABOUT))
    spoken = chance.choice(list(ABOUT)) if chance.random() < 0.1 else label
    words = (chance.choice(BEFORE), "my", chance.choice(ABOUT[spoken]), chance.choice(SAID[label]))
    return {"text": " ".join((*words, chance.choice(AFTER))).strip(), "label": label}


def main(folder: str, seed: str = "1") -> None:
    chance = random.Random(seed)
    for name, number in (("train/0", 400), ("train/1", 400), ("holdout/0", 200)):
        path = Path(folder, f"{name}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(message(chance))}\n" for _ in range(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
