"""Fields that an integration does not know end an execution before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.local.engine.machines import SDK, jsonata, run_of

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


def test_a_field_that_is_doubtful_is_sent(aws: EmbeddedAws) -> None:
    request = {"TrainingJobName": "x", "RemoteDebugConfig": {"EnableRemoteDebug": True}}
    task = {"Type": "Task", "Resource": WAITED, "Arguments": request, "End": True}
    run = run_of(aws, jsonata(A=task))
    assert run["error"] == "SageMaker.AmazonSageMakerException"
