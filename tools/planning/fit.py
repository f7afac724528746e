"""Fit the planner's coefficients to measured rows, and say how well that generalises.

    python tools/planning/fit.py [FILE.csv] [--cross-validate] [--write]

The rows are tests/data/planner/benchmarks.csv unless given. `--cross-validate` fits once more for
every source, without it, and scores the predictions of what was left out. `--write` puts the
values into orchestration/planning/cost/coefficients.csv; the 80 % intervals hold four in five of
the errors made on sources and on models that were left out.

A coefficient is pulled towards what is known of it without the rows (its prior, as wide as its
spread) and stays inside its bounds. The error is that of the logarithm, with a robust loss; rows of
one configuration share one vote, and a source of many rows counts for less than their number. The
coefficients are fitted in stages, so that odd regimes do not bend what the dense rows say.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np  # noqa: TID253 -- a tool of development, not of the package
from scipy.optimize import least_squares  # type: ignore[import-untyped]  # no stubs

from orchestration.errors import OrchestrationError
from orchestration.planning.calibration.evaluate import score, table
from orchestration.planning.calibration.rows import Row, complete, configuration
from orchestration.planning.calibration.scores import Scored
from orchestration.planning.cost.coefficients import Coefficients, Fact, coefficients, facts
from orchestration.planning.cost.memory import memory_use
from orchestration.planning.cost.regimes import DENSE, Regime, regime
from orchestration.planning.cost.step_time import step_time
from orchestration.planning.model.configuration import Configuration
from orchestration.planning.model.layer_sizes import sizes

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "tests/data/planner/benchmarks.csv"
TABLE = ROOT / "orchestration/planning/cost/coefficients.csv"

NOISE = 0.08
"""Standard deviation of the logarithm of a measurement around a good model."""
HUBER = 1.5
"""Standard deviations from which on an error counts linearly."""
CROWD = 20
"""Rows of one source at which each has lost half its weight's square."""

MEMORY = ("context_gib", "fragmentation", "logit_memory_bytes", "zero_buffer_bytes",
          "gathered_layers")  # fmt: skip
STAGES: Sequence[tuple[frozenset[Regime], tuple[str, ...]]] = (
    (frozenset({"bits"}), ("matmul_blackwell", "matmul_fp8", "matmul_fp4", "cast_bytes", "flash3",
                           "tensor_exposed")),
    (frozenset({"experts"}), ("expert_matmul", "expert_layer_ms")),
    (frozenset({"offload"}), ("host_optimizer_gps",)),
    (frozenset({"neuron"}), ("matmul_neuron",)),
)  # fmt: skip
"""Regimes with coefficients of their own, fitted with all others fixed."""

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
    """The rows of a file that can be predicted."""
    found = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in map(complete, csv.DictReader(file)):
            try:
                setting = configuration(row)
            except OrchestrationError as error:
                print(f"left out: {row['id']}: {error}", file=sys.stderr)
                continue
            found.append(Sample(row, setting, regime(setting)))
    return found


def fit(rows: Sequence[Sample], start: Values | None = None) -> Values:
    """All coefficients, fitted to these rows."""
    known = facts()
    values = {
        name: fact.value if name.startswith("interval") else fact.prior
        for name, fact in known.items()
    } | (start or {})
    timed = [one for one in rows if not math.isnan(one.seconds) and not one.noisy]
    apart = {name for _, names in STAGES for name in names}
    core = [n for n in known if n not in apart and n not in MEMORY and not n.startswith("interval")]
    values = _fit_memory([one for one in rows if _means_need(one)], values)
    dense = [one for one in timed if one.regime in DENSE]
    values = _fit_time(dense, core, values)
    for regimes, names in STAGES:
        values = _fit_time([one for one in timed if one.regime in regimes], names, values)
    return values


def cross_validate(
    rows: Sequence[Sample], values: Values, group: Callable[[Sample], object]
) -> list[Scored]:
    """Predictions of every row by coefficients that have not seen its group."""
    left_out = []
    for name in dict.fromkeys(map(group, rows)):
        kept = fit([one for one in rows if group(one) != name], values)
        trusted = coefficients(kept | {interval: values[interval] for interval in INTERVALS})
        left_out += [score(one.row, trusted) for one in rows if group(one) == name]
    return left_out


def source(one: Sample) -> str:
    """The publication that a row is from."""
    return one.row["source"]


def model(one: Sample) -> tuple[str, str]:
    """The model of a row, in its publication."""
    return one.row["source_id"], one.row["model"]


def intervals(left_out: Iterable[Scored], values: Values) -> Values:
    """Half widths that hold four in five of the rows left out."""
    found, rows = dict(values), list(left_out)
    for name, kind in INTERVALS.items():
        errors = [
            abs(math.log(one.time_s / one.measured_time_s))
            for one in rows
            if one.regime == kind and one.measured_time_s
        ]
        found[name] = _bounded(name, float(np.quantile(errors, 0.8)))
    errors = [
        abs(math.log(one.reading_gib / one.measured_memory_gib))
        for one in rows
        if one.measured_memory_gib
    ]
    found["interval_memory"] = _bounded("interval_memory", float(np.quantile(errors, 0.8)))
    return found


def write(values: Values) -> None:
    """Put values into the table, four digits each."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | {"value": f"{values[row['name']]:.4g}"} for row in rows)


def _fit_time(rows: Sequence[Sample], names: Sequence[str], values: Values) -> Values:
    settings = [(one.setting, sizes(one.setting.model, one.setting.sequence)) for one in rows]

    def predicted(k: Coefficients) -> list[float]:
        return [step_time(c, s, k).total for c, s in settings]

    return _solve(rows, [one.seconds for one in rows], predicted, names, values)


def _fit_memory(rows: Sequence[Sample], values: Values) -> Values:
    settings = [
        (one.setting, sizes(one.setting.model, one.setting.sequence), one.row["mem_kind"])
        for one in rows
    ]

    def predicted(k: Coefficients) -> list[float]:
        uses = [(memory_use(c, s, k), kind) for c, s, kind in settings]
        return [
            use.states + use.activations if kind.startswith("model") else use.total
            for use, kind in uses
        ]

    return _solve(rows, [one.reading_gib for one in rows], predicted, MEMORY, values)


def _solve(
    rows: Sequence[Sample],
    measured: Sequence[float],
    predicted: Callable[[Coefficients], list[float]],
    names: Sequence[str],
    values: Values,
) -> Values:
    """The named coefficients that fit the rows best, the others as they are."""
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
    """Roots of how much rows count: 0.6 on average, as no two rows of a source are independent."""
    sources = Counter(one.row["source"] for one in rows)
    same = Counter(one.setting for one in rows)
    roots = np.array([
        (1 / same[one.setting] * CROWD / (CROWD + sources[one.row["source"]])) ** 0.5
        for one in rows
    ])  # fmt: skip
    weights: np.ndarray = roots / roots.mean() * 0.6
    return weights


def _means_need(one: Sample) -> bool:
    return bool(one.row["mem_gib_per_gpu"]) and "reserved" not in one.row["mem_kind"]


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
    given = parser.parse_args()
    rows = samples(given.file)
    values = fit(rows)
    if given.write:
        quiet = [one for one in rows if not one.noisy]
        errors = cross_validate(quiet, values, source) + cross_validate(quiet, values, model)
        values = intervals(errors, values)
    if given.cross_validate:
        print("Every source predicted without having seen it:\n")
        print(table(cross_validate(rows, values, source), {}))
    for name, fact in facts().items():
        away = math.log(values[name] / fact.prior) / fact.spread
        print(
            f"{name:<26}{values[name]:>10.4g} {fact.unit:<18}prior {fact.prior:<8g}{away:+.1f} sd"
        )
    print("\nOn the rows that the coefficients were fitted on:\n")
    known = coefficients(values)
    print(table([score(one.row, known) for one in rows], {}))
    if given.write:
        write(values)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
