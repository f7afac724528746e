"""Filters of a task: which keys below its source it transfers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestration.local.account.protocol import JsonObject


def patterns(rules: Sequence[JsonObject] | None) -> tuple[str, ...]:
    """Return the patterns of a filter: they are separated by pipes, which a backslash escapes."""
    return tuple(pattern for rule in rules or () for pattern in _split(rule["Value"]))


def misplaced_wildcards(includes: Sequence[str]) -> Iterator[str]:
    """Yield the include patterns with a wildcard that is not their last character."""
    return (pattern for pattern in includes if "*" in _unescaped(pattern).removesuffix("*"))


def chosen(key: str, includes: Sequence[str], excludes: Sequence[str]) -> bool:
    """Return whether a key, relative to the source, is transferred.

    >>> chosen("a/b.tmp", ["/a"], ["*.tmp"]), chosen("a/b.csv", ["/a*"], ["*.tmp"])
    (False, True)
    """
    included = not includes or any(_matches(pattern, key) for pattern in includes)
    return included and not any(_matches(pattern, key) for pattern in excludes)


def _matches(pattern: str, key: str) -> bool:
    """Return whether a pattern covers a key: as itself, or as a folder around it."""
    tokens = re.findall(r"\\.|.", pattern.rstrip("/"), flags=re.DOTALL)
    text = "".join(".*" if t == "*" else re.escape(t[-1]) for t in tokens)
    return re.fullmatch(f"{text}(/.*)?", f"/{key}", flags=re.DOTALL) is not None


def _split(value: str) -> list[str]:
    return re.findall(r"(?:\\.|[^|\\])+", value, flags=re.DOTALL)


def _unescaped(pattern: str) -> str:
    return re.sub(r"\\.", "", pattern)
