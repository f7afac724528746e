"""Replacement of parts of moto, which fails if a part no longer exists."""

from __future__ import annotations

from typing import Any

from orchestration.errors import LocalError


def replace(owner: Any, name: str, value: Any) -> Any:
    """Replace `owner.name` with `value` and return what it was.

    Raises `LocalError` if it does not exist: another version of moto is built differently.
    """
    if not hasattr(owner, name):
        where = getattr(owner, "__qualname__", None) or owner.__name__
        raise LocalError(f"moto has no {where}.{name}; the embedded AWS needs moto 5.2.5")
    old = getattr(owner, name)
    setattr(owner, name, value)
    return old
