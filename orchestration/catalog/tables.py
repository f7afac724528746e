"""The catalog's tables, read from beside this module."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Source:
    """Where figures come from."""

    key: str
    what: str
    read: str
    """The day somebody looked, ``YYYY-MM-DD``."""


@cache
def sources() -> Mapping[str, Source]:
    """Every source of the catalog by the key that the rows name."""
    return MappingProxyType({row["key"]: Source(**row) for row in rows("sources.csv")})


def rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of a table, as text; an empty cell is what no source says."""
    return iter(csv.DictReader(text(name).splitlines()))


def text(name: str) -> str:
    """A file of the catalog."""
    from importlib import resources

    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def number(cell: str) -> float | None:
    """A cell's number; ``None`` for what is not known."""
    return float(cell) if cell else None


def whole(cell: str) -> int | None:
    """A cell's whole number; ``None`` for what is not known."""
    return int(cell) if cell else None


def truth(cell: str) -> bool | None:
    """A cell's ``yes`` or ``no``; ``None`` for what is not known."""
    return {"yes": True, "no": False, "": None}[cell]
