"""V3's objects as the requests they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """An object of V3 as JSON in the API's words; what is not set is left out.

    V3 marks what is not set by ``None`` or an ``Unassigned``.
    """
    fields = getattr(type(value), "model_fields", None)
    if fields is not None:
        found = {_pascal(name): plain(getattr(value, name)) for name in fields}
        return {name: inner for name, inner in found.items() if inner is not None}
    if type(value).__name__ == "Unassigned":
        return None
    if isinstance(value, Mapping):
        return {_pascal(str(name)): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def setting(owner: Any, name: str) -> Any:
    """An attribute of an object of V3, ``None`` where it is not set or there is no such object."""
    value = getattr(owner, name, None)
    return None if type(value).__name__ == "Unassigned" else value


def _pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
