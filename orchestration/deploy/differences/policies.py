"""Differences between policies, by statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.deploy.differences.fields import differing, text

_LISTS: Final = ("Action", "Resource")


def by_statement(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the statements that are new, gone or changed, and what changed in each."""
    old, new = _statements(before), _statements(after)
    for sid in dict.fromkeys([*old, *new]):
        if sid not in old:
            yield f"+ {sid}: {_summary(new[sid])}"
        elif sid not in new:
            yield f"- {sid}: {_summary(old[sid])}"
        elif lines := list(_differing(old[sid], new[sid])):
            yield f"~ {sid}"
            yield from (f"  {line}" for line in lines)


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for field in _LISTS:
        before, after = _several(old.get(field)), _several(new.get(field))
        yield from (f"- {each}" for each in before if each not in after)
        yield from (f"+ {each}" for each in after if each not in before)
    yield from differing(_others(old), _others(new))


def _others(statement: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in statement.items() if key not in _LISTS}


def _statements(policy: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    listed = _several(policy.get("Statement"))
    return {each.get("Sid", f"statement {n}"): each for n, each in enumerate(listed, start=1)}


def _summary(statement: Mapping[str, Any]) -> str:
    said = f"{', '.join(_several(statement.get('Action')))} on "
    said += ", ".join(map(str, _several(statement.get("Resource"))))
    return f"{said} if {text(statement['Condition'])}" if "Condition" in statement else said


def _several(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
