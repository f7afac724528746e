"""Fields that an integration does not know end an execution before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.local.engine.machines import SDK, jsonata, output_of, run_of

WAITED = "arn:aws:states:::sagemaker:createTrainingJob.sync"
POLLED = f"{SDK}sagemaker:createTrainingJob"


@pytest.mark.parametrize(
    ("resource", "request_", "field"),
    [
        (WAITED, {"S3Operations": {}}, "S3Operations"),
        (POLLED, {"Tags": [{"key": "a", "Value": "b"}]}, "key"),
        (WAITED, {"ResourceConfig": {"InstancePreferences": []}}, "InstancePreferences"),
        (POLLED, {"ResourceConfig": {"InstancePreferences": []}}, "InstancePreferences"),
        (f"{SDK}s3:listBuckets", {"Owner": "me"}, "Owner"),
        # The API's own names are no names here: neither small letters nor long acronyms.
        (f"{SDK}sfn:startExecution", {"stateMachineArn": "a"}, "stateMachineArn"),
        (f"{SDK}rds:describeDBInstances", {"DBInstanceIdentifier": "a"}, "DBInstanceIdentifier"),
        (
            f"{SDK}emrserverless:createApplication",
            {"InitialCapacity": {"DRIVER": {"workerCount": 1}}},
            "workerCount",
        ),
    ],
)
def test_an_unknown_field_is_an_error_that_nothing_catches(
    aws: EmbeddedAws, resource: str, request_: dict[str, Any], field: str
) -> None:
    task = {
        "Type": "Task",
        "Resource": resource,
        "Arguments": request_,
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}],
        "End": True,
    }
    before = len(aws.calls())
    run = run_of(aws, jsonata(A=task, Caught={"Type": "Pass", "End": True}))
    assert (run["status"], run["error"]) == ("FAILED", "States.Runtime")
    assert "An error occurred while executing the state 'A'" in run["cause"]
    said = f'could not be used to start the Task: [The field "{field}" is not supported by Step'
    assert said in run["cause"]
    assert aws.calls()[before:] == []


def test_fields_are_renamed_on_the_way_there_and_back_and_keys_of_maps_are_not(
    aws: EmbeddedAws,
) -> None:
    create = {
        "Type": "Task",
        "Resource": f"{SDK}emrserverless:createApplication",
        "Arguments": {
            "Name": "a",
            "ReleaseLabel": "emr-7.2.0",
            "Type": "SPARK",
            "ClientToken": "t",
            "InitialCapacity": {
                "DRIVER": {"WorkerCount": 1, "WorkerConfiguration": {"Cpu": "2", "Memory": "4"}}
            },
            "Tags": {"ownedBy": "us"},
        },
        "Next": "B",
    }
    ask = {
        "Type": "Task",
        "Resource": f"{SDK}emrserverless:getApplication",
        "Arguments": {"ApplicationId": "{% $states.input.ApplicationId %}"},
        "End": True,
    }
    application = output_of(aws, jsonata(A=create, B=ask))["Application"]
    driver = {"WorkerCount": 1, "WorkerConfiguration": {"Cpu": "2", "Memory": "4"}}
    assert application["InitialCapacity"] == {"DRIVER": driver}
    assert application["Tags"] == {"ownedBy": "us"}
    [sent] = [call for call in aws.calls() if call.operation == "CreateApplication"]
    assert sent.request["initialCapacity"]["DRIVER"]["workerCount"] == 1


def test_a_field_that_is_doubtful_is_sent(aws: EmbeddedAws) -> None:
    request = {"TrainingJobName": "x", "RemoteDebugConfig": {"EnableRemoteDebug": True}}
    task = {"Type": "Task", "Resource": WAITED, "Arguments": request, "End": True}
    run = run_of(aws, jsonata(A=task))
    assert run["error"] == "SageMaker.AmazonSageMakerException"
