"""A look at which packages of a `requirements.txt` are there already."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires
from typing import Final

_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_PLATFORM: Final = re.compile(r"sys_platform\s*(==|!=)\s*['\"]([^'\"]+)['\"]")


def installed(requirements: Iterable[str]) -> bool:
    """Return whether every distribution is installed, with what its extras bring."""
    return all(map(_present, requirements))


def _present(requirement: str) -> bool:
    for operator, platform in _PLATFORM.findall(requirement.partition(";")[2]):
        if (sys.platform == platform) != (operator == "=="):
            return True  # nothing to install here
    match = _REQUIREMENT.match(requirement)
    if match is None:
        return False
    name, extras = match[1], [each.strip() for each in (match[2] or "").split(",") if each.strip()]
    try:
        needed = requires(name) or ()
    except PackageNotFoundError:
        return False
    return not extras or installed(_of_extras(needed, extras))


def _of_extras(needed: Iterable[str], extras: Iterable[str]) -> Iterator[str]:
    """Yield the requirements of some extras."""
    for line in needed:
        extra = _EXTRA.search(line.partition(";")[2])
        if extra is not None and extra[1] in extras:
            yield line
