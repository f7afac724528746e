"""Scores: how close predictions are to measurements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import isnan, nan
from statistics import mean, median

from orchestration.planning.model.regimes import DENSE, Regime

_CLOSE = 0.20
_APART = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A row with predictions and measurements; ``None``: not measured."""

    id: str
    source: str
    model: str
    accelerator: str
    regime: Regime
    noisy: bool
    """The row's own source calls it accurate to tens of percent only."""
    setting: object
    """The configuration; predictions of equal settings are equal."""
    sequence: int
    chip_tokens: float
    """Tokens per step and GPU, or Trainium chip."""
    time_s: float
    low_s: float
    high_s: float
    measured_time_s: float | None
    memory_gib: float
    reading_gib: float
    """Prediction for the kind of memory that was read."""
    memory_margin: float
    """High end of the memory's interval over its middle."""
    measured_memory_gib: float | None
    """A reading of the memory that is needed."""
    fits: bool
    out_of_memory: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of some rows; shares are between 0 and 1, and ``nan`` without rows to score."""

    rows: int
    timed: int
    time_mape: float
    time_median: float
    time_within_20: float
    interval_holds: float
    """Share of the rows whose measurement is inside the 80 % interval."""
    pairs: int
    pairs_right: float
    """Share of pairs that are ordered as measured. Pairs are settings of one model, accelerator,
    source and sequence length whose times per token and chip differ by over 2 %."""
    regret_mean: float
    """Time lost by choosing, of what counts as fitting, the setting predicted best, over the best
    measured time of all. A plan never takes what counts as too large; refusing it may cost, too."""
    regret_max: float
    memory_readings: int
    memory_mape: float
    memory_interval_holds: float
    out_of_memory: int
    out_of_memory_recall: float
    fit_recall: float


def headline(rows: Iterable[Scored]) -> list[Scored]:
    """Return the rows that goals are set on: dense models on NVIDIA GPUs, not noisy."""
    return [row for row in rows if row.regime in DENSE and not row.noisy]


def grouped(rows: Iterable[Scored], key: Callable[[Scored], str]) -> Mapping[str, Scores]:
    """Return scores by a property of the rows, in alphabetical order."""
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return {name: scores(groups[name]) for name in sorted(groups)}


def averaged(groups: Sequence[Scores]) -> Scores:
    """Return scores in which every group counts the same; numbers of rows add up."""
    values: dict[str, float] = {}
    for field in fields(Scores):
        column = [getattr(group, field.name) for group in groups]
        rated = [value for value in column if known(value)]
        values[field.name] = sum(column) if field.type == "int" else _mean(rated)
    return Scores(**values)  # type: ignore[arg-type]  # sums of integers are integers


def scores(rows: Sequence[Scored]) -> Scores:
    """Score some rows."""
    timed = [(row, row.measured_time_s) for row in rows if row.measured_time_s is not None]
    errors = [abs(row.time_s / measured - 1) for row, measured in timed]
    held = [row.low_s <= measured <= row.high_s for row, measured in timed]
    pairs, right = _pairs(rows)
    regrets = _regrets(rows)
    readings = [
        (row.reading_gib / row.measured_memory_gib, row.memory_margin)
        for row in rows
        if row.measured_memory_gib is not None
    ]
    failed = [row for row in rows if row.out_of_memory is True]
    ran = [row for row in rows if row.out_of_memory is False]
    return Scores(
        rows=len(rows),
        timed=len(timed),
        time_mape=_mean(errors),
        time_median=median(errors) if errors else nan,
        time_within_20=_mean([error < _CLOSE for error in errors]),
        interval_holds=_mean(held),
        pairs=pairs,
        pairs_right=right / pairs if pairs else nan,
        regret_mean=_mean(regrets),
        regret_max=max(regrets, default=nan),
        memory_readings=len(readings),
        memory_mape=_mean([abs(ratio - 1) for ratio, _ in readings]),
        memory_interval_holds=_mean([1 / margin <= r <= margin for r, margin in readings]),
        out_of_memory=len(failed),
        out_of_memory_recall=_mean([not row.fits for row in failed]),
        fit_recall=_mean([row.fits for row in ran]),
    )


def known(value: float) -> bool:
    """Return whether there were rows to score."""
    return not isnan(value)


def _choices(rows: Iterable[Scored]) -> list[list[Scored]]:
    """Group the rows among which somebody would choose."""
    groups = defaultdict(list)
    for row in rows:
        if row.measured_time_s is not None:
            groups[row.source, row.model, row.sequence, row.accelerator].append(row)
    return list(groups.values())


def _measured(row: Scored) -> float:
    return (row.measured_time_s or nan) / row.chip_tokens


def _predicted(row: Scored) -> float:
    return row.time_s / row.chip_tokens


def _pairs(rows: Iterable[Scored]) -> tuple[int, int]:
    """Count pairs that differ, and those of them that are ordered as measured."""
    pairs = right = 0
    for group in _choices(rows):
        for row, other in combinations(group, 2):
            times = _measured(row), _measured(other)
            difference = times[0] - times[1]
            if row.setting == other.setting or abs(difference) <= _APART * min(times):
                continue
            pairs += 1
            right += (_predicted(row) - _predicted(other)) * difference > 0
    return pairs, right


def _regrets(rows: Iterable[Scored]) -> list[float]:
    regrets = []
    for group in _choices(rows):
        fitting = [row for row in group if row.fits]
        if len({row.setting for row in group}) < 2 or not fitting:
            continue
        chosen = min(fitting, key=lambda row: (_predicted(row), row.id)).setting
        time = mean(_measured(row) for row in group if row.setting == chosen)
        regrets.append(max(0.0, time / min(map(_measured, group)) - 1))
    return regrets


def _mean(values: Sequence[float]) -> float:
    return mean(values) if values else nan
