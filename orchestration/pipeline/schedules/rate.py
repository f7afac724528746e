"""Rates: a number of minutes, hours or days from one run to the next.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#rate-based: a day has 24
hours, also where clocks change.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
}


def period(rate: str) -> timedelta | None:
    """Return the time from one run to the next; ``None`` if a rate is written in another way.

    >>> period("6 hours"), period("six hours")
    (datetime.timedelta(seconds=21600), None)
    """
    match = re.fullmatch(r"(\d{1,6}) (minute|hour|day)s?", rate)
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def eventbridge(rate: str) -> str:
    """Return the expression for EventBridge Scheduler, which wants ``1 hour`` and ``2 hours``.

    >>> eventbridge("1 hours"), eventbridge("90 minute")
    ('rate(1 hour)', 'rate(90 minutes)')
    """
    number, unit = rate.split()
    unit = unit.removesuffix("s")
    return f"rate({int(number)} {unit if int(number) == 1 else f'{unit}s'})"
