"""Placeholders for what only the target account knows: the account, the region, and values.

A deployment is computed with one character in the place of each, of those that Unicode keeps for
private use: policies, names and templates pass it on as they pass on any text. A format then writes
each character as its own reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.deploy.account import refusal
from orchestration.expressions import Json

ACCOUNT: Final = "AWS::AccountId"
REGION: Final = "AWS::Region"
_WRITTEN: Final = re.compile(r"\$\{(AWS::AccountId|AWS::Region|[A-Za-z][A-Za-z0-9]*)\}")
_FIRST: Final = 0xE000
_MARK: Final = re.compile("([\ue000-\uf8ff])")


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The character that stands for each name."""

    marks: Mapping[str, str]

    @classmethod
    def of(cls, values: Iterable[Json]) -> Placeholders:
        """Collect the names that values hold as ``${Name}``, beside account and region."""
        names = {name for text in _texts(list(values)) for name in _WRITTEN.findall(text)}
        own = sorted(names - {ACCOUNT, REGION})
        if twins := [name for name in own if [snake(n) for n in own].count(snake(name)) > 1]:
            raise refusal("names of the template differ by case only", [", ".join(twins)])
        return cls({name: chr(_FIRST + i) for i, name in enumerate([ACCOUNT, REGION, *own])})

    def marked(self, value: Json) -> Json:
        """Put characters in the place of ``${Name}``."""
        if isinstance(value, list | tuple):
            return [self.marked(each) for each in value]
        if isinstance(value, Mapping):
            return {name: self.marked(each) for name, each in value.items()}
        if not isinstance(value, str):
            return value
        return _WRITTEN.sub(lambda match: self.marks[match[1]], value)

    def held(self, document: Any) -> frozenset[str]:
        """Return the names that a document holds."""
        used = {mark for text in _texts(document) for mark in _MARK.findall(text)}
        return frozenset(name for name, mark in self.marks.items() if mark in used)

    def filled(self, text: str, values: Mapping[str, str]) -> str:
        """Put values in the place of characters; those without one become nothing."""
        return self.written(text, literal=str, reference=lambda name: values.get(name, ""))

    def written(
        self, text: str, *, literal: Callable[[str], str], reference: Callable[[str], str]
    ) -> str:
        """Write a text in another language, its literal parts and its references."""
        names = {mark: name for name, mark in self.marks.items()}
        parts = _MARK.split(text)
        return "".join(
            reference(names[part]) if index % 2 else literal(part)
            for index, part in enumerate(parts)
        )

    def readable(self, text: str) -> str:
        """Write a text for people: ``${Name}``."""
        return self.written(text, literal=str, reference=lambda name: f"${{{name}}}")


def snake(name: str) -> str:
    """Return a name in the case of Terraform's variables.

    >>> snake("DataBucket")
    'data_bucket'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _texts(document: Any) -> Iterable[str]:
    match document:
        case str():
            yield document
        case Mapping():
            for key, value in document.items():
                yield from _texts(key)
                yield from _texts(value)
        case list() | tuple():
            for each in document:
                yield from _texts(each)
