"""The rows of which strategy runs where: well formed, with a source, and none in vain."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from datetime import date
from fnmatch import fnmatchcase
from itertools import product
from string import Formatter

import pytest
from pydantic import TypeAdapter

from orchestration.catalog import training_types
from orchestration.strategies import SMDDP, Strategy, Use
from orchestration.strategies.facts import facts, key
from orchestration.strategies.support import Rule, Verdict, deciding, rules

RULES = rules()
FACTS = frozenset(next(facts(SMDDP(), Use())))


def kinds() -> list[str]:
    """Every strategy as rows name it."""
    schema = TypeAdapter(Strategy).json_schema()
    plain = [kind for kind in schema["discriminator"]["mapping"] if kind != "smddp"]
    return [*plain, "smddp:mpirun", "smddp:torchrun"]


def samples(pattern: str) -> Iterator[str]:
    """Values that a pattern may be for; that they match is checked by the rule itself."""
    for one in pattern.split("|"):
        bound = re.fullmatch(r"(<=|>=|<|>)(.+)", one)
        if bound is not None:
            yield bound[2]
            yield from (f"{bound[2]}.1", "0.1", "99.9")
        yield from ("0.0.1", "9.9.9", "ml.g5.xlarge", "ml.c5.xlarge", "run.sh", "mine:1")
        yield re.sub(r"\[(.)[^]]*]", r"\1", one).replace("*", "x")


def cases(rule: Rule) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Strategies and facts that a row may be about."""
    conditions = [list(samples(pattern)) for pattern in rule.when.values()]
    strategies = [k for k in kinds() if any(fnmatchcase(k, p) for p in rule.strategy.split("|"))]
    for strategy, value, *others in product(strategies, samples(rule.value), *conditions):
        known: dict[str, str | None] = dict(zip(rule.when, others, strict=True))
        yield strategy, {**known, rule.subject: value}


def named(rule: Rule) -> str:
    return f"{rule.strategy} {rule.subject}={rule.value} {rule.when}"


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_row_says_what_it_is_about_and_where_that_stands(rule: Rule) -> None:
    assert rule.subject in FACTS
    assert rule.when.keys() <= FACTS
    assert rule.verdict in typing.get_args(Verdict)
    assert rule.reason
    assert rule.source
    assert date.fromisoformat(rule.read) <= date(2026, 11, 22)
    # A verdict against something names a way out.
    assert bool(rule.instead) == (rule.verdict != "yes")


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_every_strategy_that_a_row_names_exists(rule: Rule) -> None:
    for pattern in rule.strategy.split("|"):
        assert any(fnmatchcase(kind, pattern) for kind in kinds()), pattern


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind != "none"])
def test_every_strategy_has_rows_of_its_own(kind: str) -> None:
    """Without rows, a strategy would pass as supported everywhere; `none` starts no processes."""
    patterns = {pattern for rule in RULES for pattern in rule.strategy.split("|")} - {"*"}
    assert any(fnmatchcase(kind, pattern) for pattern in patterns)


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_row_decides_somewhere(rule: Rule) -> None:
    assert any(rule in deciding(strategy, known) for strategy, known in cases(rule))


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_message_needs_only_what_the_row_has_seen(rule: Rule) -> None:
    fields = {
        name
        for _, name, *_ in Formatter().parse(f"{rule.reason} {rule.instead}")
        if name is not None
    }
    seen = {rule.subject, *rule.when, "strategy"}
    # What a host has comes from the catalog together with its type.
    seen |= {"instance_type"} if seen & {"device", "devices", "capability"} else set()
    assert fields <= seen


def test_every_instance_type_that_a_row_names_exists() -> None:
    for rule in RULES:
        patterns = [rule.value] if rule.subject == "instance_type" else []
        for pattern in "|".join(patterns).split("|"):
            assert not pattern or any(fnmatchcase(t, pattern) for t in training_types()), pattern


def test_a_strategy_is_known_by_its_kind_and_launcher() -> None:
    assert key(SMDDP(launcher="torchrun")) == "smddp:torchrun"


@pytest.mark.parametrize(
    ("version", "works"),
    [("1.13.1", True), ("2.2.0", True), ("2.10.0", False), ("2.2.10", False), ("1.9.2", False)],
)
def test_versions_are_compared_part_by_part(version: str, works: bool) -> None:
    known = {"framework": "pytorch", "container": "framework", "version": version}
    verdicts = {r.verdict for r in deciding("smddp:mpirun", known) if r.subject == "version"}
    assert verdicts == {"yes" if works else "no"}
