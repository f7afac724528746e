"""The combinations of strategies and settings that work: rows of data with their sources.

A row of ``support.csv`` is one fact. ``strategy`` names strategies by kind (SMDDP with its
launcher: ``smddp:mpirun``), ``subject`` the fact that is judged, ``value`` its values, ``when``
further conditions of the row. A pattern is a list of alternatives, divided by ``|``: a glob, or a
bound (``>=2.0.1``) that numbers are compared with part by part. Of the rows for a strategy and a
subject the first match decides; an unknown fact matches no row.

The facts that rows read:

=================  =================================================================================
``framework``      the framework of the container's toolkit; for Hugging Face its base
``estimator``      the framework as the user named it
``version``        of ``framework``, written out (2.8 as 2.8.0)
``container``      ``framework`` where it is AWS's image of that version, ``given`` where the user
                   gave an image
``image``          the repository and tag of an image that was given
``instance_type``  a candidate; each is judged
``device``         ``gpu``, ``neuron`` or ``cpu``, and ``devices`` how many a host has
``capability``     compute capability of its GPUs: ``9.0``
``cuda``           CUDA of the container, from `containers.csv` or the tag of a given image;
                   ``neuron``: its Neuron SDK
``instance_count`` instances of the cluster
``entry_point``    the user's script, if there is one
``groups``         ``yes`` on a heterogeneous cluster
=================  =================================================================================
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Literal, TypeAlias, cast

Facts: TypeAlias = Mapping[str, str | None]
"""Facts by name; ``None`` if unknown."""

Verdict: TypeAlias = Literal["yes", "no", "unknown", "caution"]
"""It works; it can't; the sources do not say; it works with a drawback."""

_BOUND = re.compile(r"(<=|>=|<|>)(.+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One fact about a strategy in a setting."""

    strategy: str
    subject: str
    value: str
    when: Mapping[str, str]
    verdict: Verdict
    reason: str
    """The reason, with facts in braces: ``{instance_type}``."""
    instead: str
    """The remedy."""
    source: str
    read: str
    """The day it was read, ``YYYY-MM-DD``."""

    def matches(self, facts: Facts) -> bool:
        """Return whether the row applies to these facts."""
        return _matches(self.value, facts.get(self.subject)) and all(
            _matches(pattern, facts.get(name)) for name, pattern in self.when.items()
        )

    def message(self, facts: Facts) -> str:
        """Return the problem or the doubt, and the remedy."""
        return f"{self.reason}; {self.instead}".format_map(facts)


@cache
def rules() -> tuple[Rule, ...]:
    """Read every row, in the order of the file."""
    from importlib import resources

    text = resources.files(__package__).joinpath("support.csv").read_text(encoding="utf-8")
    return tuple(_rule(row) for row in csv.DictReader(text.splitlines()))


def deciding(strategy: str, facts: Facts) -> Iterator[Rule]:
    """Find the row that decides each subject."""
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


@lru_cache(maxsize=10_000)
def _matches(pattern: str, value: str | None) -> bool:
    return value is not None and any(_is(each, value) for each in pattern.split("|"))


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
