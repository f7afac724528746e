"""Failures: their names, causes and events, as recordings of Step Functions have them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from tests.local.conftest import BUCKET
from tests.local.engine.machines import SDK, created, jsonata, output_of, passing, run_of

CAUGHT = {"ErrorEquals": ["States.ALL"], "Next": "Z", "Output": "{% $states.errorOutput %}"}
UNDEFINED = {"Type": "Pass", "Output": {"best": "{% $states.input.none %}"}, "End": True}
NO_OBJECT = {
    "Type": "Task",
    "Resource": SDK + "s3:getObject",
    "Arguments": {"Bucket": BUCKET, "Key": "there/is/none"},
    "End": True,
}
INNER = {"StartAt": "I", "States": {"I": {"Type": "Succeed"}}}
LATE = {
    "Type": "Task",
    "Resource": "arn:aws:states:::events:putEvents.waitForTaskToken",
    "Arguments": {"Entries": [{"Source": "a", "DetailType": "b", "Detail": "{}"}]},
    "TimeoutSeconds": 20,
    "End": True,
}
LARGE = {
    "Type": "Pass",
    "Output": "{% $join($map([1..30000], function($i) { '0123456789' })) %}",
    "End": True,
}


def around(kind: str, state: dict[str, Any]) -> dict[str, Any]:
    """Put a state into a Map, a Parallel, or a Parallel in a Map, with a Catch outside."""
    inner = {"StartAt": "I", "States": {"I": state}}
    parallel = {"Type": "Parallel", "Branches": [inner], "End": True}
    if kind == "Parallel in Map":
        inner = {"StartAt": "P", "States": {"P": parallel}}
    outer = parallel if kind == "Parallel" else {
        "Type": "Map", "Items": [1], "ItemProcessor": inner, "End": True,
    }  # fmt: skip
    return jsonata(A={**outer, "Catch": [CAUGHT]}, Z={"Type": "Succeed"})


@pytest.mark.parametrize("kind", ["Map", "Parallel", "Parallel in Map"])
@pytest.mark.parametrize(
    ("state", "error", "cause"),
    [
        (UNDEFINED, "States.QueryEvaluationError", "returned nothing (undefined)."),
        (NO_OBJECT, "S3.NoSuchKeyException", "The specified key does not exist."),
        (LATE, "States.Timeout", ""),
        (LARGE, "States.DataLimitExceeded", "exceeding the maximum number of bytes"),
    ],
)
def test_an_error_is_caught_under_its_own_name_outside_of_where_it_occurred(
    aws: EmbeddedAws, kind: str, state: dict[str, Any], error: str, cause: str
) -> None:
    caught = output_of(aws, around(kind, state))
    assert caught["Error"] == error
    assert cause in caught["Cause"]


@pytest.mark.parametrize("kind", ["Map", "Parallel"])
def test_what_nothing_catches_ends_the_execution_as_it_is_and_says_once_where_it_was(
    aws: EmbeddedAws, kind: str
) -> None:
    definition = around(kind, UNDEFINED)
    del definition["States"]["A"]["Catch"], definition["States"]["Z"]
    run = run_of(aws, definition)
    assert run["error"] == "States.QueryEvaluationError"
    assert run["cause"].count("An error occurred while executing the state") == 1
    assert run["cause"].startswith("An error occurred while executing the state 'I' (entered at")


def test_a_fail_state_without_an_error_is_matched_by_nothing(aws: EmbeddedAws) -> None:
    run = run_of(aws, around("Map", {"Type": "Fail"}))
    assert run["status"] == "FAILED"
    assert "error" not in run


@pytest.mark.parametrize(
    ("state", "field"),
    [
        ({"Type": "Pass", "Output": "{% $none %}"}, "Output"),
        ({"Type": "Pass", "Output": {"a": ["x", {"b": "{% $none %}"}]}}, "Output/a[1]/b"),
        ({"Type": "Pass", "Assign": {"v": "{% $none %}"}}, "Assign/v"),
        ({**NO_OBJECT, "Arguments": {"Key": "{% $none %}"}}, "Arguments/Key"),
        ({**NO_OBJECT, "Arguments": "{% $none %}"}, "Arguments"),
        ({"Type": "Wait", "Seconds": "{% $none %}"}, "Seconds"),
    ],
)
def test_a_cause_and_an_event_name_the_field_of_an_expression_without_a_value(
    aws: EmbeddedAws, state: dict[str, Any], field: str
) -> None:
    run = run_of(aws, jsonata("Here", Here={**state, "End": True}))
    cause = (
        "An error occurred while executing the state 'Here' (entered at the event id #2). The "
        f"JSONata expression '$none' specified for the field '{field}' returned nothing "
        "(undefined)."
    )
    assert run["cause"] == cause
    events = aws.client("stepfunctions").get_execution_history(executionArn=run["executionArn"])
    failed = [e for e in events["events"] if e["type"] == "EvaluationFailed"]
    assert [e["evaluationFailedEventDetails"] for e in failed] == [
        {
            "error": "States.QueryEvaluationError",
            "cause": cause,
            "location": field,
            "state": "Here",
        }
    ]


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        (
            {"Type": "Map", "Items": "{% {'a': 'é'} %}", "ItemProcessor": INNER},
            "'Items' returned an unexpected result type. Expected 'array', but was 'object' for "
            'value: {"a":"é"}',
        ),
        (
            {"Type": "Map", "ItemProcessor": INNER},
            'Map state input must be an array but was: {"n":[1,2]}',
        ),
        (
            {"Type": "Wait", "Timestamp": "{% 'tomorrow' %}"},
            "The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format "
            "string: tomorrow",
        ),
        (
            {"Type": "Pass", "Output": "{% function($x){$x} %}"},
            "'Output' returned an unsupported result type.",
        ),
        (
            {"Type": "Pass", "Output": "{% $sumOf(1) %}"},
            "'Output' threw an error during evaluation. T1006: Attempted to invoke a non-function",
        ),
    ],
)
def test_a_wrong_value_is_shown_as_json(
    aws: EmbeddedAws, state: dict[str, Any], cause: str
) -> None:
    run = run_of(aws, jsonata(A={**state, "End": True}), {"n": [1, 2]})
    assert run["error"] == "States.QueryEvaluationError"
    assert run["cause"].endswith(cause)


def test_the_cause_of_an_api_s_error_counts_attempts_and_names_s3_s_extended_request(
    aws: EmbeddedAws,
) -> None:
    cause = run_of(aws, jsonata(A=NO_OBJECT))["cause"]
    assert "(Service: S3, Status Code: 404, Request ID: " in cause
    assert ", Extended Request ID: " in cause
    assert cause.endswith(") (SDK Attempt Count: 1)")
    other = jsonata(
        A={
            "Type": "Task",
            "Resource": SDK + "iam:getRole",
            "Arguments": {"RoleName": "none"},
            "End": True,
        }
    )
    assert "Extended" not in run_of(aws, other)["cause"]


@pytest.mark.parametrize(
    ("broken", "location"),
    [
        ({"Output": {"a": "{% 1 + %}"}}, "/States/A/Output/a"),
        ({"Assign": {"v": ["{% (1 %}"]}}, "/States/A/Assign/v[0]"),
    ],
)
def test_an_expression_that_does_not_parse_is_refused_before_anything_runs(
    aws: EmbeddedAws, broken: dict[str, Any], location: str
) -> None:
    definition = jsonata(A={"Type": "Pass", "End": True, **broken})
    with pytest.raises(ClientError, match="InvalidDefinition") as refused:
        created(aws, definition)
    assert location in str(refused.value)
    answer = aws.client("stepfunctions").validate_state_machine_definition(
        definition=json.dumps(definition)
    )
    assert answer["result"] == "FAIL"
    assert [d["location"] for d in answer["diagnostics"]] == [location]


def test_a_sound_definition_is_valid_and_one_without_a_start_is_not(aws: EmbeddedAws) -> None:
    validate = aws.client("stepfunctions").validate_state_machine_definition
    assert validate(definition=json.dumps(passing(1)))["result"] == "OK"
    (diagnostic,) = validate(definition=json.dumps({"States": {"A": {"Type": "Succeed"}}}))[
        "diagnostics"
    ]
    assert (diagnostic["code"], diagnostic["location"], diagnostic["message"]) == (
        "SCHEMA_VALIDATION_FAILED",
        "/",
        "These fields are required: [StartAt]",
    )
