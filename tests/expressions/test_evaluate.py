"""Evaluation in Python, and its number text against JavaScript's own."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration import Expression
from orchestration.errors import ExpressionError
from orchestration.expressions import (
    All,
    Best,
    Compare,
    Field,
    Function,
    Item,
    Json,
    Not,
    Result,
    Run,
    Tree,
    apply,
    evaluate,
    join,
    nodes,
    parameter,
)
from orchestration.expressions.evaluate import Values, run_token
from orchestration.expressions.scalars import text
from tests.expressions.strategies import JSON
from tests.oracles import JsonataReference

ENV = Values(
    results={"list": {"items": [{"m": 1}, {"m": 3, "first": True}, {"m": 3}], "flag": True}},
    parameters={"bucket": "b", "count": 2},
    run_token="0123456789ab",
    current={"Key": "k"},
)
ITEMS = Result("list", "items")


def value(tree: Tree) -> Json:
    return evaluate(tree, ENV)


@given(JSON)
def test_data_without_expressions_is_its_own_value(tree: Json) -> None:
    assert value(tree) == tree


def test_leaves_take_their_values_from_the_environment() -> None:
    leaves = [parameter("count"), Run(), Item(), Result("list", "flag"), Field(Item(), "Key")]
    assert value(leaves) == [2, "0123456789ab", {"Key": "k"}, True, "k"]


STEPS = [{"Prefix": f"c/e-{n}/"} for n in (9, 10, 1)]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (parameter("bukcet"), "'bukcet'.*did you mean 'bucket'"),
        (Result("lsit", "items"), "'lsit'.*did you mean 'list'"),
        (Result("list", "item"), "'item'.*did you mean 'items'"),
        (Field(Item(), "Size"), "no field 'Size'"),
    ],
)
def test_what_is_not_there_is_named(tree: Expression[object], message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        value(tree)


def test_number_text_is_that_of_javascript(jsonata_reference: JsonataReference) -> None:
    # Beyond, 15 digits round up to infinity, which the reference writes as null and we refuse.
    @given(st.lists(st.floats(-1.7e308, 1.7e308), min_size=2, max_size=50))
    def same(numbers: list[float]) -> None:
        theirs = jsonata_reference("$map($n, $string)", {"n": numbers})
        assert [text(number) for number in numbers] == theirs

    same()


@pytest.mark.parametrize(
    "number",
    [
        0,
        -0.0,
        1,
        -1.5,
        0.1 + 0.2,
        1e21,
        1e-6,
        1e-7,
        123456789012345678,
        5e-324,
        1e22,
        999999999999999.9,
        1e20,
        -1e-7,
    ],
)
def test_number_text_at_the_edges_is_that_of_javascript(
    number: float, jsonata_reference: JsonataReference
) -> None:
    assert text(number) == jsonata_reference("$string($n)", {"n": number})


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 10**400])
def test_what_json_can_not_hold_has_no_text(number: float) -> None:
    with pytest.raises(ExpressionError, match="a number that JSON can hold"):
        text(number)


@given(JSON, JSON)
def test_equal_and_unequal_are_opposites(left: Json, right: Json) -> None:
    assert value(Compare("eq", left, right)) is not value(Compare("ne", left, right))


@pytest.mark.parametrize(
    ("left", "right"), [("1", 1), (True, 1), (False, 0), (None, ""), (None, False)]
)
def test_equality_never_mixes_types(left: Json, right: Json) -> None:
    assert value(Compare("eq", left, right)) is False


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("wrong", ["1", True, None, [1]])
def test_order_is_for_numbers_only(op: Literal["lt", "le", "gt", "ge"], wrong: Json) -> None:
    for left, right in ((wrong, 1), (1, wrong), (wrong, wrong)):
        with pytest.raises(ExpressionError, match="expected a number"):
            value(Compare(op, left, right))


@given(st.integers() | st.floats(allow_nan=False), st.integers() | st.floats(allow_nan=False))
def test_exactly_one_of_less_equal_greater_holds(left: float, right: float) -> None:
    assert [value(Compare(op, left, right)) for op in ("lt", "eq", "gt")].count(True) == 1


CONDITIONS = st.lists(st.booleans().map(lambda b: Compare("eq", b, True)), max_size=4)


@given(CONDITIONS)
def test_de_morgan(conditions: list[Compare]) -> None:
    some = nodes.Any(tuple(conditions))
    none = All(tuple(Not(condition) for condition in conditions))
    assert value(Not(some)) == value(none)


def test_a_condition_has_to_be_a_boolean() -> None:
    for wrong in (All((parameter("count"),)), Not(parameter("bucket"))):  # type: ignore[arg-type]  # what is tested
        with pytest.raises(ExpressionError, match="expected true or false"):
            value(wrong)


def test_best_is_the_first_of_equals() -> None:
    assert value(Best(ITEMS, "m", "max")) == {"m": 3, "first": True}
    assert value(Best(ITEMS, "m", "min")) == {"m": 1}


@given(st.lists(st.integers(), min_size=1), st.sampled_from(["max", "min"]))
def test_nothing_is_better_than_the_best(
    metrics: list[int], direction: Literal["max", "min"]
) -> None:
    env = Values({"s": {"o": [{"m": m} for m in metrics]}}, {})
    best = evaluate(Field(Best(Result("s", "o"), "m", direction), "m"), env)
    assert best == (max if direction == "max" else min)(metrics)


@pytest.mark.parametrize("items", [[], "text", {"m": 1}, [{"m": "3"}], [{}], [3]])
def test_there_is_no_best_of_anything_but_objects_with_the_number(items: Json) -> None:
    with pytest.raises(ExpressionError):
        evaluate(Best(Result("s", "o"), "m", "max"), Values({"s": {"o": items}}, {}))


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (Function.HASH, ["abc"], "ba7816bf8f01"),
        (Function.FINGERPRINT, ["abc", []], hashlib.sha256(b"abc").hexdigest()),
        (
            Function.FINGERPRINT,
            ["", [{"Key": "a b", "Size": 5, "ETag": '"x"'}, {"Key": "c", "Size": 0, "ETag": ""}]],
            hashlib.sha256(b'5 "x" a b\n0  c\n').hexdigest(),
        ),
        (
            Function.DIFFERENCE,
            [
                [{"Key": key, "Size": 1} for key in "vwx"],
                [{"Key": "v", "Size": 1}, {"Key": "w", "Size": 2}, {"Key": "y", "Size": 1}],
            ],
            "w 1, x 1, w 2",
        ),
        (Function.DIFFERENCE, [[], [{"Key": "v", "Size": 1}]], "v 1"),
        (Function.DIFFERENCE, [[], []], ""),
        (Function.SAME_CONTENT, [{"ETag": '"x"'}, {"ETag": '"x"'}, ""], True),
        (Function.SAME_CONTENT, [{"ETag": '"x"'}, {"ETag": '"y"'}, "AES256"], False),
        # Of parts, and under KMS on either side, an ETag says nothing.
        (Function.SAME_CONTENT, [{"ETag": '"x-2"'}, {"ETag": '"y"'}, "AES256"], True),
        (Function.SAME_CONTENT, [{"ETag": '"x"'}, {"ETag": '"y"'}, "aws:kms"], True),
        (
            Function.SAME_CONTENT,
            [{"ETag": "x", "ServerSideEncryption": "aws:kms:dsse"}, {"ETag": "y"}, "AES256"],
            True,
        ),
        (Function.SAME_CONTENT, [{"ChecksumSHA256": "x="}, {"ChecksumSHA256": "y="}, ""], False),
        (Function.SAME_CONTENT, [{"ChecksumCRC32": "x=-2"}, {"ChecksumCRC32": "y="}, ""], True),
        (Function.SAME_CONTENT, [{"ChecksumSHA1": "x="}, {"ChecksumCRC64NVME": "y="}, ""], True),
        (
            Function.SAME_CONTENT,
            [{"ChecksumType": "COMPOSITE"}, {"ChecksumType": "FULL_OBJECT"}, ""],
            True,
        ),
        (
            Function.SAME_CONTENT,
            [{"ETag": "x", "ChecksumCRC64NVME": "x="}, {"ChecksumCRC64NVME": "y="}, "aws:kms"],
            False,
        ),
        (Function.CONTAINS, ["a text", " t"], True),
        (Function.CONTAINS, ["a text", "T"], False),
        (Function.COUNT, [[1, 2]], 2),
        (Function.COUNT_FILES, [[{"Key": "a/"}, {"Key": "a/b"}, {"Key": ""}]], 2),
        (Function.COUNT_FILES, [[]], 0),
        (Function.PICKED, [STEPS, "e-[^/]*[/]$", 1, 0], [STEPS[2], STEPS[0], STEPS[1]]),
        (Function.PICKED, [STEPS, "[/]$", 2, 0], [STEPS[2], STEPS[1]]),
        (Function.PICKED, [STEPS, "[/]$", 1, 2], [STEPS[0], STEPS[1]]),
        (Function.PICKED, [STEPS, "nothing", 1, 2], []),
        (Function.PICKED, [[], "[/]$", 1, 1], []),
        (Function.TOP, [[{"a": 1}, {"a": 3}, {"a": 2}], "a", "max", 2], [{"a": 3}, {"a": 2}]),
        (Function.TOP, [[{"a": 2, "b": 1}, {"a": 2}], "a", "min", 1], [{"a": 2, "b": 1}]),
        (
            Function.TOP,
            [[{"a": 2, "b": 1}, {"a": 3}, {"a": 1}, {"a": 2}], "a", "min", 2],
            [{"a": 2, "b": 1}, {"a": 1}],
        ),
        (Function.TOP, [[{"a": None}, {"a": math.nan}, {"b": 1}, 1], "a", "min", 3], []),
        (Function.TAG, [[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}], "b"], "2"),
        (Function.TAG, [[{"Key": "a", "Value": "1"}, 3, {}], "b"], ""),
        (Function.TAG, [[], "b"], ""),
        (Function.SUM, [[{"Size": 1}, {"Size": 2}], "Size"], 3),
        (Function.SUM, [[], "Size"], 0),
        (Function.LARGEST, [[{"Size": 1}, {"Size": 2.5}, {"Size": 2}], "Size"], 2.5),
        (Function.LARGEST, [[{"Size": -1}], "Size"], 0),
        (Function.LARGEST, [[], "Size"], 0),
        (Function.NUMBERED, [[{"a": math.nan}, {"a": 1}, {"a": -math.inf}, {}], "a"], [{"a": 1}]),
        (Function.WHERE, [[{"a": 1}, {"a": 3}, {"b": 1}, 1], "a", "le", 2], [{"a": 1}]),
        (
            Function.WHERE,
            [[{"a": True}, {"a": None}, {"a": "2"}, {"a": 2}], "a", "ge", 1],
            [{"a": 2}],
        ),
        (Function.WHERE, [[{"a": "1"}], "a", "lt", 1], []),
        (Function.WHERE, [[{"a": -math.inf}, {"a": math.nan}], "a", "lt", 1], []),
        (Function.WHERE, [[{"n": "x"}, {"n": "y"}, {}], "n", "eq", "x"], [{"n": "x"}]),
        (Function.WHERE, [[{"n": "x"}, {"n": None}, {}], "n", "ne", "x"], [{"n": None}]),
        (Function.LISTED, [[{"a": "x"}, {"a": "y"}], "a"], "x, y"),
        (Function.LISTED, [[], "a"], ""),
        (Function.REMOVE_PREFIX, ["a/b", "a/"], "b"),
        (Function.URL_PATH, ["a b/ü+c"], "a%20b/%C3%BC%2Bc"),
        (Function.S3_BUCKET, ["s3://bucket/a/b"], "bucket"),
        (Function.S3_KEY, ["s3://bucket/a/b"], "a/b"),
        (Function.S3_KEY, ["s3://bucket"], ""),
        (Function.ARN_NAME, ["arn:aws:sns:us-east-1:111122223333:news"], "news"),
        (Function.ARN_NAME, ["arn:aws:sagemaker:us-east-1:1:pipeline/churn"], "churn"),
        (Function.ARN_NAME, ["arn:aws:states:us-east-1:1:execution:machine:run"], "run"),
        (Function.ARN_NAME, ["name"], "name"),
        (Function.ARN_NAME, [""], ""),
        (Function.DIRECTORY, ["a"], "a/"),
        (Function.DIRECTORY, ["a/"], "a/"),
        (Function.TEXT, [True], "true"),
    ],
)
def test_functions(function: Function, arguments: list[Tree], expected: Json) -> None:
    assert value(apply(function, *arguments)) == expected


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (Function.HASH, [1]),
        (Function.FINGERPRINT, ["", [{"Key": "a", "Size": "1", "ETag": ""}]]),
        (Function.FINGERPRINT, ["", [{"Key": "a", "Size": 1}]]),
        (Function.FINGERPRINT, [1, []]),
        (Function.CONTAINS, ["text", 1]),
        (Function.SAME_CONTENT, ["x", {}, ""]),
        (Function.DIFFERENCE, [[{"Key": "a"}], []]),
        (Function.COUNT, ["text"]),
        (Function.COUNT_FILES, [[{"Key": 1}]]),
        (Function.COUNT_FILES, [["a/b"]]),
        (Function.TAG, [{"Key": "a", "Value": "1"}, "a"]),
        (Function.TAG, [[], 1]),
        (Function.LISTED, [[{"a": 1}], "a"]),
        (Function.LISTED, [[{}], "a"]),
        (Function.SUM, [[{}], "Size"]),
        (Function.WHERE, [[], "a", "lt", None]),
        (Function.LARGEST, [[{"Size": "1"}], "Size"]),
        (Function.REMOVE_PREFIX, ["b", "a"]),
        (Function.S3_BUCKET, ["bucket/key"]),
        (Function.DIRECTORY, [None]),
        (Function.ARN_NAME, [1]),
        (Function.TEXT, [[1]]),
    ],
)
def test_functions_refuse_what_they_are_not_for(function: Function, arguments: list[Any]) -> None:
    with pytest.raises(ExpressionError):
        value(apply(function, *arguments))


def test_joined_values_are_text() -> None:
    tree = join("s3://", parameter("bucket"), "/", parameter("count"), "/", Result("list", "flag"))
    assert value(tree) == "s3://b/2/true"


def test_a_run_is_known_by_twelve_digits_of_its_identity() -> None:
    assert run_token("digits/manual") == hashlib.sha256(b"digits/manual").hexdigest()[:12]
