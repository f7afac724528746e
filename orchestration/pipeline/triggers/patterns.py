"""Patterns of events, as EventBridge takes them.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-event-patterns.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from orchestration.errors import Problem, near
from orchestration.expressions import Json

_FIELDS: Final = (
    "account",
    "detail",
    "detail-type",
    "id",
    "region",
    "resources",
    "source",
    "time",
    "version",
)
_FILTERS: Final = (
    "anything-but",
    "cidr",
    "equals-ignore-case",
    "exists",
    "numeric",
    "prefix",
    "suffix",
    "wildcard",
)
_MOST_CHARACTERS: Final = 2048
"""https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html"""


def of_objects(bucket: str, prefix: str, suffix: str) -> dict[str, Json]:
    """Return the pattern of new objects.

    >>> of_objects("incoming", "new/", ".csv")["detail"]["object"]
    {'key': [{'wildcard': 'new/*.csv'}]}
    """
    detail: dict[str, Json] = {"bucket": {"name": [bucket]}}
    if prefix and suffix:
        # Filters in one list are alternatives.
        detail["object"] = {"key": [{"wildcard": f"{_literal(prefix)}*{_literal(suffix)}"}]}
    elif prefix or suffix:
        detail["object"] = {"key": [{"prefix": prefix} if prefix else {"suffix": suffix}]}
    return {"source": ["aws.s3"], "detail-type": ["Object Created"], "detail": detail}


def of_model_packages(group: str, status: str) -> dict[str, Json]:
    """Return the pattern of versions in a group that get a status."""
    return {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker Model Package State Change"],
        "detail": {"ModelPackageGroupName": [group], "ModelApprovalStatus": [status]},
    }


def having(pattern: Mapping[str, Json], paths: Iterable[str]) -> dict[str, Json]:
    """Return a pattern of events that have some fields in ``detail``, too.

    An event without a field that a parameter needs gives an input that is no JSON, and nothing
    would say why nothing starts.
    """
    made: dict[str, Any] = json.loads(json.dumps(pattern))
    for path in paths:
        *parents, last = ("detail", *path.split("."))
        place: Any = made
        for name in parents:
            place = place.setdefault(name, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place.setdefault(last, [{"exists": True}])
    return made


def problems(pattern: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what EventBridge would refuse of a pattern, or what would match too much."""
    for name in pattern:
        if name not in (*_FIELDS, "$or"):
            yield Problem(str(name), f"is an unknown field of events{near(str(name), _FIELDS)}")
    if "source" not in pattern:
        yield Problem(
            "source",
            "is missing; name where the events come from, [my.orders] or [aws.sagemaker], so that "
            "no other event starts a run",
        )
    yield from _nested(pattern, "")


def length_problems(pattern: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the error of a pattern that is too long, with all that is added to a user's own."""
    length = len(json.dumps(pattern))
    if length > _MOST_CHARACTERS:
        yield Problem(
            "",
            f"has {length} characters as JSON, a pattern of EventBridge, and the most is "
            f"{_MOST_CHARACTERS}",
        )


def _nested(pattern: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for name, value in pattern.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and value:
            yield from _nested(value, here)
        elif name == "$or" and isinstance(value, list) and len(value) > 1:
            for number, each in enumerate(value):
                if isinstance(each, Mapping):
                    yield from _nested(each, f"{here}[{number}]")
                else:
                    yield Problem(f"{here}[{number}]", f"expected a pattern, got {each!r:.60}")
        elif isinstance(value, list) and value and name != "$or":
            for number, each in enumerate(value):
                yield from _filter(each, f"{here}[{number}]")
        else:
            yield Problem(
                here, f"expected a list of values or filters, or a mapping, got {value!r:.60}"
            )


def _filter(value: Any, path: str) -> Iterator[Problem]:
    if value is None or isinstance(value, str | int | float):
        return
    if not isinstance(value, Mapping) or len(value) != 1:
        yield Problem(path, f"expected a value, or a filter such as {{prefix: a}}, got {value!r}")
        return
    [(name, wanted)] = value.items()
    if name not in _FILTERS:
        yield Problem(path, f"unknown filter {name!r}{near(str(name), _FILTERS)}")
    elif name == "exists" and not isinstance(wanted, bool):
        yield Problem(path, f"exists: expected true or false, got {wanted!r}")


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*")
