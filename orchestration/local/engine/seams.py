"""Replaces parts of moto, and notices when a part is not there any more."""

from __future__ import annotations

from typing import Any

from orchestration.errors import LocalError


def replace(owner: Any, name: str, value: Any) -> Any:
    """Put `value` in the place of `owner.name`; returns what was there.

    Raises `LocalError` where nothing is: another version of moto has another seam there.
    """
    if not hasattr(owner, name):
        where = getattr(owner, "__qualname__", None) or owner.__name__
        raise LocalError(f"moto has no {where}.{name}; the embedded AWS needs moto 5.2.5")
    old = getattr(owner, name)
    setattr(owner, name, value)
    return old
