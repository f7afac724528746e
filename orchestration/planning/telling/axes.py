"""Axes of charts: where a value lies, and at which round values the marks are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from math import ceil, floor, log10
from typing import Final

_MARGIN: Final = 0.06
"""Part of an axis that is left free at either end."""
_SHORTEST: Final = 1.6
"""Least ratio of an axis's ends, so that equal values lie in its middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A logarithmic axis: equal ratios are equally far apart."""

    title: str
    low: float
    high: float
    marks: tuple[float, ...]
    form: Callable[[float], str]
    """Formats a mark."""

    def at(self, value: float) -> float:
        """Return a value's place, in percent of the axis."""
        return 100 * log10(value / self.low) / log10(self.high / self.low)


def axis(title: str, values: Iterable[float], form: Callable[[float], str]) -> Axis:
    """Return an axis that shows all values, which are above zero."""
    shown = list(values)
    low, high = min(shown), max(shown)
    wider = max(1.0, _SHORTEST / (high / low)) ** 0.5
    low, high = low / wider, high * wider
    margin = (high / low) ** _MARGIN
    low, high = low / margin, high * margin
    return Axis(title=title, low=low, high=high, marks=_marks(low, high), form=form)


def _marks(low: float, high: float) -> tuple[float, ...]:
    """Return three to seven round values.

    >>> _marks(0.7, 60), _marks(410, 660), _marks(0.5, 20_000)
    ((1, 2, 5, 10, 20, 50), (450, 500, 550, 600, 650), (1, 10, 100, 1000, 10000))
    """
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    powers = [mark for decade in decades if low <= (mark := _round(10.0**decade)) <= high]
    finer = [_round(m * 10.0**decade) for decade in decades for m in (1, 2, 5)]
    within = tuple(mark for mark in finer if low <= mark <= high)
    if 3 <= len(within) <= 7:
        return within
    return tuple(powers) if len(powers) >= 3 else _even(low, high)


def _even(low: float, high: float) -> tuple[float, ...]:
    """Return evenly spaced values, of a range too short for powers of ten."""
    rough = (high - low) / 4
    power = 10.0 ** floor(log10(rough))
    step = min((1, 2, 2.5, 5, 10), key=lambda size: abs(size * power - rough)) * power
    first = ceil(low / step)
    marks = (_round((first + number) * step) for number in range(20))
    return tuple(takewhile(lambda mark: mark <= high, marks))


def _round(value: float) -> float:
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded
