"""Values of fields: their types and bounds, and texts that are filled in later."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.lint.findings import Finding

MAX_SECONDS: Final = 99_999_999
_MAX_DELAY: Final = 31_622_400
PLACEHOLDER = re.compile(
    r"\$\{[^}]*\}|\{\{.*?\}\}|\{[A-Z][A-Z_-]+\}|<[A-Za-z_ -]+>|^__\w+__$|%\w+%", re.DOTALL
)
TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})")
_TEXTS = ("Comment", "Next", "Default", "Resource", "Error", "Cause", "Label", "StartAt")
_NULL_PATHS = ("InputPath", "OutputPath", "ResultPath")
_NUMBERS: Final[dict[str, tuple[int, int, bool]]] = {
    "TimeoutSeconds": (1, MAX_SECONDS, True),
    "HeartbeatSeconds": (1, MAX_SECONDS, True),
    "Seconds": (0, MAX_SECONDS, True),
    "MaxConcurrency": (0, MAX_SECONDS, True),
    "ToleratedFailureCount": (0, 10_000_000, True),
    "ToleratedFailurePercentage": (0, 100, False),
    "IntervalSeconds": (1, MAX_SECONDS, True),
    "MaxAttempts": (0, MAX_SECONDS, True),
    "MaxDelaySeconds": (1, _MAX_DELAY, True),
}
_OBJECTS = (
    *("Assign", "ItemReader", "ResultWriter", "ItemBatcher", "Credentials", "ResultSelector"),
)
_ABSENT: Final = object()
_LISTS = ("Retry", "Catch", "Choices", "Branches")


def is_placeholder(value: object) -> bool:
    """Return whether a text is completed when the definition is deployed."""
    return isinstance(value, str) and PLACEHOLDER.search(value) is not None


def is_expression(value: object) -> bool:
    """Return whether a value is an expression of JSONata."""
    return isinstance(value, str) and value.startswith("{%") and value.endswith("%}")


def check(
    fields: Mapping[str, Any], path: str, language: str, names: tuple[Any, ...]
) -> Iterator[Finding]:
    """Yield what is wrong with the values of some fields of a state or a state machine."""
    for name in names:
        value = fields.get(name, _ABSENT)
        is_open = is_placeholder(value) or (language == "JSONata" and is_expression(value))
        if value is not _ABSENT and not is_open:
            yield from _value(name, value, f"{path}/{name}")


def _value(name: Any, value: Any, where: str) -> Iterator[Finding]:
    if name in _NUMBERS:
        yield from number(value, where, *_NUMBERS[name])
    elif name in _TEXTS and not isinstance(value, str):
        yield Finding("wrong-type", where, f"expected text, not {value!r}")
    elif str(name).endswith("Path") and not isinstance(value, str):
        if value is not None or name not in _NULL_PATHS:
            text = "a path or null" if name in _NULL_PATHS else "a path"
            yield Finding("wrong-type", where, f"expected {text}, not {value!r}")
    elif name == "End" and value is not True:
        yield Finding("wrong-value", where, "expected true; a state that goes on has Next")
    elif name in _LISTS:
        yield from _list(name, value, where)
    elif name == "Timestamp" and not (isinstance(value, str) and TIME.fullmatch(value)):
        text = "expected a time such as 2026-11-01T18:00:00Z"
        yield Finding("wrong-value", where, f"{text}, not {value!r}")
    elif name in _OBJECTS and not isinstance(value, Mapping):
        yield Finding("wrong-type", where, "expected an object")


def _list(name: str, value: Any, where: str) -> Iterator[Finding]:
    if not isinstance(value, list):
        yield Finding("wrong-type", where, "expected a list")
        return
    if not value and name in ("Choices", "Branches"):
        yield Finding("wrong-value", where, "is empty; it needs one entry at least")
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            yield Finding("wrong-type", f"{where}/{index}", "expected an object")


def number(value: Any, where: str, least: int, most: int, whole: bool) -> Iterator[Finding]:
    """Yield what is wrong with a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (whole and not float(value).is_integer()):
        kind = "a whole number" if whole else "a number"
        yield Finding("wrong-type", where, f"expected {kind}, not {value!r}")
    elif not least <= value <= most:
        yield Finding("wrong-value", where, f"is {value}; the limits are {least} and {most}")


def retrier(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Yield what is wrong with the numbers of a retrier."""
    yield from check(fields, path, "JSONPath", ("IntervalSeconds", "MaxAttempts"))
    yield from check(fields, path, "JSONPath", ("MaxDelaySeconds",))
    rate, where = fields.get("BackoffRate", 2.0), f"{path}/BackoffRate"
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        if not is_placeholder(rate):
            yield Finding("wrong-type", where, f"expected a number, not {rate!r}")
    elif rate < 1:
        yield Finding("wrong-value", where, f"is {rate}; the least is 1.0")
    if fields.get("JitterStrategy", "NONE") not in ("FULL", "NONE"):
        text = f"{fields['JitterStrategy']!r} is unknown; expected FULL or NONE"
        yield Finding("wrong-value", f"{path}/JitterStrategy", text)
    first, most = fields.get("IntervalSeconds", 1), fields.get("MaxDelaySeconds")
    if isinstance(most, int) and isinstance(first, int) and most <= first:
        text = f"is {most}; it must be more than IntervalSeconds, {first}"
        yield Finding("wrong-value", f"{path}/MaxDelaySeconds", text)
