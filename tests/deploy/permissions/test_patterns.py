"""Patterns are never narrower than what a run will hold, and as narrow as what is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.deploy.permissions.patterns import ANY, Known, iam, pattern
from orchestration.expressions import (
    Field,
    Function,
    Item,
    Json,
    Result,
    Tree,
    apply,
    evaluate,
    join,
    parameter,
    run_id,
)
from orchestration.expressions.evaluate import Values
from tests.deploy.permissions.policy import matches

TEXT = st.text(alphabet="ab-/*?$ü", max_size=12)
URI = st.builds(lambda bucket, key: f"s3://b{bucket}/{key}", st.text("ab-.", max_size=4), TEXT)
TREES: dict[str, Tree] = {
    "parameter": parameter("uri"),
    "join": join("x-", parameter("uri"), "/", run_id(), "/z"),
    "bucket": apply(Function.S3_BUCKET, parameter("uri")),
    "key": apply(Function.S3_KEY, parameter("uri")),
    "bucket of a joined": apply(Function.S3_BUCKET, join(parameter("uri"), "/more")),
    "key of a joined": apply(Function.S3_KEY, join(parameter("uri"), run_id(), "/more")),
    "directory": apply(Function.S3_KEY, apply(Function.DIRECTORY, parameter("uri"))),
    "hash": join("a-", apply(Function.HASH, parameter("uri"))),
    "text": apply(Function.TEXT, 1.5),
}


@pytest.mark.parametrize("name", TREES)
@given(uri=URI)
def test_a_run_matches_its_pattern(name: str, uri: str) -> None:
    value = evaluate(TREES[name], Values({}, {"uri": uri}))
    assert isinstance(value, str)
    for known in ({"uri": uri}, {"uri": None}, {}):
        found = pattern(TREES[name], Known(parameters=known, listings={}))
        assert matches(iam(found), value)


@pytest.mark.parametrize("name", sorted(TREES.keys() - {"hash", "join", "key of a joined"}))
@given(uri=URI, other=URI)
def test_what_is_known_matches_nothing_else(name: str, uri: str, other: str) -> None:
    value = evaluate(TREES[name], Values({}, {"uri": other}))
    found = pattern(TREES[name], Known(parameters={"uri": uri}, listings={}))
    assert isinstance(value, str)
    assert matches(iam(found), value) == (evaluate(TREES[name], Values({}, {"uri": uri})) == value)


@given(prefix=TEXT)
def test_what_an_unknown_bucket_holds_may_begin_anywhere(prefix: str) -> None:
    tree = apply(Function.S3_KEY, join("s3://", parameter("place"), "/data"))
    value = evaluate(tree, Values({}, {"place": f"bucket/{prefix}"}))
    assert matches(iam(pattern(tree, Known(parameters={}, listings={}))), str(value))


def test_what_is_listed_begins_with_the_listings_prefix() -> None:
    known = Known(parameters={"data": "s3://b/set"}, listings={"list": "set/"})
    inside = known.inside(Result("list", "objects"))
    assert pattern(Field(Item(), "Key"), inside) == f"set/{ANY}"
    assert pattern(Field(Item(), "Size"), inside) == ANY
    assert pattern(Field(Item(), "Key"), known) == ANY


def test_parameters_that_were_asked_for_are_remembered() -> None:
    known = Known(parameters={}, listings={})
    pattern(join("a", parameter("one")), known.inside(Result("s", "o")))
    assert known.missing == {"one"}


@pytest.mark.parametrize("listed", [[], ["s3://a/b"], [{"uri": "s3://a/b"}]])
def test_a_list_may_be_any_text(listed: list[Json]) -> None:
    assert pattern(parameter("rows"), Known(parameters={"rows": listed}, listings={})) == ANY
