"""The fields in which two values differ, a line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

LONGEST: Final = 120
"""Characters of a value that are shown."""


def differing(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield ``+ field: value``, ``- field: value`` and ``~ field: old -> new``, by path."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys([*before, *after]):
            below = f"{path}.{name}" if path else str(name)
            if name not in before:
                yield f"+ {below}: {text(after[name])}"
            elif name not in after:
                yield f"- {below}: {text(before[name])}"
            else:
                yield from differing(before[name], after[name], below)
    elif _alike(before, after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differing(old, new, f"{path}[{index}]")
    else:
        yield f"~ {path}: {text(before)} -> {text(after)}"


def text(value: Any) -> str:
    """Return a value as JSON, cut if it is long."""
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= LONGEST else f"{written[:LONGEST]}…"


def _alike(before: Any, after: Any) -> bool:
    """Return whether both are lists of objects, element by element."""
    return (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
        and all(isinstance(each, Mapping) for each in (*before, *after))
    )
