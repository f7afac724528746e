"""Which strategy runs where: rows of data with their sources, and how they are read.

A row of ``support.csv`` is one fact. ``strategy`` names strategies by kind (SMDDP with its
launcher: ``smddp:mpirun``), ``subject`` what is judged, ``value`` which of its values, ``when``
what else has to be known for the row to count. A pattern is a list of alternatives, divided by
``|``: a glob, or a bound (``>=2.0.1``) that numbers are compared with part by part. Of the rows for
one strategy and subject the first that matches decides; what is not known matches none.

The facts that rows read:

=================  =================================================================================
``framework``      what the container's toolkit is for; for Hugging Face its base
``estimator``      the framework as the user named it
``version``        of ``framework``, written out (2.8 as 2.8.0)
``container``      ``framework`` where it is AWS's image of that version, ``given`` where the user
                   gave an image
``image``          the repository and tag of an image that was given
``instance_type``  a candidate; each is judged
``device``         ``gpu``, ``neuron`` or ``cpu``, and ``devices`` how many a host has
``instance_count`` instances of the cluster
``entry_point``    the script, where there is code of the user's own
``groups``         ``yes`` on a heterogeneous cluster
=================  =================================================================================
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal, TypeAlias, cast

Facts: TypeAlias = Mapping[str, str | None]
"""What is known, by name; ``None``: not known."""

Verdict: TypeAlias = Literal["yes", "no", "unknown", "caution"]
"""It works; it can't; the sources do not say; it works, but not as one would wish."""

_BOUND = re.compile(r"(<=|>=|<|>)(.+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One fact about which strategy runs where."""

    strategy: str
    subject: str
    value: str
    when: Mapping[str, str]
    verdict: Verdict
    reason: str
    """Why, with the facts in braces: ``{instance_type}``."""
    instead: str
    """The way out."""
    source: str
    read: str
    """The day somebody looked, ``YYYY-MM-DD``."""

    def matches(self, facts: Facts) -> bool:
        """Whether the row says something about these facts."""
        return _matches(self.value, facts.get(self.subject)) and all(
            _matches(pattern, facts.get(name)) for name, pattern in self.when.items()
        )

    def message(self, facts: Facts) -> str:
        """What is wrong or not known, and the way out."""
        return f"{self.reason}; {self.instead}".format_map(facts)


@cache
def rules() -> tuple[Rule, ...]:
    """Every row, in the order in which they are read."""
    from importlib import resources

    text = resources.files(__package__).joinpath("support.csv").read_text(encoding="utf-8")
    return tuple(_rule(row) for row in csv.DictReader(text.splitlines()))


def deciding(strategy: str, facts: Facts) -> Iterator[Rule]:
    """The row that decides each subject about which there is one."""
    decided = set()
    for rule in _of(strategy):
        if rule.subject not in decided and rule.matches(facts):
            decided.add(rule.subject)
            yield rule


@cache
def _of(strategy: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules() if _matches(rule.strategy, strategy))


def _rule(row: Mapping[str, str]) -> Rule:
    conditions = (condition.partition("=") for condition in row["when"].split(";") if condition)
    return Rule(
        strategy=row["strategy"],
        subject=row["subject"],
        value=row["value"],
        when={name: pattern for name, _, pattern in conditions},
        verdict=cast(Verdict, row["verdict"]),
        reason=row["reason"],
        instead=row["instead"],
        source=row["source"],
        read=row["read"],
    )


def _matches(pattern: str, value: str | None) -> bool:
    return value is not None and any(_is(one, value) for one in pattern.split("|"))


def _is(pattern: str, value: str) -> bool:
    bound = _BOUND.fullmatch(pattern)
    if bound is None:
        return fnmatchcase(value, pattern)
    ours, theirs = _parts(value), _parts(bound[2])
    width = max(len(ours), len(theirs))
    ours, theirs = (part + (0,) * (width - len(part)) for part in (ours, theirs))
    match bound[1]:
        case "<":
            return ours < theirs
        case "<=":
            return ours <= theirs
        case ">":
            return ours > theirs
        case _:
            return ours >= theirs


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
