"""The catalog's tables, read from the folder of this module."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Source:
    """A source of figures."""

    key: str
    what: str
    read: str
    """The day it was read, ``YYYY-MM-DD``."""


@cache
def sources() -> Mapping[str, Source]:
    """Return every source of the catalog by the key that rows refer to."""
    return MappingProxyType({row["key"]: Source(**row) for row in rows("sources.csv")})


def rows(name: str) -> Iterator[dict[str, str]]:
    """Read the rows of a table, as text; an empty cell means that no source states the value."""
    return iter(csv.DictReader(text(name).splitlines()))


def text(name: str) -> str:
    """Read a file of the catalog."""
    from importlib import resources

    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def number(cell: str) -> float | None:
    """Read a cell as a number; ``None`` if it is empty."""
    return float(cell) if cell else None


def whole(cell: str) -> int | None:
    """Read a cell as a whole number; ``None`` if it is empty."""
    return int(cell) if cell else None


def truth(cell: str) -> bool | None:
    """Read a cell that says ``yes`` or ``no``; ``None`` if it is empty."""
    return {"yes": True, "no": False, "": None}[cell]
