"""Definitions made by hand, and their executions on the embedded AWS."""

from __future__ import annotations

import json
import uuid
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE, wait

SDK = "arn:aws:states:::aws-sdk:"


def created(aws: EmbeddedAws, definition: dict[str, Any]) -> str:
    arn: str = aws.client("stepfunctions").create_state_machine(
        name=f"m-{uuid.uuid4().hex[:12]}", definition=json.dumps(definition), roleArn=ROLE
    )["stateMachineArn"]
    return arn


def started(aws: EmbeddedAws, definition: dict[str, Any], data: Any = None) -> str:
    started: str = aws.client("stepfunctions").start_execution(
        stateMachineArn=created(aws, definition), input=json.dumps({} if data is None else data)
    )["executionArn"]
    return started


def ended(aws: EmbeddedAws, execution: str) -> dict[str, Any]:
    return wait(
        lambda: aws.client("stepfunctions").describe_execution(executionArn=execution),
        lambda run: run["status"] != "RUNNING",
    )


def run_of(aws: EmbeddedAws, definition: dict[str, Any], data: Any = None) -> dict[str, Any]:
    return ended(aws, started(aws, definition, data))


def output_of(aws: EmbeddedAws, definition: dict[str, Any], data: Any = None) -> Any:
    run = run_of(aws, definition, data)
    assert run["status"] == "SUCCEEDED", (run.get("error"), run.get("cause"))
    return json.loads(run["output"])


def jsonata(first: str = "A", **states: Any) -> dict[str, Any]:
    return {"QueryLanguage": "JSONata", "StartAt": first, "States": states}


def passing(output: Any) -> dict[str, Any]:
    return jsonata(A={"Type": "Pass", "Output": output, "End": True})
