"""Write this folder's text: the log of an imagined ship, from a grammar and a seeded generator.

Run it with any Python 3.11 or later: `python make.py`. It writes the same bytes each time. The
text has structure at several ranges (spelling, phrases, a wind that shifts from day to day), so
that a model's loss goes on falling as it learns more of it.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
SEED = 1851
SIZES = {"train-00.txt": 90_000, "train-01.txt": 90_000, "holdout.txt": 20_000}
SAMPLE = {
    "instances": ["Day 1. Wind from the ", "The carpenter mended "],
    "parameters": {"max_new_tokens": 24},
}

POINTS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")
FORCES = ("calm", "light airs", "a gentle breeze", "a fresh breeze", "a strong wind", "a gale")
SEAS = ("smooth as glass", "slight", "moderate", "rather rough", "very rough", "high and breaking")
SAILS = ("the topsails", "the foresail", "the main course", "the jibs", "the staysails")
CREW = ("the mate", "the cook", "the carpenter", "the boatswain", "the youngest hand", "the pilot")
WORK = (
    "mended {sail}",
    "scrubbed the deck before breakfast",
    "caught {count} fish and shared them out",
    "took soundings and found {fathoms} fathoms over {bottom}",
    "found {count} casks of water gone sour",
    "painted the longboat",
    "read aloud to the watch below",
    "stood {count} hours at the wheel",
)
BOTTOMS = ("sand", "grey mud", "broken shell", "coral")
SIGHTS = (
    "a sail on the horizon to the {point}",
    "a whale and her calf",
    "land, low and green, to the {point}",
    "weed and driftwood",
    "{count} gulls that followed us until dark",
    "nothing but water",
)
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")


class Log:
    """A voyage whose weather drifts from one day to the next."""

    def __init__(self, generator: random.Random) -> None:
        self.generator = generator
        self.day = 0
        self.wind = 5
        self.force = 2

    def entry(self) -> str:
        self.day += 1
        self.wind = (self.wind + self._below(3) - 1) % len(POINTS)
        self.force = min(max(self.force + self._below(3) - 1, 0), len(FORCES) - 1)
        sentences = [self._weather(), self._handling()]
        sentences += [self._work() for _ in range(1 + self._below(3))]
        sentences.append(f"At {self._one_of(('dawn', 'noon', 'dusk'))} we saw {self._sight()}.")
        return f"Day {self.day}. " + " ".join(sentences) + "\n"

    def _weather(self) -> str:
        if self.force == 0:
            return f"Calm all day, and the sea {SEAS[0]}."
        wind, sea = POINTS[self.wind], SEAS[self.force]
        return f"Wind from the {wind}, {FORCES[self.force]}, and the sea {sea}."

    def _handling(self) -> str:
        sail = self._one_of(SAILS)
        if self.force == 0:
            return f"We let {sail} hang and waited."
        course = POINTS[(self.wind + 3) % len(POINTS)]
        if self.force >= 4:
            return f"We took in {sail} and ran to the {course}."
        return f"We set {sail} and steered {course}, making {self._number()} knots."

    def _work(self) -> str:
        who = self._one_of(CREW)
        done = self._one_of(WORK).format(
            sail=self._one_of(SAILS),
            count=self._number(),
            fathoms=self._number(),
            bottom=self._one_of(BOTTOMS),
        )
        return f"{who[0].upper()}{who[1:]} {done}."

    def _sight(self) -> str:
        return self._one_of(SIGHTS).format(point=self._one_of(POINTS), count=self._number())

    def _number(self) -> str:
        return self._one_of(NUMBERS)

    def _one_of(self, words: Sequence[str]) -> str:
        return words[self._below(len(words))]

    def _below(self, bound: int) -> int:
        """`random()` is the one method that promises the same numbers in every Python."""
        return int(self.generator.random() * bound)


def files() -> dict[str, bytes]:
    log = Log(random.Random(SEED))
    made: dict[str, bytes] = {}
    for name, size in SIZES.items():
        text = ""
        while len(text) < size:
            text += log.entry()
        made[name] = text.encode("ascii")
    made["sample.json"] = (json.dumps(SAMPLE) + "\n").encode()
    return made


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name}  {len(content)} bytes")
