"""Laws of trees: walking, joining, substituting."""

from __future__ import annotations

import itertools
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration import Expression, Ref
from orchestration.errors import ExpressionError
from orchestration.expressions import (
    Best,
    Compare,
    Field,
    Item,
    Join,
    Parameter,
    Result,
    Run,
    Tree,
    field,
    join,
    parameter,
    substitute,
    walk,
)
from tests.expressions.strategies import NODES, TREES


def merged(tree: Tree) -> Tree:
    """The tree with its joins flat, as ``join`` builds them."""
    return substitute(tree, lambda leaf: leaf)


@given(TREES)
def test_replacing_leaves_by_themselves_changes_no_leaf(tree: Tree) -> None:
    leaves = (Result, Parameter, Run, Item)
    same = merged(tree)
    assert [n for n in walk(same) if isinstance(n, leaves)] == [
        n for n in walk(tree) if isinstance(n, leaves)
    ]
    assert merged(same) == same


@given(TREES)
def test_substitution_leaves_no_replaced_leaf_behind(tree: Tree) -> None:
    new = substitute(tree, lambda leaf: Item() if isinstance(leaf, Parameter) else leaf)
    assert not [node for node in walk(new) if isinstance(node, Parameter)]


@given(st.lists(st.text() | NODES))
def test_joining_in_parts_is_joining_at_once(parts: list[str | Expression[object]]) -> None:
    half = len(parts) // 2
    assert join(join(*parts[:half]), join(*parts[half:])) == join(*parts)


@given(st.lists(st.text() | NODES))
def test_a_join_holds_no_join_and_no_two_texts_in_a_row(
    parts: list[str | Expression[object]],
) -> None:
    flat = cast(Join, join(*parts)).parts
    assert not [p for p in flat if isinstance(p, Join) or p == ""]
    assert not [1 for a, b in itertools.pairwise(flat) if type(a) is type(b) is str]


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (3, "3"), (0.5, "0.5"), (None, "null"), ("x", "x")]
)
def test_a_known_value_in_a_join_becomes_text(value: Tree, text: str) -> None:
    assert substitute(Join(("a-", Ref("s", "o"))), lambda _: value) == Join((f"a-{text}",))


def test_a_known_object_in_a_join_is_refused() -> None:
    with pytest.raises(ExpressionError, match="expected text"):
        substitute(Join(("a-", Ref("s", "o"))), lambda _: {"id": 1})


def test_a_field_of_a_known_object_is_taken_at_once() -> None:
    system: Tree = {"id": parameter("system"), "directory": "/x"}
    assert substitute(Field(Ref("s", "o"), "id"), lambda _: system) == parameter("system")
    with pytest.raises(ExpressionError, match="has no field 'mount'"):
        field(system, "mount")


def test_a_known_value_where_an_expression_is_needed_is_refused() -> None:
    with pytest.raises(ExpressionError, match="needs an expression"):
        substitute(Best(Ref("s", "o"), "metric", "max"), lambda _: "text")


def test_walking_goes_from_the_outside_in() -> None:
    inner = Result("a", "x")
    tree = {"k": [Compare("eq", join("a", inner), 1)]}
    assert [type(node) for node in walk(tree)] == [Compare, Join, Result]


def test_join_refuses_what_is_neither_text_nor_reference() -> None:
    with pytest.raises(ExpressionError, match="join takes text and references, not int: 3"):
        join("a", cast(str, 3))
