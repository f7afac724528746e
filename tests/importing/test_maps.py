"""What the states of a Map are sent, element by element."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.backends import stepfunctions
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


def decided(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"Type": "Choice", "Choices": list(rules), **more}


def test_a_choice_in_a_map_decides_for_each_element() -> None:
    large = {"Variable": "$.n", "NumericGreaterThan": 3, "Next": "Large"}
    tell = say("JSONPath", "$.name")
    inner = {"Which": decided(large, Default="Small"), "Large": tell, "Small": tell}
    imported = each(inner, ItemsPath="$.rows")
    stages = imported.description["stages"]
    asked = {"greater": [{"each": "n"}, 3]}
    assert [stages[name]["when"] for name in ("large", "small")] == [asked, {"not": asked}]
    assert stages["large"]["for_each"] == stages["small"]["for_each"]
    assert stages["large"]["for_each"]["fields"] == {"name": "string", "n": "number"}
    Pipeline.parse(imported.description).lower()


def test_one_stage_behind_a_choice_in_a_map_is_left_out_for_other_elements() -> None:
    chosen = {"Variable": "$", "StringEquals": "de", "Next": "Tell"}
    inner = {
        "Which": decided(chosen, Default="Done"),
        "Tell": say("JSONPath", "$"),
        "Done": {"Type": "Succeed"},
    }
    stages = each(inner, ItemsPath="$.markets").description["stages"]
    assert stages["tell"]["when"] == {"equal": [{"each": "item"}, "de"]}
    assert stages["tell"]["for_each"]["together"] == "each"


def test_a_choice_in_a_map_that_nothing_says_leaves_the_map_out() -> None:
    odd = {"Variable": "$.n", "IsPresent": True, "Next": "Tell"}
    inner = {"Which": decided(odd), "Tell": say("JSONPath", "$.name")}
    place = r"States\.Each\.ItemProcessor\.States\.Which\.Choices\[0\]"
    with pytest.raises(PipelineError, match=f"no condition says what .*: {place}"):
        each(inner, ItemsPath="$.rows")


def listed(language: str, inner: dict[str, Any], **reader: Any) -> Imported:
    field = "Arguments" if language == "JSONata" else "Parameters"
    bucket = {"Bucket": "b"} if language == "JSONata" else {"Bucket.$": "$.bucket"}
    resource = "arn:aws:states:::s3:listObjectsV2"
    given = {"Resource": resource, field: {**bucket, "Prefix": "in/"}, **reader}
    return each(inner, language, ItemReader=given)


def test_a_map_over_objects_of_s3_lists_them_and_goes_through_their_keys() -> None:
    imported = listed("JSONPath", {"Tell": say("JSONPath", "$.Key")})
    stages = imported.description["stages"]
    assert stages["each_objects"] == {
        "kind": "aws_call",
        "service": "s3",
        "operation": "ListObjectsV2",
        "request": {"Bucket": {"parameter": "bucket"}, "Prefix": "in/"},
        "results": {"contents_key": "Contents[].Key"},
    }
    assert stages["tell"]["request"]["Message"] == {"each": "item"}
    assert stages["tell"]["for_each"] == {
        "items": {"ref": "each_objects.contents_key"},
        "max_concurrency": 40,
        "at_most": 1000,
    }
    texts = [note.message for note in imported.notes if note.path == "States.Each"]
    assert "elements are objects of S3, of which only the Key is read" in texts
    Pipeline.parse(imported.description).lower()


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        ({"Resource": "arn:aws:states:::s3:getObject"}, "reads the list that its ItemReader does"),
        ({"ReaderConfig": {"MaxItems": 3}}, "no stage has what its ItemReader.ReaderConfig does"),
    ],
)
def test_another_reader_leaves_the_map_out(reader: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError, match=f"States.Each: is left out: .*{words}"):
        listed("JSONata", {"Tell": say("JSONata", "{% $states.input.Key %}")}, **reader)


def test_a_map_over_the_whole_input_goes_through_a_parameter() -> None:
    imported = each({"Tell": say("JSONPath", "$.name")})
    assert imported.description["parameters"]["items"] == {"type": "array"}
    assert imported.description["stages"]["tell"]["for_each"]["items"] == {"parameter": "items"}
    text = "goes through the input of the execution, which is the parameter items here"
    assert text in [note.message for note in imported.notes]


@pytest.mark.parametrize(
    ("resource", "request_", "results", "asked"),
    [
        (
            "batch:submitJob",
            {"JobName": "j", "JobQueue": "q", "JobDefinition": "d"},
            {"job": "jobId"},
            {"jobs": [{"ref": "go.job"}]},
        ),
        (
            "codebuild:startBuild",
            {"ProjectName": "p"},
            {"build": "build.id"},
            {"ids": [{"ref": "go.build"}]},
        ),
    ],
)
def test_what_other_services_start_is_waited_for(
    resource: str, request_: dict[str, Any], results: dict[str, str], asked: dict[str, Any]
) -> None:
    go = {"Type": "Task", "Resource": f"arn:aws:states:::{resource}.sync", "Parameters": request_}
    imported = from_data({"StartAt": "Go", "States": {"Go": {**go, "End": True}}})
    stage = imported.description["stages"]["go"]
    assert (stage["results"], stage["poll"]["request"]) == (results, asked)
    rendered = stepfunctions.render(Pipeline.parse(imported.description).lower())
    assert stage["poll"]["operation"].lower() in str(rendered).lower()
