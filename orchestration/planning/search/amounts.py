"""Durations, sums of money and ratios as people say them."""

from __future__ import annotations

from typing import Final

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 86400.0


def duration(seconds: float) -> str:
    """Format a duration with two digits, or more if they are whole.

    >>> [duration(value) for value in (2.94, 42, 5390, 6800, 86400, 400_000)]
    ['2.9 s', '42 s', '90 min', '1.9 h', '24 h', '4.6 days']
    """
    if seconds < 1.5 * _MINUTE:
        return f"{_two_digits(seconds) if seconds >= 1 else f'{seconds:.2g}'} s"
    if seconds < 1.5 * _HOUR:
        return f"{_two_digits(seconds / _MINUTE)} min"
    if seconds < 3 * _DAY:
        return f"{_two_digits(seconds / _HOUR)} h"
    return f"{_two_digits(seconds / _DAY)} days"


def _two_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}".removesuffix(".0")


def money(usd: float) -> str:
    """Format dollars, with cents below $10.

    >>> money(3.456), money(1234.5), money(2.34e6)
    ('$3.46', '$1,234', '$2.34 million')
    """
    if usd >= 1e6:
        return f"${usd / 1e6:,.3g} million" if usd < 1e9 else f"${usd / 1e6:,.0f} million"
    return f"${usd:,.2f}" if usd < 10 else f"${usd:,.0f}"


def hourly(usd: float) -> str:
    """Format the price of an hour, with cents.

    >>> hourly(63.296)
    '$63.30/h'
    """
    return f"${usd:,.2f}/h"


def compared(ratio: float, more: str, less: str, whole: str) -> str:
    """Format a ratio as people say it: ``12% slower``, ``8 times the cost``.

    >>> words = ("slower", "faster", "time")
    >>> compared(1.001, *words), compared(1.12, *words), compared(0.9, *words)
    ('less than 1% slower', '12% slower', '10% faster')
    >>> compared(2.1, *words), compared(8.4, *words), compared(0.5, *words), compared(0.11, *words)
    ('twice the time', '8 times the time', 'half the time', '1/9 of the time')
    """
    if ratio >= _TWICE:
        return f"{'twice' if round(ratio) == 2 else f'{ratio:,.0f} times'} the {whole}"
    if ratio <= 1 / _TWICE:
        parts = round(1 / ratio)
        fractions = {2: "half", 3: "a third of", 4: "a quarter of"}
        return f"{fractions.get(parts, f'1/{parts} of')} the {whole}"
    share, word = (ratio - 1, more) if ratio >= 1 else (1 - ratio, less)
    return f"less than 1% {word}" if share < 0.01 else f"{share:.0%} {word}"


SLOWER: Final = ("slower", "faster", "time")
"""Words for a ratio of times."""
DEARER: Final = ("more expensive", "cheaper", "cost")
"""Words for a ratio of costs."""
_TWICE: Final = 1.95
