"""The fields of requests, and which integration knows them.

``known.csv``: fields that the APIs had a year before AWS last updated the ``aws-sdk`` integrations.
``synchronous.csv``: those that ``.sync`` integrations are documented, or known by their use, to
take; what is inside them counts as well where ``newer.csv`` doesn't except it. ``newer.csv``: all
other fields. ``refused`` is a field that came after the last update; ``doubtful``, one of which
nobody says whether an update brought it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, Literal, cast

from orchestration.graph import Integration

Certainty = Literal["known", "doubtful", "refused"]

UPDATED: Final = "2026-08-18"
"""The last update of the ``aws-sdk`` integrations that AWS had announced when this was written."""
SETTLED: Final = "2025-08-18"
"""Fields of an API that are older count as known to ``aws-sdk``: it is updated each quarter."""


@dataclass(frozen=True, slots=True)
class NewField:
    """A field of a request that an integration may not know."""

    operation: str
    """``sagemaker:CreateTrainingJob``."""
    path: str
    """``ResourceConfig.InstancePreferences``."""
    since: str
    """The day on which botocore had it; empty if that was after this table was written."""
    sync: Certainty = "doubtful"
    sdk: Certainty = "doubtful"

    def certainty(self, integration: Integration) -> Certainty:
        """Return whether an integration takes the field."""
        return self.sync if integration == "sync" else self.sdk


@cache
def newer() -> Mapping[tuple[str, str], NewField]:
    """Return the newer fields, by operation and path."""
    fields = [
        NewField(
            operation=row["operation"],
            path=row["field"],
            since=row["since"],
            sync=cast("Certainty", row["sync"] or row["sdk"]),
            sdk=cast("Certainty", row["sdk"]),
        )
        for row in _rows("newer.csv")
    ]
    return MappingProxyType({(field.operation, field.path): field for field in fields})


@cache
def known() -> Mapping[tuple[str, str], frozenset[str]]:
    """Return the members that are known, by operation and the path of their object."""
    return MappingProxyType(
        {
            (row["operation"], row["at"]): frozenset(row["members"].split())
            for row in _rows("known.csv")
        }
    )


@cache
def synchronous() -> Mapping[str, frozenset[str]]:
    """Return the fields that each ``.sync`` integration takes, by operation."""
    fields: dict[str, frozenset[str]] = {}
    for row in _rows("synchronous.csv"):
        operation = row["operation"]
        fields[operation] = fields.get(operation, frozenset()) | set(row["members"].split())
    return MappingProxyType(fields)


def _rows(name: str) -> Iterator[dict[str, str]]:
    from importlib import resources

    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return iter(csv.DictReader(text.splitlines()))
