"""Invocations of Lambda, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.deploy import Account, permissions
from orchestration.errors import PipelineError, UnsupportedError
from orchestration.execution.clients import patience
from orchestration.execution.outputs import taken
from orchestration.graph import Output, all_steps


def pipeline(**fields: Any) -> Pipeline:
    stage = {
        "kind": "aws_call",
        "service": "lambda",
        "operation": "Invoke",
        "request": {"FunctionName": "words", "Payload": {"a": 1}},
        **fields,
    }
    return Pipeline.parse(
        {
            "name": "functions",
            "workspace": "s3://bucket/runs",
            "parameters": {"event": {}},
            "stages": {"call": stage},
        }
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"request": {"FunctionName": "f", "Payload": '{"a": 1}'}},
            r"call\.request\.Payload: expected the event as an object",
        ),
        (
            {"request": {"FunctionName": "f", "Payload": {"parameter": "event"}}},
            r"call\.request\.Payload: expected the event as an object",
        ),
        (
            {
                "request": {"FunctionName": "f", "InvocationType": "Event"},
                "results": {"a": "Payload.a"},
            },
            r"call\.results\.a: an invocation of the type 'Event' waits for no payload",
        ),
        ({"results": {"a": "Paylod.a"}}, r"call\.results\.a: .*did you mean 'Payload'"),
        ({"request": {"Payload": {}}}, "FunctionName"),
    ],
)
def test_wrong_invocations_are_refused_with_a_way_out(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        pipeline(**fields)


def test_a_payload_of_another_service_stays_bytes() -> None:
    with pytest.raises((PipelineError, UnsupportedError), match="Payload"):
        pipeline(service="sns", operation="Publish", results={"a": "Payload.a"})


def test_what_fails_if_the_function_did_comes_before_all_that_follows() -> None:
    graph = pipeline(results={"call": "Payload", "succeeded": "Payload[0].b"}).lower().graph
    assert [step.name for step in all_steps(graph)] == [
        "call.call",
        "call.succeeded",
        "call.call_returned",
        "call.succeeded_returned",
    ]


def test_an_invocation_without_an_answer_has_nothing_behind_it() -> None:
    request = {"FunctionName": "f", "InvocationType": "Event", "Payload": {}}
    [call] = all_steps(pipeline(request=request).lower().graph)
    assert call.name == "call.call"


def test_the_state_machine_may_invoke_this_function_only() -> None:
    workflow = pipeline().lower()
    document = permissions.policy(workflow, Account(id="1" * 12, region="eu-west-1"), [{}])
    [statement] = document["Statement"]
    assert statement["Action"] == ["lambda:InvokeFunction"]
    assert statement["Resource"][0] == "arn:aws:lambda:eu-west-1:111111111111:function:words"
    assert "aws-sdk:lambda:invoke" in str(stepfunctions.render(workflow))


def test_a_function_may_take_its_time_before_a_client_gives_up() -> None:
    assert patience("lambda")["read_timeout"] > 900
    assert patience("sns") == {}


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (("a",), [{"b": 1}]),
        (("a", 0, "b"), 1),
        (("a", "b"), None),
        (("a", 1), None),
        (("c", 0), None),
        (("d",), None),
        ((), {"a": [{"b": 1}], "c": "text", "d": None}),
    ],
)
def test_places_in_a_parsed_payload(place: tuple[str | int, ...], expected: Any) -> None:
    response = {"Payload": '{"a": [{"b": 1}], "c": "text", "d": null}'}
    output = Output(("Payload",), parse=True, inside=place, default=None)
    assert taken({"x": output}, response, "step") == {"x": expected}
