"""A state machine counts its polls: they must not run out while work takes its own time."""

from __future__ import annotations

import json

from orchestration.local import EmbeddedAws
from tests.local.conftest import IMAGE, ROLE, wait


def test_a_poll_of_what_really_runs_is_answered_at_its_end(aws: EmbeddedAws) -> None:
    job = {
        "ProcessingJobName": "polled",
        "RoleArn": ROLE,
        "AppSpecification": {
            "ImageUri": IMAGE,
            "ContainerEntrypoint": ["python3", "-c", "import time; time.sleep(2)"],
        },
        "ProcessingResources": {
            "ClusterConfig": {
                "InstanceCount": 1,
                "InstanceType": "ml.m5.large",
                "VolumeSizeInGB": 10,
            }
        },
    }
    sdk = "arn:aws:states:::aws-sdk:sagemaker"
    definition = {
        "QueryLanguage": "JSONata",
        "StartAt": "Create",
        "States": {
            "Create": {
                "Type": "Task",
                "Resource": f"{sdk}:createProcessingJob",
                "Arguments": job,
                "Next": "Wait",
            },
            "Wait": {"Type": "Wait", "Seconds": 60, "Next": "Look"},
            "Look": {
                "Type": "Task",
                "Resource": f"{sdk}:describeProcessingJob",
                "Arguments": {"ProcessingJobName": "polled"},
                "Output": "{% $states.result.ProcessingJobStatus %}",
                "End": True,
            },
        },
    }
    states = aws.client("stepfunctions")
    machine = states.create_state_machine(
        name="polls", definition=json.dumps(definition), roleArn=ROLE
    )
    execution = states.start_execution(stateMachineArn=machine["stateMachineArn"])["executionArn"]
    ended = wait(
        lambda: states.describe_execution(executionArn=execution),
        lambda run: run["status"] != "RUNNING",
    )
    # A minute of AWS is 0.3 s here, the job takes two seconds, and one poll is enough.
    assert (ended["status"], json.loads(ended["output"])) == ("SUCCEEDED", "Completed")
