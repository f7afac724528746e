"""Nothing that waits for a person's answer runs unasked in what is imported."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.errors import PipelineError
from orchestration.importing import Imported, from_data
from orchestration.pipeline import Pipeline

TOPIC = "arn:aws:sns:us-east-1:111122223333:t"


def task(resource: str, parameters: Any, **more: Any) -> dict[str, Any]:
    arn = resource if resource.startswith("arn:") else f"arn:aws:states:::{resource}"
    return {"Type": "Task", "Resource": arn, "Parameters": parameters, **more}


def question(**more: Any) -> dict[str, Any]:
    asked = {"TopicArn": TOPIC, "Subject": "Deploy?", "Message.$": "$$.Task.Token"}
    return task("sns:publish.waitForTaskToken", asked, **more)


def imported(ask: dict[str, Any], **states: Any) -> Imported:
    """A machine that asks, deploys, and tells."""
    deploy = task("sagemaker:createEndpoint", {"EndpointName": "e", "EndpointConfigName": "c"})
    tell = task("sns:publish", {"TopicArn": TOPIC, "Message": "m"}, End=True)
    every = {"Ask": ask, **states, "Deploy": {**deploy, "Next": "Tell"}, "Tell": tell}
    made = from_data({"StartAt": "Ask", "States": every})
    Pipeline.parse(made.description).lower()
    return made


@pytest.mark.parametrize(
    ("seconds", "hours", "text"),
    [
        (3600, 1, None),
        (60, 1, "60 s: an answer is waited for 1 h (answer_within_h)"),
        (2_592_001, 720, "2592001 s: an answer is waited for 720 h (answer_within_h)"),
        (None, 720, "no limit: an answer is waited for 720 h (answer_within_h)"),
    ],
)
def test_an_approval_waits_as_long_as_it_may(seconds: int | None, hours: int, text: Any) -> None:
    limit = {} if seconds is None else {"TimeoutSeconds": seconds}
    made = imported(question(**limit, Next="Deploy"))
    stages = made.description["stages"]
    assert stages["ask"]["answer_within_h"] == hours
    assert stages["deploy"]["after"] == ["ask"]
    notes = [n.message for n in made.notes if n.path == "States.Ask.TimeoutSeconds"]
    assert notes == ([] if text is None else [text])


def test_a_limit_that_a_run_has_is_told() -> None:
    arguments = {"TopicArn": TOPIC, "Message": "{% $states.context.Task.Token %}"}
    ask = {
        "Type": "Task",
        "QueryLanguage": "JSONata",
        "Resource": "arn:aws:states:::sns:publish.waitForTaskToken",
        "Arguments": arguments,
        "TimeoutSeconds": "{% $states.input.t %}",
        "Next": "Deploy",
    }
    made = imported(ask)
    assert made.description["stages"]["ask"]["answer_within_h"] == 720
    assert "{% $states.input.t %}: an answer is waited for 720 h (answer_within_h)" in [
        n.message for n in made.notes if n.path == "States.Ask.TimeoutSeconds"
    ]


def inside(state: dict[str, Any]) -> dict[str, Any]:
    return {"StartAt": "Inner", "States": {"Inner": {**state, "End": True}}}


TOKEN = task("lambda:invoke.waitForTaskToken", {"FunctionName": "f"})
LEFT_OUT = {
    "another service's token": (TOKEN, "states_ask"),
    "no topic": (
        task("sns:publish.waitForTaskToken", {"PhoneNumber": "+1", "Message": "m"}),
        "states_ask",
    ),
    "an activity": (
        task("arn:aws:states:us-east-1:111122223333:activity:people", {}),
        "states_ask",
    ),
    "a branch": (
        {"Type": "Parallel", "Branches": [inside(TOKEN)]},
        "states_ask_branches_0_states_inner",
    ),
    "a question for each element": (
        {"Type": "Map", "ItemsPath": "$.a", "ItemProcessor": inside(question())},
        "states_ask",
    ),
    "a Map that is left out": (
        {"Type": "Map", "ItemReader": {}, "ItemProcessor": inside(question())},
        "states_ask",
    ),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_follows_a_gate_that_is_left_out_is_asked_of_each_run(case: str) -> None:
    gate, name = LEFT_OUT[case]
    made = imported({**gate, "ResultPath": None, "Next": "Deploy"})
    stages = made.description["stages"]
    assert list(stages) == ["deploy", "tell"]
    assert [stage["when"] for stage in stages.values()] == [{"parameter": name}] * 2
    assert made.description["parameters"][name]["type"] == "boolean"
    assert any(f"must be given the parameter {name}" in note.message for note in made.notes)


def test_a_question_that_no_stage_can_ask_is_refused() -> None:
    ask = question(Next="Deploy")
    ask["Parameters"]["Subject"] = 5
    with pytest.raises(PipelineError, match=r"States\.Ask: as stage ask: .*question"):
        imported(ask)


def test_a_gate_in_a_loop_is_asked_of_each_run() -> None:
    again = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.no", "BooleanEquals": True, "Next": "Ask"}],
        "Default": "Deploy",
    }
    stages = imported(question(Next="Again"), Again=again).description["stages"]
    gates = {"parameter": "states_ask"}
    assert [stages[name]["when"] for name in ("deploy", "tell")] == [gates] * 2


def test_what_is_behind_a_gate_on_one_of_several_ways_is_asked_of_on_that_way_alone() -> None:
    chosen = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.x", "StringEquals": "a", "Next": "Gate"}],
        "Default": "Deploy",
    }
    gate = {**TOKEN, "Next": "Deploy"}
    stages = imported(chosen, Gate=gate).description["stages"]
    asked = {"equal": [{"parameter": "x"}, "a"]}
    either = {"any": [{"all": [asked, {"parameter": "states_gate"}]}, {"not": asked}]}
    assert [stage["when"] for stage in stages.values()] == [either] * 2


PERSON = {
    "a queue": ("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": {"text": "Approve it?"}}),
    "a function": ("lambda:invoke", {"FunctionName": "SendApprovalEmail"}),
}


@pytest.mark.parametrize("case", PERSON)
def test_a_question_that_is_sent_otherwise_is_an_approval_that_tells_nobody(case: str) -> None:
    resource, request = PERSON[case]
    ask = task(f"{resource}.waitForTaskToken", request, TimeoutSeconds=7200, Next="Deploy")
    made = imported(ask)
    stages = made.description["stages"]
    assert stages["ask"] == {"kind": "approval", "question": "Ask?", "answer_within_h": 2}
    assert stages["deploy"]["after"] == ["ask"]
    [text] = [note.message for note in made.notes if note.path == "States.Ask.Resource"]
    assert text.endswith(
        "nothing is sent, since nobody returns the task token: notify tells a topic"
    )


def test_what_does_not_follow_the_gate_is_not_asked_of() -> None:
    chosen = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.x", "StringEquals": "a", "Next": "Gate"}],
        "Default": "Other",
    }
    other = task("sns:publish", {"TopicArn": TOPIC, "Message": "o"}, End=True)
    gate = {**TOKEN, "Next": "Deploy"}
    stages = imported(chosen, Gate=gate, Other=other).description["stages"]
    asked = {"equal": [{"parameter": "x"}, "a"]}
    assert stages["other"]["when"] == {"not": asked}
    assert stages["deploy"]["when"]["all"] == [asked, {"parameter": "states_gate"}]
