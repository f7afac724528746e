"""Times as texts: which are read, and how they are written.

All are in UTC. A time is read as EventBridge Scheduler writes it (``2027-03-01T06:00:00Z``), or as
a date alone:
https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

ISO: Final = "%Y-%m-%dT%H:%M:%SZ"
FIELDS: Final = ("of", "minus_days", "minus_hours", "format")
PARTS: Final[Mapping[str, tuple[int, int]]] = {
    "%Y": (0, 4),
    "%m": (5, 2),
    "%d": (8, 2),
    "%H": (11, 2),
    "%M": (14, 2),
    "%S": (17, 2),
}
"""The parts of a format, and their places and lengths in ``2027-03-01T06:00:00Z``."""
READ: Final = "^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$"
"""The texts that are read as times; of these, those that exist."""
MIDNIGHT: Final = "T00:00:00Z"
_MOST_DAYS: Final = 36_600
_TOKEN: Final = re.compile("%.|%$|[^%]+", re.DOTALL)


def problem(*, minus_days: object, minus_hours: object, format: object) -> str:
    """Return what is wrong with the fields of a ``time_text``; empty where nothing is."""
    for name, value in (("minus_days", minus_days), ("minus_hours", minus_hours)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not 0 <= value <= _MOST_DAYS:  # type: ignore[operator]  # whole: an integer
            return f"{name} is a whole number from 0 to {_MOST_DAYS:,}, not {value!r}"
    if seconds(minus_days, minus_hours) > _MOST_DAYS * 86_400:  # type: ignore[arg-type]  # checked above
        return f"minus_days and minus_hours are {_MOST_DAYS:,} days at the most"
    if not isinstance(format, str) or not format:
        return f"format is a text such as {ISO}, not {format!r}"
    unknown = [t for t in _TOKEN.findall(format) if t[0] == "%" and t not in (*PARTS, "%%")]
    if unknown:
        return f"format has {unknown[0]}; there is {', '.join(PARTS)}, and %% for a percent sign"
    return ""


def seconds(days: int, hours: int) -> int:
    """Return a time in seconds."""
    return days * 86_400 + hours * 3_600


def pieces(format: str) -> list[str | tuple[int, int]]:
    """Return the pieces of a format: literal text, or the place of a part and its length."""
    found = _TOKEN.findall(format)
    return [PARTS[each] if each in PARTS else each.replace("%%", "%") for each in found]


def text(value: str, minus_s: int, format: str) -> str | None:
    """Write a time, so many seconds earlier; ``None`` where the text is no time.

    >>> text("2027-03-01", 7 * 86_400, "%Y/%m/%d")
    '2027/02/22'
    """
    whole = value if "T" in value else value + MIDNIGHT
    try:
        moment = datetime.strptime(whole, ISO)
    except ValueError:
        return None
    if f"{moment.isoformat()}Z" != whole or moment.year < 1000:
        return None
    earlier = (moment - timedelta(seconds=minus_s)).isoformat()
    # Not strftime: C libraries do not agree on years before 1000.
    return "".join(
        each if isinstance(each, str) else earlier[each[0] : sum(each)] for each in pieces(format)
    )


def written(minus_s: int, format: str) -> dict[str, Any]:
    """Return the fields as a user would write them, but for those that have their default."""
    days, rest = divmod(minus_s, 86_400)
    hours = rest // 3_600
    given = {"minus_days": days, "minus_hours": hours, "format": format}
    default = {"minus_days": 0, "minus_hours": 0, "format": ISO}
    return {name: value for name, value in given.items() if value != default[name]}


def schema(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the fields."""

    def count(unit: str) -> dict[str, Any]:
        told = f"Whole {unit} before the time, each of them in UTC."
        return {"description": told, "type": "integer", "minimum": 0, "maximum": _MOST_DAYS}

    format = f"The text, with {', '.join(PARTS)} for parts of the time; {ISO} without it."
    return {
        "type": "object",
        "properties": {
            "of": {"description": "The parameter or output that holds the time.", **reference},
            "minus_days": count("days"),
            "minus_hours": count("hours"),
            "format": {"description": format, "type": "string", "minLength": 1},
        },
        "required": ["of"],
        "additionalProperties": False,
    }
