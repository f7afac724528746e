"""How good predictions of measured rows are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isnan, nan
from statistics import mean, median

from orchestration.planning.cost.regimes import DENSE, Regime

_CLOSE = 0.20
_APART = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A row, what was predicted of it, and what was measured; ``None``: not measured."""

    row: str
    source: str
    model: str
    accelerator: str
    regime: Regime
    noisy: bool
    """Its own source calls the row no better than tens of percent."""
    setting: object
    """The configuration; equal settings can't be told apart."""
    sequence: int
    chip_tokens: float
    """Tokens of a step per GPU, or per Trainium chip."""
    time_s: float
    low_s: float
    high_s: float
    measured_time_s: float | None
    memory_gib: float
    reading_gib: float
    """Predicted for what the reading means."""
    measured_memory_gib: float | None
    """A reading that means need."""
    fits: bool
    out_of_memory: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of some rows; shares are between 0 and 1, ``nan`` where there is nothing to score."""

    rows: int
    timed: int
    time_mape: float
    time_median: float
    time_within_20: float
    interval_holds: float
    """Share of the rows inside their 80 % interval."""
    pairs: int
    pairs_right: float
    """Pairs of settings of one model on one accelerator, of one source and sequence length, that
    differ by over 2 % in time per token and chip, and are ordered as measured."""
    regret_mean: float
    """Time lost by taking the setting predicted best, over the best measured."""
    regret_max: float
    memory_readings: int
    memory_mape: float
    out_of_memory: int
    out_of_memory_recall: float
    fit_recall: float


def headline(rows: Iterable[Scored]) -> list[Scored]:
    """The rows that goals are set on: dense models on NVIDIA's devices, not noisy."""
    return [one for one in rows if one.regime in DENSE and not one.noisy]


def grouped(rows: Iterable[Scored], key: Callable[[Scored], str]) -> Mapping[str, Scores]:
    """Scores by some property of the rows, in alphabetical order."""
    groups = defaultdict(list)
    for one in rows:
        groups[key(one)].append(one)
    return {name: scores(groups[name]) for name in sorted(groups)}


def scores(rows: Sequence[Scored]) -> Scores:
    """Score some rows."""
    timed = [(one, one.measured_time_s) for one in rows if one.measured_time_s is not None]
    errors = [abs(one.time_s / measured - 1) for one, measured in timed]
    held = [one.low_s <= measured <= one.high_s for one, measured in timed]
    pairs, right = _pairs(rows)
    regrets = _regrets(rows)
    readings = [
        abs(one.reading_gib / one.measured_memory_gib - 1)
        for one in rows
        if one.measured_memory_gib is not None
    ]
    failed = [one for one in rows if one.out_of_memory is True]
    ran = [one for one in rows if one.out_of_memory is False]
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
        memory_mape=_mean(readings),
        out_of_memory=len(failed),
        out_of_memory_recall=_mean([not one.fits for one in failed]),
        fit_recall=_mean([one.fits for one in ran]),
    )


def known(value: float) -> bool:
    """Whether there was anything to score."""
    return not isnan(value)


def _choices(rows: Iterable[Scored]) -> list[list[Scored]]:
    """The rows that somebody would choose among."""
    groups = defaultdict(list)
    for one in rows:
        if one.measured_time_s is not None:
            groups[one.source, one.model, one.sequence, one.accelerator].append(one)
    return list(groups.values())


def _measured(one: Scored) -> float:
    return (one.measured_time_s or nan) / one.chip_tokens


def _predicted(one: Scored) -> float:
    return one.time_s / one.chip_tokens


def _pairs(rows: Iterable[Scored]) -> tuple[int, int]:
    """Pairs that differ, and how many of them are ordered as measured."""
    pairs = right = 0
    for group in _choices(rows):
        for one, other in combinations(group, 2):
            slow, fast = _measured(one), _measured(other)
            if one.setting == other.setting or abs(slow - fast) <= _APART * min(slow, fast):
                continue
            pairs += 1
            right += (_predicted(one) - _predicted(other)) * (slow - fast) > 0
    return pairs, right


def _regrets(rows: Iterable[Scored]) -> list[float]:
    regrets = []
    for group in _choices(rows):
        if len({one.setting for one in group}) < 2:
            continue
        chosen = min(group, key=lambda one: (_predicted(one), one.row)).setting
        taken = mean(_measured(one) for one in group if one.setting == chosen)
        regrets.append(max(0.0, taken / min(map(_measured, group)) - 1))
    return regrets


def _mean(values: Sequence[float]) -> float:
    return mean(values) if values else nan
