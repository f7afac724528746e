"""Any tree comes back from JSON as it went in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from orchestration import Ref
from orchestration.errors import ExpressionError
from orchestration.expressions import Tree, codec, parameter
from tests.expressions.strategies import JSON, TREES


@given(TREES)
def test_a_tree_comes_back_as_it_went_in(tree: Tree) -> None:
    assert codec.decode(json.loads(json.dumps(codec.encode(tree)))) == tree


@given(JSON)
def test_no_data_of_a_user_is_taken_for_an_expression(value: Tree) -> None:
    for key in ("$Parameter", "$literal", "$"):
        assert codec.decode(codec.encode({key: value})) == {key: value}


def test_a_mapping_that_looks_encoded_stays_a_mapping() -> None:
    forged = {"$Parameter": "secret"}
    assert codec.decode(codec.encode(forged)) == forged
    assert codec.decode(codec.encode(parameter("secret"))) == parameter("secret")


def test_a_stage_reference_is_not_encoded() -> None:
    with pytest.raises(ExpressionError, match=r"train\.checkpoints.*resolve it first"):
        codec.encode({"a": [Ref("train", "checkpoints")]})
