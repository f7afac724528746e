"""State machines become pipelines that do the same; what differs is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.backends import airflow, stepfunctions
from orchestration.importing import Imported, from_data

ROLE = "arn:aws:iam::111122223333:role/SageMakerExecution"
IMAGE = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"


def task(resource: str, parameters: Any, **more: Any) -> dict[str, Any]:
    arn = f"arn:aws:states:::{resource}"
    return {"Type": "Task", "Resource": arn, "Parameters": parameters, **more}


TRAINING: dict[str, Any] = {
    "TrainingJobName.$": "$$.Execution.Name",
    "RoleArn": ROLE,
    "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
    "ResourceConfig": {
        "InstanceCount": 1,
        "InstanceType.$": "$.machine",
        "VolumeSizeInGB": 10,
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "OutputDataConfig": {"S3OutputPath.$": "States.Format('s3://{}/models', $.bucket)"},
    "InputDataConfig": [
        {
            "ChannelName": "train",
            "DataSource": {
                "S3DataSource": {
                    "S3DataType": "S3Prefix",
                    "S3Uri.$": "$.made.Payload.uri",
                    "S3DataDistributionType": "FullyReplicated",
                }
            },
        }
    ],
}
MACHINE: dict[str, Any] = {
    "StartAt": "Make data",
    "States": {
        "Make data": task(
            "lambda:invoke",
            {"FunctionName": "${MakeData}", "Payload": {"bucket.$": "$.bucket"}},
            ResultPath="$.made",
            Retry=[{"ErrorEquals": ["States.ALL"]}],
            Next="Enough",
        ),
        "Enough": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.made.Payload.rows", "NumericLessThan": 10, "Next": "Too few"}
            ],
            "Default": "Train",
        },
        "Too few": {"Type": "Fail", "Error": "TooFewRows", "Cause": "too few rows"},
        "Train": task(
            "sagemaker:createTrainingJob.sync",
            TRAINING,
            ResultPath="$.trained",
            Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Complain"}],
            Next="Model",
        ),
        "Complain": {"Type": "Fail", "Error": "NotTrained"},
        "Model": task(
            "sagemaker:createModel",
            {
                "ModelName.$": "$.name",
                "ExecutionRoleArn": ROLE,
                "PrimaryContainer": {
                    "Image": IMAGE,
                    "ModelDataUrl.$": "$.trained.ModelArtifacts.S3ModelArtifacts",
                },
            },
            ResultPath=None,
            Next="Tell",
        ),
        "Tell": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": "Say",
                    "States": {
                        "Say": task(
                            "sns:publish",
                            {"TopicArn.$": "$.topic", "Message": {"done": True}},
                            End=True,
                        )
                    },
                },
                {
                    "StartAt": "Rest",
                    "States": {"Rest": {"Type": "Wait", "Seconds": 60, "End": True}},
                },
            ],
            "Next": "Queue",
        },
        "Queue": task(
            "aws-sdk:batch:submitJob",
            {"JobName": "after", "JobQueue": "q", "JobDefinition.$": "$[0].MessageId"},
            End=True,
        ),
    },
}


def told(imported: Imported) -> dict[str, str]:
    return {note.path: note.message for note in imported.notes}


@pytest.fixture(scope="module")
def imported() -> Imported:
    return from_data(MACHINE, file="nightly.asl")


def test_states_become_stages_for_both_backends(imported: Imported) -> None:
    workflow = Pipeline.parse(yaml.safe_load(imported.yaml())).lower()
    assert stepfunctions.render(workflow)["States"]
    assert airflow.render(workflow).tasks
    assert imported.description["name"] == "nightly"
    kinds = {name: stage["kind"] for name, stage in imported.description["stages"].items()}
    assert kinds == {
        "make_data": "aws_call",
        "too_few": "fail",
        "train": "training_job",
        "model": "aws_call",
        "say": "aws_call",
        "rest": "pause",
        "queue": "aws_call",
    }


def test_paths_are_references(imported: Imported) -> None:
    stages = imported.description["stages"]
    assert stages["make_data"]["request"] == {
        "FunctionName": {"parameter": "make_data"},
        "Payload": {"bucket": {"parameter": "bucket"}},
    }
    train = stages["train"]
    assert train["channels"]["train"]["uri"] == {"ref": "make_data.uri"}
    assert train["output"]["uri"] == {"join": ["s3://", {"parameter": "bucket"}, "/models"]}
    assert train["cluster"]["instance_type"] == {"parameter": "machine"}
    model = stages["model"]["request"]
    assert model["ModelName"] == {"parameter": "name"}
    assert model["PrimaryContainer"]["ModelDataUrl"] == {"ref": "train.model_artifacts"}
    assert stages["queue"]["request"]["jobDefinition"] == {"ref": "say.message_id"}
    assert stages["say"]["request"]["Message"] == '{"done": true}'


def test_what_ends_the_run_comes_before_what_follows(imported: Imported) -> None:
    stages = imported.description["stages"]
    assert stages["too_few"] == {
        "kind": "fail",
        "when": {"less": [{"ref": "make_data.rows"}, 10]},
        "error": "TooFewRows",
        "cause": "too few rows",
        "after": ["make_data"],
    }
    assert "when" not in stages["train"]
    assert stages["train"]["after"] == ["make_data", "too_few"]
    assert stages["queue"]["after"] == ["say", "rest"]


def test_all_that_is_otherwise_is_told(imported: Imported) -> None:
    assert told(imported) == {
        "States.Complain": "is left out: only errors lead to it",
        "States.Make data.Retry": (
            "is left out; requests and jobs are tried again as the stage's retry says"
        ),
        "States.Train.Catch": "is left out; after a failed run follow the stages of on_failure",
    }


CALLED: dict[str, Any] = {
    "QueryLanguage": "JSONata",
    "StartAt": "Prepare",
    "States": {
        "Prepare": {
            "Type": "Task",
            "Resource": "arn:aws:states:::glue:startJobRun.sync",
            "Arguments": {
                "JobName": "prepare",
                "Arguments": {"--day": "{% 'day ' & $states.input.day %}"},
            },
            "Assign": {"day": "{% $states.input.day %}"},
            "Next": "Ask",
        },
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:ssm:getParameter",
            "Arguments": {"Name": "/ready"},
            "Next": "Ready",
        },
        "Ready": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $states.input.Parameter.Value = 'yes' %}", "Next": "Kind"}
            ],
            "Default": "Wait",
        },
        "Wait": {"Type": "Wait", "Seconds": 10, "Next": "Ask"},
        "Kind": {
            "Type": "Choice",
            "Choices": [
                {
                    "Condition": "{% $day != 'never' and $states.context.Execution.Input.n >= 3 %}",
                    "Next": "Query",
                },
                {"Condition": "{% $count($states.input) > 3 %}", "Next": "End"},
            ],
            "Default": "End",
        },
        "Query": {
            "Type": "Task",
            "Resource": "arn:aws:states:::athena:startQueryExecution.sync",
            "Arguments": {
                "QueryString": "{% 'SELECT ' & $day %}",
                "ResultConfiguration": {"OutputLocation": "s3://my-bucket/athena"},
            },
            "Next": "End",
        },
        "End": {
            "Type": "Task",
            "Resource": "arn:aws:lambda:us-east-1:111122223333:function:end",
            "End": True,
        },
    },
}


def test_jsonata_that_only_names_and_joins_is_read() -> None:
    stages = from_data(CALLED).description["stages"]
    day = {"join": ["day ", {"parameter": "day"}]}
    assert stages["prepare"]["request"] == {"JobName": "prepare", "Arguments": {"--day": day}}
    assert stages["prepare"]["poll"]["request"] == {"RunId": {"ref": "prepare.run"}}
    assert stages["query"]["when"] == {
        "all": [
            {"not": {"equal": [{"parameter": "day"}, "never"]}},
            {"at_least": [{"parameter": "n"}, 3]},
        ]
    }
    assert stages["query"]["request"]["QueryString"] == {"join": ["SELECT ", {"parameter": "day"}]}
    assert "when" not in stages["end"]


def test_loops_and_what_a_function_is_sent_are_told() -> None:
    imported = from_data(CALLED)
    assert imported.description["parameters"]["n"] == {"type": "number"}
    assert told(imported) == {
        "States.Ask": "Task in a loop, which no stage does; left out",
        "States.End.Arguments": (
            "sends only day, n of all that it is given; name what else the function reads"
        ),
        "States.Ready": "Choice in a loop, which no stage does; left out",
        "States.Wait": "Wait in a loop, which no stage does; left out",
    }


def test_a_value_that_depends_on_the_way_is_asked_of_each_run() -> None:
    send = {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/111122223333/q"}
    machine = {
        "StartAt": "Which",
        "States": {
            "Which": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.kind", "StringEquals": "a", "Next": "A"}],
                "Default": "B",
            },
            "A": {"Type": "Pass", "Result": "one", "ResultPath": "$.text", "Next": "Send"},
            "B": {"Type": "Pass", "Result": "two", "ResultPath": "$.text", "Next": "Send"},
            "Send": task("sqs:sendMessage", {**send, "MessageBody.$": "$.text"}, End=True),
        },
    }
    imported = from_data(machine)
    body = imported.description["stages"]["send"]["request"]["MessageBody"]
    assert body == {"parameter": "what_depends_on_the_way_taken"}
    assert "when" not in imported.description["stages"]["send"]
    assert "nothing stands for" in told(imported)["States.Send.Parameters.MessageBody"]


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"A": {"Type": "Pass", "End": True}}, "States: none of them does what a stage does"),
        ({"B": {"Type": "Pass", "End": True}}, "StartAt: names no state"),
        ({"A": task("sns:publish", {"Topic": "x"}, End=True)}, r"States\.A: as stage a: .*Topic"),
    ],
)
def test_what_leaves_no_stage_is_refused(states: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        from_data({"StartAt": "A", "States": states})


def test_a_task_that_nothing_does_is_told() -> None:
    states = {
        "A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken"},
        "B": {"Type": "Map", "Next": "C"},
        "C": task("sns:publish", {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": "m"}),
    }
    chained = {
        "A": {**states["A"], "Parameters": {"FunctionName": "f"}, "Next": "B"},
        "B": states["B"],
        "C": {**states["C"], "End": True},
    }
    imported = from_data({"StartAt": "A", "States": chained})
    assert list(imported.description["stages"]) == ["c"]
    assert told(imported) == {
        "States.A": "is left out: no stage waits for a task token (approval waits for a person)",
        "States.B": "no stage does what this Map does",
    }


def test_two_imports_are_equal(imported: Imported) -> None:
    again = from_data(json.loads(json.dumps(MACHINE)), file="nightly.asl")
    assert (again.yaml(), again.notes) == (imported.yaml(), imported.notes)
