"""Whole pipelines run deployed, and every call of theirs is one that their role is allowed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.deploy import Deployment, step_functions
from orchestration.local import EmbeddedAws, RecordedCall
from orchestration.local.run.executions import role
from tests.conformance.pipelines import (
    PARAMETERS,
    candidates,
    ending,
    exporting,
    file_system,
    kept,
    listed,
    served,
    synced,
)
from tests.deploy.permissions.policy import denied

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

OBJECTS = ("set/train/one.csv", "set/train/two.csv", "set/holdout/held.csv")


PIPELINES = (served, file_system, exporting, kept, candidates, synced, ending, listed)


@pytest.mark.parametrize("make", PIPELINES)
def test_a_run_makes_no_call_that_its_role_is_not_allowed(make: Callable[[], Pipeline]) -> None:
    pipeline = make()
    with EmbeddedAws() as aws:
        deployment, calls = _ran(pipeline, aws)
    own = [call for call in calls if call.origin == "step-functions"]
    assert len(own) >= 9
    for call in own:
        refused = denied(
            deployment.desired.role.policy,
            call.service,
            call.operation,
            call.request,
            deployment.account.id,
            deployment.account.region,
            resource_tags={"orchestration:pipeline": pipeline.name},
        )
        assert refused == [], call


def _ran(pipeline: Pipeline, aws: EmbeddedAws) -> tuple[Deployment, list[RecordedCall]]:
    s3, states = aws.client("s3"), aws.client("stepfunctions")
    for bucket in ("incoming", PARAMETERS["bucket"]):
        s3.create_bucket(Bucket=bucket)
    for key in OBJECTS:
        s3.put_object(Bucket="incoming", Key=key, Body=b"x")
    lines = "".join(f"incoming,{key},null\n" for key in OBJECTS)
    s3.put_object(Bucket=PARAMETERS["bucket"], Key="lists/manifest.csv", Body=lines.encode())
    role(aws, "DataSync", "datasync.amazonaws.com")
    role(aws, "BatchOperations", "batchoperations.s3.amazonaws.com")
    aws.provide(
        roles=[PARAMETERS["role"]], subnets=["subnet-0123abcd"], security_groups=["sg-0123abcd"]
    )
    deployment = step_functions(pipeline, session=aws, parameters=PARAMETERS)
    started = states.start_execution(
        stateMachineArn=deployment.state_machine_arn, name="law", input=json.dumps(PARAMETERS)
    )
    found = _ended(states, started["executionArn"])
    assert found["status"] == "SUCCEEDED", (found.get("error"), found.get("cause"))
    return deployment, aws.calls()


def _ended(states: Any, arn: str) -> dict[str, Any]:
    while (found := states.describe_execution(executionArn=arn))["status"] == "RUNNING":
        time.sleep(0.1)
    return dict(found)
