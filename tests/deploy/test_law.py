"""Whole pipelines run deployed, and IAM allows every call of theirs, but not with less."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.deploy import Deployment, step_functions
from orchestration.deploy.permissions import synchronous
from orchestration.local import EmbeddedAws, RecordedCall
from orchestration.local.policies.evaluation import Need, allows
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
from tests.deploy.permissions.possible import needs_of, possible, superfluous

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

OBJECTS = ("set/train/one.csv", "set/train/two.csv", "set/holdout/held.csv")


PIPELINES = (
    served,
    file_system,
    ending,
    listed,
    *(
        pytest.param(make, marks=pytest.mark.thorough)
        for make in (exporting, kept, candidates, synced)
    ),
)


@pytest.mark.parametrize("make", PIPELINES)
def test_a_run_makes_no_call_that_its_role_is_not_allowed(make: Callable[[], Pipeline]) -> None:
    pipeline = make()
    with EmbeddedAws(enforce_iam=True) as aws:
        deployment, recorded = _ran(pipeline, aws)
    own = [call for call in recorded if call.origin == "step-functions"]
    assert len(own) >= 8
    assert [call for call in own if "Denied" in (call.error_code or "")] == []
    sent = [need for call in own for need in needs_of(pipeline, call)]
    policy = deployment.desired.role.policy
    assert [need for need in sent if not allows([policy], need)] == []
    assert superfluous(policy, [*sent, *possible(pipeline), *_managed_rules(pipeline)]) == []


def _managed_rules(pipeline: Pipeline) -> list[Need]:
    """What Step Functions asks of a role by which it waits for jobs, when the machine is made."""
    rule = "arn:aws:events:us-east-1:123456789012:rule/StepFunctionsGetEventsForSageMaker"
    waited = synchronous(stepfunctions.render(pipeline.lower()))
    kinds = [re.fullmatch(r"create(\w+Job)", operation) for operation in waited]
    return [Need("events:PutRule", f"{rule}{kind[1]}sRule") for kind in kinds if kind]


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
