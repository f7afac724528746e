"""Numbers in the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from orchestration.planning.model.configuration import ConfigurationError


def number(row: Mapping[str, str], column: str, default: float | None = None) -> float:
    """Return a cell's number; `default` if the cell is empty.

    Raises:
        ConfigurationError: the cell is empty without a default, or is not a number.
    """
    cell = row[column]
    if not cell:
        if default is None:
            raise ConfigurationError(f"{column} is missing")
        return default
    value = measured(cell)
    if value is None:
        raise ConfigurationError(f"{column}: expected a number, got {cell!r}")
    return value


def integer(row: Mapping[str, str], column: str, default: int | None = None) -> int:
    """Return a cell's number without its decimals."""
    return int(number(row, column, default))


def measured(cell: str) -> float | None:
    """Return a cell's finite number, which may have thousands separators; ``None``: no number."""
    try:
        value = float(cell.replace(",", ""))
    except ValueError:
        return None
    return value if isfinite(value) else None
