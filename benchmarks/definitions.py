"""Count the states and measure the expressions of state machines.

python benchmarks/definitions.py [FILE ...]
"""

import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

RENDERED = Path(__file__).parents[1] / "statemachines"


class Measures(NamedTuple):
    """How much there is to read in a definition."""

    states: int
    expressions: int
    median: float
    p90: float
    """Nine of ten expressions have at most so many characters."""
    longest: int


def measured(definition: Mapping[str, Any]) -> Measures:
    """Measure a definition; an expression's length is that of the whole ``{% … %}``."""
    lengths = [len(text) for text in _expressions(definition)] or [0]
    deciles = (
        statistics.quantiles(lengths, n=10, method="inclusive") if lengths[1:] else lengths * 9
    )
    count = sum(len(machine["States"]) for machine in _machines(definition))
    return Measures(count, len(lengths), statistics.median(lengths), deciles[8], max(lengths))


def _machines(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if "StartAt" in value:
            yield value
        for inner in value.values():
            yield from _machines(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _machines(inner)


def _expressions(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.startswith("{%"):
            yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _expressions(inner)


def main() -> None:
    files = [Path(name) for name in sys.argv[1:]] or sorted(RENDERED.glob("*.asl.json"))
    print(
        f"{'definition':24} {'states':>7} {'expressions':>12} {'p50':>6} {'p90':>6} {'longest':>8}"
    )
    for file in files:
        m = measured(json.loads(file.read_text(encoding="utf-8")))
        name = file.name.removesuffix(".asl.json")
        print(
            f"{name:24} {m.states:7} {m.expressions:12} {m.median:6.0f} {m.p90:6.0f} {m.longest:8}"
        )


if __name__ == "__main__":
    main()
