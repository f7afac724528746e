"""JSON that stands as text in requests: it stays JSON, and is told wherever it stands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.importing import Imported, from_data

MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:m"
TOLD = "is JSON as text, in which what a run gives"


def task(resource: str, parameters: Any, **more: Any) -> dict[str, Any]:
    arn = f"arn:aws:states:::{resource}"
    return {"Type": "Task", "Resource": arn, "Parameters": parameters, **({"End": True} | more)}


def imported(**states: Any) -> Imported:
    return from_data({"StartAt": next(iter(states)), "States": states})


def read(text: dict[str, Any]) -> Any:
    """Return JSON with a word in the place of each reference."""
    parts = [part if isinstance(part, str) else "X" for part in text["join"]]
    return json.loads("".join(parts))


TRAINING = {
    "TrainingJobName": "x",
    "RoleArn": "arn:aws:iam::111122223333:role/SageMakerExecution",
    "AlgorithmSpecification": {
        "TrainingImage": "683313688378.dkr.ecr.us-east-1.amazonaws.com/x:1",
        "TrainingInputMode": "File",
    },
    "HyperParameters": {"settings": {"rate.$": "$.rate"}, "epochs": "3"},
    "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 10},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/x"},
}


@pytest.mark.parametrize(
    ("resource", "request_", "place"),
    [
        (
            "events:putEvents",
            {"Entries": [{"Source": "a", "DetailType": "b", "Detail": {"who.$": "$.who"}}]},
            "Entries[0].Detail",
        ),
        (
            "dynamodb:putItem",
            {"TableName": "t", "Item": {"id": {"S": "a"}, "j": {"S": {"a.$": "$.x"}}}},
            "Item.j.S",
        ),
        ("sagemaker:createTrainingJob.sync", TRAINING, "HyperParameters.settings"),
    ],
)
def test_json_as_text_is_told_at_every_depth(
    resource: str, request_: dict[str, Any], place: str
) -> None:
    notes = [note for note in imported(A=task(resource, request_)).notes if TOLD in note.message]
    assert [note.path for note in notes] == [f"States.A.{place}"]


def test_constant_parts_of_texts_inside_json_are_escaped() -> None:
    said = {"said.$": "States.Format('say \"{}\",\\\\ {}', $.who, $.whom)"}
    start = task("states:startExecution", {"StateMachineArn": MACHINE, "Input": said})
    request = imported(A=start).description["stages"]["a"]["request"]
    assert read(request["input"]) == {"said": 'say "X",\\ X'}


@pytest.mark.parametrize("inner", [False, True])
def test_an_input_with_a_result_laid_over_it_is_one_value(inner: bool) -> None:
    first = task("lambda:invoke", {"FunctionName": "f"}, ResultPath="$.made", Next="B", End=False)
    given = {"Input": {"all.$": "$", "x": 1}} if inner else {"Input.$": "$"}
    start = task("states:startExecution", {"StateMachineArn": MACHINE, **given})
    made = imported(A=first, B=start).description
    sent = made["stages"]["b"]["request"]["input"]
    whole = {"parameter": "all_of_the_input_at_states_b"}
    assert sent == ({"join": ['{"all": "', whole, '", "x": 1}']} if inner else whole)


def test_inputs_with_other_results_laid_over_them_are_other_values() -> None:
    start = {"StateMachineArn": MACHINE, "Input.$": "$"}
    steps = {
        name: task("states:startExecution", start, ResultPath=path, Next=following, End=False)
        for name, path, following in (("B", None, "C"), ("C", "$.c", "D"))
    }
    first = task("lambda:invoke", {"FunctionName": "f"}, ResultPath="$.a", Next="B", End=False)
    made = imported(A=first, **steps, D=task("states:startExecution", start)).description
    sent = [made["stages"][name]["request"]["input"]["parameter"] for name in "bcd"]
    assert sent == [*["all_of_the_input_at_states_b"] * 2, "all_of_the_input_at_states_d"]


def test_a_function_is_sent_what_is_known_of_an_input_with_results_laid_over_it() -> None:
    asked = {"FunctionName": "f", "Payload": {"who.$": "$.who"}}
    selected = {"ResultSelector": {"score.$": "$.Payload.score"}, "ResultPath": "$.made"}
    first = task("lambda:invoke", asked, **selected, Next="B", End=False)
    second = {
        "Type": "Task",
        "Resource": "arn:aws:lambda:us-east-1:111122223333:function:g",
        "End": True,
    }
    made = imported(A=first, B=second)
    sent = made.description["stages"]["b"]["request"]["Payload"]
    assert sent == {"who": {"parameter": "who"}, "made": {"score": {"ref": "a.score"}}}
    told = {note.path: note.message for note in made.notes}
    text = "sends only who, made of its input; name what else the function reads"
    assert told["States.B.Parameters"] == text


def test_a_request_that_is_the_whole_input_is_told() -> None:
    first = task("lambda:invoke", {"FunctionName": "f"}, ResultPath="$.made", Next="B", End=False)
    second = {key: value for key, value in task("sns:publish", {}).items() if key != "Parameters"}
    made = imported(A=first, B=second)
    assert list(made.description["stages"]) == ["a"]
    told = {note.path: note.message for note in made.notes}
    assert told["States.B"] == "is left out: its request is not known before a run"
