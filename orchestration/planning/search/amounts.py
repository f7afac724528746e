"""Durations and sums of money as people write them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Format a duration in minutes, hours or days.

    >>> duration(90), duration(5400), duration(400_000)
    ('1.5 min', '1.5 h', '4.6 d')
    """
    if seconds < 3600:
        return f"{seconds / 60:,.1f} min"
    if seconds < 3 * 24 * 3600:
        return f"{seconds / 3600:,.1f} h"
    return f"{seconds / 86400:,.1f} d"


def money(usd: float) -> str:
    """Format dollars, with cents below $100.

    >>> money(3.456), money(1234.5)
    ('$3.46', '$1,234')
    """
    return f"${usd:,.2f}" if usd < 100 else f"${usd:,.0f}"
