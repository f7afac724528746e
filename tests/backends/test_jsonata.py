"""JSONata means what `evaluate` means, to both implementations of JSONata."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from orchestration.backends import jsonata
from orchestration.errors import ExpressionError, UnsupportedError
from orchestration.expressions import (
    Best,
    Compare,
    Field,
    Item,
    Json,
    Parameter,
    Result,
    apply,
    evaluate,
    join,
)
from orchestration.expressions.evaluate import Values
from orchestration.expressions.nodes import Function
from orchestration.lint.languages import jsonata as linted
from orchestration.local.engine import jsonata as engine
from orchestration.refs import Ref, times
from tests.backends.jsonata_cases import (
    EXPRESSIONS,
    FORMATS,
    IMPOSSIBLE,
    RUNS,
    SECONDS,
    TEXT,
    TIMES,
    VALUES,
    OneRun,
    plain,
)
from tests.oracles import JsonataError, JsonataReference

MODERATE = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
UNDEFINED = object()
FAILED = "no value"


def in_python(expression: Any, run: OneRun) -> Any:
    try:
        return plain(evaluate(expression, run.values))
    except ExpressionError:
        return FAILED


def in_the_engine(text: str, bindings: dict[str, Any]) -> Any:
    try:
        return plain(engine.evaluate(text, bindings))
    except engine.JsonataError:
        return FAILED


def in_the_reference(reference: JsonataReference, text: str, bindings: dict[str, Any]) -> Any:
    try:
        value = reference(text, bindings, undefined=UNDEFINED)
    except JsonataError as error:
        if error.code is not None and error.code.startswith("S"):
            pytest.fail(f"no JSONata: {text}: {error}")
        return FAILED
    # Step Functions fails a state whose field is nothing.
    return FAILED if value is UNDEFINED else plain(value)


@given(EXPRESSIONS, RUNS)
@MODERATE
def test_every_expression_means_the_same_to_both_and_to_python(
    jsonata_reference: JsonataReference, expression: Any, run: OneRun
) -> None:
    text = jsonata.render(expression, run.scope)
    expected = in_python(expression, run)
    assert in_the_reference(jsonata_reference, text, run.bindings) == expected, text
    assert in_the_engine(text, run.bindings) == expected, text


@pytest.mark.parametrize("number", [-0.0, 0.0, -2.0, 1e14, 0.5, -1.25])
@pytest.mark.parametrize("text", ["$string($x)", "$x & ''", "$string([$x])", "$string({'x': $x})"])
def test_numbers_are_written_alike(
    jsonata_reference: JsonataReference, text: str, number: float
) -> None:
    expected = in_the_reference(jsonata_reference, text, {"x": number})
    assert in_the_engine(text, {"x": number}) == expected


@given(VALUES)
@MODERATE
def test_literals_arrive_as_they_are(jsonata_reference: JsonataReference, value: Any) -> None:
    text = jsonata.literal(value)
    assert in_the_reference(jsonata_reference, text, {}) == plain(value)
    assert in_the_engine(text, {}) == plain(value)


@pytest.mark.parametrize(
    "text",
    ["{% 1 %}", "%}", "{%", "", "$.x", "{{ ds }}", 'it\'s "so" \\ \n\t\x00', "😀\u2028é", "'%}"],
)
def test_a_literal_in_a_field_is_that_literal(
    jsonata_reference: JsonataReference, text: str
) -> None:
    value = jsonata.field_value({"key": [text], "key.$": text})
    assert isinstance(value, str)
    assert in_the_reference(jsonata_reference, bare(value), {}) == {"key": [text], "key.$": text}
    field = jsonata.field_value(text)
    if field != text:
        assert in_the_reference(jsonata_reference, bare(str(field)), {}) == text


def bare(value: str) -> str:
    assert value.startswith("{%")
    assert value.endswith("%}")
    assert "%}" not in value[:-2]
    return value[2:-2].strip()


@pytest.mark.parametrize(
    ("expression", "places"),
    [
        (apply(Function.PICKED, Result("train", "all"), "[/]$", 1, 2), [2, 1]),
        (apply(Function.TOP, Result("train", "all"), "n", "min", 2), [0, 2]),
        (apply(Function.TOP, Result("train", "all"), "n", "max", 2), [0, 1]),
    ],
)
def test_of_equals_both_keep_the_order(
    jsonata_reference: JsonataReference, expression: Any, places: list[int]
) -> None:
    rows: list[Json] = [
        {"Prefix": "e-1/", "n": 2, "at": 0},
        {"Prefix": "e-3/", "n": 3, "at": 1},
        {"Prefix": "e-03/", "n": 1, "at": 2},
        {"Prefix": "e-2/", "n": 2, "at": 3},
    ]
    run = OneRun(Values({"train": {"all": rows}, "stage.copy": {}}, {}), known=True)
    text = jsonata.render(expression, run.scope)
    expected: Any = in_python(expression, run)
    assert [each["at"] for each in expected] == places
    assert in_the_reference(jsonata_reference, text, run.bindings) == expected
    assert in_the_engine(text, run.bindings) == expected


@given(TEXT)
@MODERATE
def test_no_literal_ends_an_expression_early(text: str) -> None:
    assert "%}" not in jsonata.quote(text + "%}" + text)


SCOPE = OneRun(Values({"train": {}, "stage.copy": {}}, {"data": "s3://b/d"}), known=True).scope


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Result("train", "text"), "$train.text"),
        (join("s3://", Parameter("data"), "/x"), "'s3://' & $parameters.data & '/x'"),
        (
            apply(Function.S3_BUCKET, join("s3://", Parameter("data"), "/x")),
            "$substringBefore($parameters.data & '/', '/')",
        ),
        (apply(Function.S3_BUCKET, join("s3://name/", Parameter("data"))), "'name'"),
        (
            apply(
                Function.S3_KEY,
                apply(Function.DIRECTORY, join("s3://b/x/", Parameter("data"), "/y")),
            ),
            "'x/' & $parameters.data & '/y/'",
        ),
        (Compare("eq", Parameter("data"), "s3://b"), "$parameters.data = 's3://b'"),
    ],
)
def test_what_is_known_before_the_run_reads_plainly(expression: Any, text: str) -> None:
    assert jsonata.render(expression, SCOPE) == text


def test_an_error_says_what_a_person_calls_the_value() -> None:
    text = jsonata.render(Compare("lt", Field(Item(), "Size"), 3), SCOPE)
    with pytest.raises(engine.JsonataError, match=r"item\.Size is not a number"):
        engine.evaluate(text, {"item": {"Size": "3"}})


def test_the_first_of_equals_is_best() -> None:
    best = jsonata.render(Best(Item(), "metric", "max"), SCOPE)
    items = [{"metric": 1, "n": 1}, {"metric": 2, "n": 2}, {"metric": 2, "n": 3}]
    assert engine.evaluate(best, {"item": items}) == {"metric": 2, "n": 2}


def test_an_unresolved_reference_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="has no value while a run goes on"):
        jsonata.render(Ref("train", "model"), SCOPE)


def test_a_number_that_json_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="not a JSON number"):
        jsonata.literal(float("inf"))


@given(TIMES, SECONDS, FORMATS)
@MODERATE
def test_times_are_written_alike(
    jsonata_reference: JsonataReference, time: str, minus_s: int, format: str
) -> None:
    expression = apply(Function.TIME_TEXT, Parameter("bucket"), minus_s, format)
    run = OneRun(Values({}, {"bucket": time}, "0123456789ab"), known=False)
    text = jsonata.render(expression, run.scope)
    expected = in_python(expression, run)
    assert in_the_reference(jsonata_reference, text, run.bindings) == expected, text
    assert in_the_engine(text, run.bindings) == expected, text


@pytest.mark.parametrize("time", IMPOSSIBLE)
def test_what_is_no_time_is_refused(jsonata_reference: JsonataReference, time: str) -> None:
    expression = apply(Function.TIME_TEXT, Parameter("bucket"), 0, times.ISO)
    run = OneRun(Values({}, {"bucket": time}, "0123456789ab"), known=False)
    text = jsonata.render(expression, run.scope)
    assert in_python(expression, run) == FAILED
    assert in_the_reference(jsonata_reference, text, run.bindings) == FAILED
    assert in_the_engine(text, run.bindings) == FAILED


@pytest.mark.parametrize(
    ("expression", "is_one"),
    [
        ("$a ?? 1", False),
        ("$a ?: 1", False),
        ("$a.x[0]??'b'", False),
        ("($a ? 1 ?: 2 : 3)", False),
        ("?? 1", False),
        ("function($x)<n?:n>{ $x }(1)", True),
        ("$replace('a', /a??/, 'b')", True),
        ("$replace('a', /(?:a)/, 'b')", True),
        ("/* why ?? */ 1", True),
        ("{'x??y': 1}.`x??y`", True),
        ("$a ? '?:' : '??'", True),
    ],
)
def test_operators_of_a_later_version_are_no_syntax_and_their_characters_elsewhere_are(
    jsonata_reference: JsonataReference, expression: str, is_one: bool
) -> None:
    try:
        jsonata_reference(expression, {"a": 1}, undefined=UNDEFINED)
        refused = False
    except JsonataError as error:
        refused = error.code is not None and error.code.startswith("S")
    assert refused is not is_one
    assert (linted.read(expression).error is None) is is_one
    assert (engine.syntax_error(expression) is None) is is_one
