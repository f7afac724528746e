"""What the states of a Map are sent, element by element."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.importing import Imported, from_data

TOPIC = "arn:aws:sns:us-east-1:111122223333:t"


def say(language: str, message: str) -> dict[str, Any]:
    resource = "arn:aws:states:::sns:publish"
    if language == "JSONata":
        return {
            "Type": "Task",
            "Resource": resource,
            "Arguments": {"TopicArn": TOPIC, "Message": message},
            "End": True,
        }
    parameters = {"TopicArn": TOPIC, "Message.$": message}
    return {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}


def each(inner: dict[str, Any], language: str = "JSONPath", **fields: Any) -> Imported:
    processor = {"StartAt": next(iter(inner)), "States": inner}
    state = {"Type": "Map", "ItemProcessor": processor, "End": True, **fields}
    return from_data({"QueryLanguage": language, "StartAt": "Each", "States": {"Each": state}})


@pytest.mark.parametrize(
    ("language", "fields", "message"),
    [
        (
            "JSONata",
            {
                "Items": "{% $states.input.markets %}",
                "ItemSelector": {
                    "name": "{% $states.context.Map.Item.Value.name %}",
                    "bucket": "{% $states.input.bucket %}",
                },
            },
            "{% $states.input.name & ' to ' & $states.input.bucket %}",
        ),
        (
            "JSONPath",
            {
                "ItemsPath": "$.markets",
                "ItemSelector": {"name.$": "$$.Map.Item.Value.name", "bucket.$": "$.bucket"},
            },
            "States.Format('{} to {}', $.name, $.bucket)",
        ),
    ],
)
def test_a_selector_reads_the_input_of_the_map(
    language: str, fields: dict[str, Any], message: str
) -> None:
    stages = each({"Tell": say(language, message)}, language, **fields).description["stages"]
    assert stages["tell"]["request"]["Message"] == {
        "join": [{"each": "name"}, " to ", {"parameter": "bucket"}]
    }
    assert stages["tell"]["for_each"]["fields"] == {"name": "string"}


def invoked(**payload: str) -> dict[str, Any]:
    parameters = {"FunctionName": "f", "Payload": {f"{k}.$": path for k, path in payload.items()}}
    resource = "arn:aws:states:::lambda:invoke"
    return {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}


def test_fields_have_the_types_of_a_known_list() -> None:
    rows = [{"id": "a", "n": 1, "on": True}, {"id": "b", "n": 2.5, "on": False}]
    made = {"Type": "Pass", "Result": {"l": rows}, "Next": "Each"}
    inner = {"Ask": invoked(n="$.n", id="$.id", on="$.on")}
    processor = {"StartAt": "Ask", "States": inner}
    state = {"Type": "Map", "ItemsPath": "$.l", "ItemProcessor": processor, "End": True}
    imported = from_data({"StartAt": "Made", "States": {"Made": made, "Each": state}})
    loop = imported.description["stages"]["ask"]["for_each"]
    assert loop["fields"] == {"n": "number", "id": "string", "on": "boolean"}
    assert (loop["items"], loop["key"]) == (rows, "id")
    assert "elements are taken for objects with the texts n (a number), id, on (a boolean), of" in (
        str([note.message for note in imported.notes if note.path == "States.Each"])
    )


TRAINING: dict[str, Any] = {
    "TrainingJobName": "x",
    "RoleArn": "arn:aws:iam::111122223333:role/SageMakerExecution",
    "AlgorithmSpecification": {
        "TrainingImage": "683313688378.dkr.ecr.us-east-1.amazonaws.com/x:1",
        "TrainingInputMode": "File",
    },
    "ResourceConfig": {
        "InstanceCount.$": "$.count",
        "InstanceType": "ml.m5.large",
        "VolumeSizeInGB": 10,
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/x"},
}


def trained(**more: Any) -> Imported:
    resource = "arn:aws:states:::sagemaker:createTrainingJob.sync"
    request = {**TRAINING, **more}
    train = {"Type": "Task", "Resource": resource, "Parameters": request, "ResultPath": None}
    tell = say("JSONPath", "$$.Execution.Name")
    return each({"Train": {**train, "Next": "Tell"}, "Tell": tell}, ItemsPath="$.l")


def test_fields_have_the_types_that_requests_need() -> None:
    imported = trained(HyperParameters={"id.$": "$.id"})
    stages = imported.description["stages"]
    fields = {"id": "string", "count": "number"}
    assert stages["train"]["for_each"]["fields"] == fields
    assert stages["tell"]["for_each"] == stages["train"]["for_each"]
    Pipeline.parse(imported.description).lower()


def test_elements_that_no_text_tells_apart_leave_the_map_out() -> None:
    with pytest.raises(PipelineError, match="no text that it reads tells elements apart: count"):
        trained()
