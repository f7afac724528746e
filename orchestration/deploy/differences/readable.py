"""A change of a resource as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.deploy.differences.definitions import by_state
from orchestration.deploy.differences.fields import differing
from orchestration.deploy.differences.policies import by_statement
from orchestration.deploy.resources import Change, aspects

_BY_ASPECT: Final = {"definition": by_state, "permissions": by_statement}


def readable(change: Change) -> list[str]:
    """Return what a change does, without its first line; of a deletion there is no more to say.

    Lines begin with ``+``, ``-`` or ``~`` behind their indentation, titles with a letter.
    """
    return [] if change.after is None else list(_lines(change))


def _lines(change: Change) -> Iterator[str]:
    before, after = aspects(change.before), aspects(change.after)
    plain: list[str] = []
    for name in change.aspects:
        by = _BY_ASPECT.get(name)
        if by is None:
            plain += differing(_only(before, name), _only(after, name))
        else:
            yield name
            yield from (f"  {line}" for line in by(before.get(name, {}), after.get(name, {})))
    yield from plain


def _only(aspects: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: aspects[name]} if name in aspects else {}
