"""V3's objects as the requests they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Convert an object of V3 to JSON in the API's spelling; unset fields are left out.

    V3 marks unset fields by ``None`` or an ``Unassigned``.
    """
    fields = getattr(type(value), "model_fields", None)
    if fields is not None:
        values = {_pascal(name): plain(getattr(value, name)) for name in fields}
        return {name: inner for name, inner in values.items() if inner is not None}
    if type(value).__name__ == "Unassigned":
        return None
    if isinstance(value, Mapping):
        return {_pascal(str(name)): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def setting(owner: Any, name: str) -> Any:
    """Return an attribute of an object of V3; ``None`` if it is unset or the object is None."""
    value = getattr(owner, name, None)
    return None if type(value).__name__ == "Unassigned" else value


def _pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
