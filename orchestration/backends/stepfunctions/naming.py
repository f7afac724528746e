"""Names for the variables of values: what they are of, and what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from orchestration.backends.stepfunctions.names import MAX_NAME, Scope
from orchestration.expressions import (
    Apply,
    Best,
    Field,
    Function,
    Item,
    Join,
    Parameter,
    Result,
    walk,
)
from orchestration.refs import Expression

_NO_WORD: Final = re.compile(r"\W", re.ASCII)
_OWN: Final = frozenset({"Polls", "Tries", "Looks", "Lacking", "Body", "Cleanup", "Results"})
"""The names of a step's other variables."""
RESULTS: Final[Mapping[Function, str]] = {
    Function.HASH: "Hash",
    Function.FINGERPRINT: "Fingerprint",
    Function.CONTAINS: "Same",
    Function.COUNT: "Count",
    Function.COUNT_FILES: "Files",
    Function.SUM: "Total",
    Function.LARGEST: "Largest",
    Function.NUMBERED: "Measured",
    Function.WHERE: "Matching",
    Function.PICKED: "Picked",
    Function.TOP: "Top",
    Function.TAG: "Tag",
    Function.DIFFERENCE: "Difference",
    Function.REMOVE_PREFIX: "Rest",
    Function.SAME_CONTENT: "Agrees",
    Function.URL_PATH: "Encoded",
    Function.DIRECTORY: "Directory",
    Function.S3_BUCKET: "Bucket",
    Function.S3_KEY: "Key",
    Function.ARN_NAME: "Name",
    Function.TIME_TEXT: "Time",
    Function.TEXT: "Text",
    Function.COLUMN: "Column",
    Function.LISTED: "Listed",
    Function.MISFITS: "Misfits",
    Function.FIRST_OF: "First",
}
"""The words for what each function comes to."""


def named(node: Expression[object], scope: Scope) -> str:
    """Return a variable's name that nothing else has: ``staging__list__TotalSize``."""
    subject, quality = _subject(node, scope), _quality(node)
    if subject.endswith("bucket"):
        quality = {"Bucket": "Name", "Key": "Prefix"}.get(quality, quality)
    helper = f"{quality}Value" if quality in _OWN else quality
    name, number = _cut(subject, helper), 1
    while name in scope.taken:
        number += 1
        name = _cut(subject, f"{helper}{number}")
    scope.taken.add(name)
    return name


def _cut(subject: str, helper: str) -> str:
    return f"{subject[: MAX_NAME - len(helper) - 2]}__{helper}"


def _subject(node: Expression[object], scope: Scope) -> str:
    """Return what the value is of: the first step, parameter or loop that it is made of."""
    leaves = [leaf for leaf in walk(node) if isinstance(leaf, Result | Parameter | Item)]
    match min(leaves, key=_rank, default=None):
        case Result(step, _):
            return step.replace(".", "__")
        case Parameter(name):
            return _NO_WORD.sub("_", name)
        case Item():
            return scope.loop.replace(".", "__")
        case _:
            return "run"


def _rank(leaf: Expression[object]) -> int:
    return (Item, Result, Parameter).index(type(leaf))


def _quality(node: Expression[object]) -> str:
    match node:
        case Apply(Function.SUM, (_, str() as key)):
            return f"Total{_capital(key)}"
        case Apply(Function.S3_KEY, (Apply(Function.DIRECTORY, _),)):
            return "Prefix"
        case Apply(function, _):
            return RESULTS[function]
        case Best():
            return "Best"
        case Join():
            return "Uri"
        case Field(_, name) | Result(_, name) | Parameter(name):
            return _capital(name)
        case _:
            return "Value"


def _capital(name: str) -> str:
    word = _NO_WORD.sub("_", name)
    return word[:1].upper() + word[1:] or "Value"
