"""A graph becomes series and branches that respect every dependency, with no needless barrier."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.graph.composition import Branches, Part, Series, compose, leaves

Upstream = dict[str, frozenset[str]]


def edges(text: str) -> Upstream:
    """``a>b>c d`` as what each step waits for."""
    upstream: dict[str, set[str]] = {}
    for chain in text.split():
        names = chain.split(">")
        for name in names:
            upstream.setdefault(name, set())
        for before, after in pairwise(names):
            upstream[after].add(before)
    return {name: frozenset(before) for name, before in upstream.items()}


def shown(part: Part) -> str:
    match part:
        case Series(parts):
            return f"({' '.join(map(shown, parts))})"
        case Branches(parts):
            return f"[{' '.join(map(shown, parts))}]"
    return part


def composed(upstream: Upstream) -> Part:
    return compose(list(upstream), upstream)


def order(part: Part) -> set[tuple[str, str]]:
    """All pairs of which the first is over before the second begins."""
    if isinstance(part, str):
        return set()
    pairs = {pair for inner in part.parts for pair in order(inner)}
    if isinstance(part, Series):
        for number, inner in enumerate(part.parts):
            for later in part.parts[number + 1 :]:
                pairs |= {(a, b) for a in leaves(inner) for b in leaves(later)}
    return pairs


@pytest.mark.parametrize(
    ("graph", "structure"),
    [
        ("a", "a"),
        ("a>b>c", "(a b c)"),
        ("a b c", "[a b c]"),
        ("a>b>d a>c>d", "(a [b c] d)"),
        ("a>b>d>f a>c>e>f", "(a [(b d) (c e)] f)"),
        ("a>b>c a>c", "(a b c)"),
        ("a>c b>c d", "[([a b] c) d]"),
        ("a>c a>d b>d", "([a b] [c d])"),
        ("a>c>e a>d>f b>d", "([a b] [(c e) (d f)])"),
    ],
)
def test_structures(graph: str, structure: str) -> None:
    assert shown(composed(edges(graph))) == structure


@st.composite
def graphs(draw: st.DrawFn) -> Upstream:
    names = [f"s{n}" for n in range(draw(st.integers(1, 8)))]
    upstream: Upstream = {}
    for number, name in enumerate(names):
        before = draw(st.sets(st.sampled_from(names[:number]))) if number else set()
        upstream[name] = frozenset(before)
    return upstream


@given(graphs())
def test_every_step_is_there_once_and_after_what_it_waits_for(upstream: Upstream) -> None:
    part = composed(upstream)
    assert sorted(leaves(part)) == sorted(upstream)
    before = order(part)
    assert all((b, name) in before for name in upstream for b in upstream[name])


def _parts(inner: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(Series, several) | st.builds(Branches, several)


PARTS: st.SearchStrategy[Part] = st.recursive(st.just("x"), _parts, max_leaves=8)


def numbered(part: Part, names: list[str]) -> Part:
    """The part with a name of its own for each step."""
    if isinstance(part, str):
        names.append(f"s{len(names)}")
        return names[-1]
    return type(part)(tuple(numbered(inner, names) for inner in part.parts))


@given(PARTS)
def test_a_graph_of_series_and_branches_gets_no_needless_barrier(part: Part) -> None:
    named = numbered(part, [])
    pairs = order(named)
    upstream = {n: frozenset(a for a, b in pairs if b == n) for n in leaves(named)}
    assert order(composed(upstream)) == pairs


@given(graphs())
def test_it_is_the_same_every_time(upstream: Upstream) -> None:
    assert composed(upstream) == composed(dict(upstream))


def test_an_edge_that_others_imply_changes_nothing() -> None:
    assert shown(composed(edges("a>b>c a>c b>d c>d a>d"))) == "(a b c d)"
