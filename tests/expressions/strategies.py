"""Random trees, and random values for them to be evaluated with."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from orchestration.expressions import (
    All,
    Apply,
    Best,
    Compare,
    Field,
    Function,
    Item,
    Not,
    Parameter,
    Result,
    Run,
    join,
    nodes,
)

TEXT = st.text(max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
KEYS = TEXT | st.just("$Parameter") | st.just("ref")
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.builds(Result, TEXT, TEXT), st.builds(Parameter, TEXT), st.just(Run()), st.just(Item())
)


def _nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=3).map(tuple)
    mixed = inner | SCALARS
    ops = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
    return st.one_of(
        st.lists(TEXT | inner, max_size=3).map(lambda parts: join(*parts)),
        st.builds(Field, inner, TEXT),
        st.builds(Compare, ops, mixed, mixed),
        st.builds(All, several),
        st.builds(nodes.Any, several),
        st.builds(Not, inner),
        st.builds(Best, inner, TEXT, st.sampled_from(["max", "min"])),
        st.builds(Apply, st.sampled_from(Function), st.lists(mixed, max_size=2).map(tuple)),
    )


NODES = st.recursive(LEAVES, _nodes, max_leaves=6)
TREES = st.recursive(
    SCALARS | NODES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
