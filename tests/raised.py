"""The names of errors that the package's source gives to failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from orchestration.execution import wording
from orchestration.stages.evaluation import verdict

_PACKAGE = Path(__file__).parents[1] / "orchestration"
_ELSEWHERE = {"explanations", "importing", "lint", "local"}
"""Rooms whose errors are others': of definitions that are read, of the AWS that is embedded."""
_LITERAL = re.compile(r"""\berror="([A-Z]\w+)["]""")
_NAMED = re.compile(
    r"(?:\berror=|\btoo_slow=|\bRunError\(|\bfail\((?:context, )?|\breturn |_ended\("
    r"|\"Error\": )(_?[A-Z][A-Z_]+)\b"
)
_CONSTANT = re.compile(r'^(_?[A-Z][A-Z_]+)(?:: Final)? = "([A-Z][A-Za-z]+)"$', re.MULTILINE)
_HUMPS = re.compile(r"(?:[A-Z][a-z]+){2,}")


def raised() -> set[str]:
    """Return the names that the source gives, by literals and by constants."""
    sources = [*_sources()]
    constants: dict[str, set[str]] = {}
    for source in sources:
        for name, text in _CONSTANT.findall(source):
            constants.setdefault(name, set()).add(text)
    names = {name for source in sources for name in _LITERAL.findall(source)}
    for source in sources:
        for name in _NAMED.findall(source):
            names |= constants.get(name, set())
    names |= {text for text in vars(wording).values() if _is_name(text)}
    return names | {error for _, error in {**verdict._FAILURES, **verdict._MISSES}.values()}


def _sources() -> Iterator[str]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.relative_to(_PACKAGE).parts[0] not in _ELSEWHERE:
            yield path.read_text("utf-8")


def _is_name(text: object) -> bool:
    return isinstance(text, str) and _HUMPS.fullmatch(text) is not None
