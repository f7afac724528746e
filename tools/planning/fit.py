"""Fit the planner's coefficients to measured rows, and show how well they generalise.

    python tools/planning/fit.py [FILE.csv] [--cross-validate] [--write]
    python tools/planning/fit.py --floor

The default rows are tests/data/planner/benchmarks.csv. `--cross-validate` fits again without each
source, and scores the predictions for it, and those for tests/data/planner/unseen.csv, to whose
publications nothing is fitted. `--write` puts the values into
orchestration/planning/cost/coefficients.csv; the 80 % intervals hold four in five of the errors on
sources that were left out; that of the memory, which few sources state, those on one source more.
`--floor` fits to the unseen rows themselves, and shows what is left: no values of coefficients
would predict them much better. Nothing is written then.

A prior (with a spread) pulls each coefficient towards a best guess without the rows, and bounds
limit it. Errors are those of the logarithm, with a robust loss. Rows of one configuration share one
vote, and a source with many rows counts for less than their number. Regimes of their own are fitted
after the dense rows, so that they do not distort their coefficients.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np  # noqa: TID253 -- a tool of development, not of the package
from scipy.optimize import least_squares  # type: ignore[import-untyped]  # no stubs
from scipy.stats import t as student  # type: ignore[import-untyped]  # no stubs

from orchestration.errors import OrchestrationError
from orchestration.planning.calibration.evaluate import score, table
from orchestration.planning.calibration.rows import Row, complete, configuration
from orchestration.planning.calibration.scores import Scored
from orchestration.planning.cost.coefficients import Coefficients, Fact, coefficients, facts
from orchestration.planning.cost.memory import memory_use
from orchestration.planning.cost.step_time import step_time
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.model.regimes import DENSE, Regime, regime

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "tests/data/planner/benchmarks.csv"
UNSEEN = ROOT / "tests/data/planner/unseen.csv"
BLIND = ROOT / "tests/data/planner/blind.csv"
MEASURED = ROOT / "tests/data/planner/measured.csv"
TABLE = ROOT / "orchestration/planning/cost/coefficients.csv"

NOISE = 0.08
"""Standard deviation of the logarithm of a measurement around a good model."""
HUBER = 1.5
"""Standard deviations beyond which an error counts linearly."""
CROWD = 20
"""Rows of a source at which the squared weight of each is halved."""

MEMORY = ("fragmentation",)
STAGES: Sequence[tuple[frozenset[Regime], tuple[str, ...]]] = (
    (frozenset({"bits"}), ("matmul_blackwell", "matmul_fp8", "matmul_fp4", "cast_bytes", "flash3",
                           "tensor_exposed")),
    (frozenset({"experts"}), ("expert_matmul", "expert_layer_ms")),
    (frozenset({"neuron"}), ("matmul_neuron",)),
)  # fmt: skip
"""Regimes with coefficients of their own, fitted while all others are fixed."""

INTERVALS: Mapping[str, Regime] = {
    "interval_data": "data", "interval_model": "model", "interval_bits": "bits",
    "interval_experts": "experts", "interval_offload": "offload", "interval_neuron": "neuron",
}  # fmt: skip

Values = dict[str, float]


@dataclass(frozen=True)
class Sample:
    """A measured row."""

    row: Row
    setting: Configuration
    regime: Regime

    @property
    def noisy(self) -> bool:
        return self.row["noise"].startswith("high")

    @property
    def seconds(self) -> float:
        return float(self.row["step_time_s"] or "nan")

    @property
    def reading_gib(self) -> float:
        return float(self.row["mem_gib_per_gpu"] or "nan")


def samples(path: Path) -> list[Sample]:
    """Return the rows of a file that can be predicted."""
    readable = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in map(complete, csv.DictReader(file)):
            try:
                setting = configuration(row)
            except OrchestrationError as error:
                print(f"left out: {row['id']}: {error}", file=sys.stderr)
                continue
            readable.append(Sample(row, setting, regime(setting)))
    return readable


def fit(rows: Sequence[Sample], start: Values | None = None) -> Values:
    """Fit all coefficients to some rows; refuse rows of publications kept apart."""
    if unseen := {sample.row["source_id"] for sample in rows} & _kept_apart():
        raise SystemExit(f"kept apart to judge the fit, never to be fitted: {', '.join(unseen)}")
    return _fitted(rows, start)


def _fitted(rows: Sequence[Sample], start: Values | None = None) -> Values:
    known = facts()
    values = {
        name: fact.value if name.startswith("interval") else fact.prior
        for name, fact in known.items()
    } | (start or {})
    timed = [sample for sample in rows if not math.isnan(sample.seconds) and not sample.noisy]
    apart = {name for _, names in STAGES for name in names}
    core = [n for n in known if n not in apart and n not in MEMORY and not n.startswith("interval")]
    values = _fit_memory([sample for sample in rows if _means_need(sample)], values)
    dense = [sample for sample in timed if sample.regime in DENSE]
    values = _fit_time(dense, core, values)
    for regimes, names in STAGES:
        values = _fit_time([sample for sample in timed if sample.regime in regimes], names, values)
    return values


def floor() -> list[Scored]:
    """Predict the unseen rows with coefficients that were fitted to these rows themselves."""
    unseen = samples(UNSEEN)
    known = coefficients(_fitted(unseen))
    return [score(sample.row, known) for sample in unseen]


def cross_validate(
    rows: Sequence[Sample], values: Values, group: Callable[[Sample], object]
) -> list[Scored]:
    """Predict every row with coefficients that were fitted without its group."""
    left_out = []
    for name in dict.fromkeys(map(group, rows)):
        kept = fit([sample for sample in rows if group(sample) != name], values)
        trusted = coefficients(kept | {interval: values[interval] for interval in INTERVALS})
        left_out += [score(sample.row, trusted) for sample in rows if group(sample) == name]
    return left_out


def source(sample: Sample) -> str:
    """Return the publication of a row."""
    return sample.row["source"]


def intervals(left_out: Iterable[Scored], values: Values) -> Values:
    """Set the half widths that hold four in five of the rows left out; publications count alike."""
    fitted, rows = dict(values), [row for row in left_out if not row.noisy]
    for name, kind in INTERVALS.items():
        errors = [
            (abs(math.log(row.time_s / row.measured_time_s)), row.source)
            for row in rows
            if row.regime == kind and row.measured_time_s
        ]
        fitted[name] = _bounded(name, _four_in_five(errors))
    errors = [
        (abs(math.log(row.reading_gib / row.measured_memory_gib)), row.source)
        for row in rows
        if row.measured_memory_gib
    ]
    fitted["interval_memory"] = _bounded("interval_memory", _of_another(errors))
    return fitted


def _of_another(errors: Sequence[tuple[float, str]]) -> float:
    """Return what four in five errors on another publication don't exceed, by Student's t.

    Few publications say what they take, so that the spread between publications is uncertain too.
    """
    squares: dict[str, list[float]] = {}
    for error, name in errors:
        squares.setdefault(name, []).append(error * error)
    number = len(squares)
    if number < 2:
        return math.inf
    between = math.fsum(math.fsum(each) / len(each) for each in squares.values()) / number
    quantile = float(student.ppf(0.9, number - 1))
    return quantile * math.sqrt(between * (1 + 1 / number))


def _four_in_five(errors: Sequence[tuple[float, str]]) -> float:
    """Return what four in five errors don't exceed, where every publication counts the same."""
    counts = Counter(name for _, name in errors)
    below = 0.0
    for error, name in sorted(errors):
        below += 1 / counts[name] / len(counts)
        if below >= 0.8:
            return error
    return math.inf


def write(values: Values) -> None:
    """Write the values into the table, with four digits."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | {"value": f"{values[row['name']]:.4g}"} for row in rows)


def _fit_time(rows: Sequence[Sample], names: Sequence[str], values: Values) -> Values:
    settings = [
        (sample.setting, sizes(sample.setting.model, sample.setting.sequence)) for sample in rows
    ]

    def predicted(k: Coefficients) -> list[float]:
        return [step_time(c, s, k).total for c, s in settings]

    return _solve(rows, [sample.seconds for sample in rows], predicted, names, values)


def _fit_memory(rows: Sequence[Sample], values: Values) -> Values:
    settings = [
        (
            sample.setting,
            sizes(sample.setting.model, sample.setting.sequence),
            sample.row["mem_kind"],
        )
        for sample in rows
    ]

    def predicted(k: Coefficients) -> list[float]:
        uses = [(memory_use(c, s, k), kind) for c, s, kind in settings]
        return [
            use.states + use.activations if kind.startswith("model") else use.total
            for use, kind in uses
        ]

    return _solve(rows, [sample.reading_gib for sample in rows], predicted, MEMORY, values)


def _solve(
    rows: Sequence[Sample],
    measured: Sequence[float],
    predicted: Callable[[Coefficients], list[float]],
    names: Sequence[str],
    values: Values,
) -> Values:
    """Fit the named coefficients to the rows, and keep the others."""
    known = facts()
    if not rows:  # `values` may have been fitted to rows that are left out now
        return values | {name: known[name].prior for name in names}
    prior = np.log([known[name].prior for name in names])
    spread = np.array([known[name].spread for name in names])
    bounds = tuple(np.log([_limits(known[name])[side] for name in names]) for side in (0, 1))
    weights, target = _weights(rows) / NOISE, np.log(measured)

    def residuals(point: np.ndarray) -> np.ndarray:
        k = coefficients(values | dict(zip(names, np.exp(point), strict=True)))
        errors = (np.log(predicted(k)) - target) * weights
        robust = np.sign(errors) * HUBER * np.sqrt(2 * (np.sqrt(1 + (errors / HUBER) ** 2) - 1))
        return np.concatenate([robust, (point - prior) / spread])

    first = np.clip(np.log([values[name] for name in names]), bounds[0] + 1e-6, bounds[1] - 1e-6)
    best = least_squares(
        residuals, first, bounds=bounds, diff_step=1e-3, xtol=1e-4, ftol=1e-4, max_nfev=40
    )
    return values | dict(zip(names, map(float, np.exp(best.x)), strict=True))


def _weights(rows: Sequence[Sample]) -> np.ndarray:
    """Return roots of weights, 0.6 on average, as rows of a source are related."""
    sources = Counter(sample.row["source"] for sample in rows)
    same = Counter(sample.setting for sample in rows)
    roots = np.array([
        (1 / same[sample.setting] * CROWD / (CROWD + sources[sample.row["source"]])) ** 0.5
        for sample in rows
    ])  # fmt: skip
    weights: np.ndarray = roots / roots.mean() * 0.6
    return weights


def _means_need(sample: Sample) -> bool:
    return bool(sample.row["mem_gib_per_gpu"]) and "reserved" not in sample.row["mem_kind"]


@cache
def _kept_apart() -> frozenset[str]:
    names = set()
    for path in (UNSEEN, BLIND, MEASURED):
        with path.open(newline="", encoding="utf-8") as file:
            names |= {row["source_id"] for row in csv.DictReader(file)}
    return frozenset(names)


def _limits(fact: Fact) -> tuple[float, float]:
    return max(fact.low, 1e-3 * fact.prior), fact.high


def _bounded(name: str, value: float) -> float:
    low, high = _limits(facts()[name])
    return min(high, max(low, value))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=ROWS)
    parser.add_argument("--cross-validate", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--floor", action="store_true")
    options = parser.parse_args()
    if options.floor:
        if options.file != ROWS or options.cross_validate or options.write:
            parser.error("--floor goes with no other option; it fits to the unseen rows")
        print(table(floor(), {}))
        return 0
    rows = samples(options.file)
    values = fit(rows)
    apart = []
    if options.write or options.cross_validate:
        apart = cross_validate(rows, values, source)
        values = intervals(apart, values) if options.write else values
    known = coefficients(values)
    if options.cross_validate:
        print(f"Every source predicted without having seen it:\n\n{table(apart, {})}")
        unseen = [score(sample.row, known) for sample in samples(UNSEEN)]
        print(f"Publications to which nothing is fitted:\n\n{table(unseen, {})}")
    for name, fact in facts().items():
        away = math.log(values[name] / fact.prior) / fact.spread
        print(
            f"{name:<26}{values[name]:>10.4g} {fact.unit:<18}prior {fact.prior:<8g}{away:+.1f} sd"
        )
    print("\nOn the rows that the coefficients were fitted on:\n")
    print(table([score(sample.row, known) for sample in rows], {}))
    if options.write:
        write(values)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
