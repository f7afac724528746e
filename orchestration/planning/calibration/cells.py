"""Numbers in the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from orchestration.planning.model.configuration import ConfigurationError


def number(row: Mapping[str, str], column: str, default: float | None = None) -> float:
    """A cell's number; `default` for an empty cell.

    Raises:
        ConfigurationError: the cell is empty without a default, or holds no number.
    """
    cell = row[column]
    if not cell:
        if default is None:
            raise ConfigurationError(f"{column} is empty, and nothing else tells it")
        return default
    found = measured(cell)
    if found is None:
        raise ConfigurationError(f"{column} is {cell!r}, not a number")
    return found


def integer(row: Mapping[str, str], column: str, default: int | None = None) -> int:
    """A cell's number, without its decimals."""
    return int(number(row, column, default))


def measured(cell: str) -> float | None:
    """The finite number of a cell, maybe with commas between thousands; ``None``: there is none."""
    try:
        found = float(cell.replace(",", ""))
    except ValueError:
        return None
    return found if isfinite(found) else None
