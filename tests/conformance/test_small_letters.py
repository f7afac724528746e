"""APIs whose fields begin with a small letter are called the same on every driver."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from orchestration.local.run.executions import role

pytestmark = pytest.mark.slow

# What it is told comes back, or is why it fails.
INNER: dict[str, Any] = {
    "QueryLanguage": "JSONata",
    "StartAt": "Work",
    "States": {
        "Work": {"Type": "Wait", "Seconds": 20, "Next": "Judge"},
        "Judge": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input.good %}", "Next": "Done"}],
            "Default": "Bad",
        },
        "Done": {"Type": "Succeed", "Output": {"jobName": "{% $states.input.says %}"}},
        "Bad": {"Type": "Fail", "Error": "Bad", "Cause": "{% $states.input.says %}"},
    },
}


def calling(says: dict[str, Any]) -> Pipeline:
    """Return a pipeline that starts an execution, follows it, and publishes what it says."""
    execution = {"join": [{"parameter": "executions"}, ":inner-", {"run": "id"}]}
    inner = {
        "kind": "aws_call",
        "service": "stepfunctions",
        "operation": "StartExecution",
        "request": {
            "stateMachineArn": {"parameter": "machine"},
            "name": {"join": ["inner-", {"run": "id"}]},
            "input": json.dumps(says),
        },
        "exists": {"code": "ExecutionAlreadyExists"},
        "poll": {
            "operation": "DescribeExecution",
            "request": {"executionArn": execution},
            "status": "status",
            "success": ["SUCCEEDED"],
            "failure": ["FAILED", "TIMED_OUT", "ABORTED"],
            "reason": "cause",
            "outputs": {"output": "output", "included": "outputDetails.included"},
            "interval_s": 5,
            "stop": {"operation": "StopExecution", "request": {"executionArn": execution}},
        },
    }
    tell = {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": {"parameter": "topic"}, "Message": {"ref": "inner.output"}},
    }
    return Pipeline.parse(
        {
            "name": "small",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {"machine": {}, "executions": {}, "topic": {}},
            "stages": {"inner": inner, "tell": tell},
        }
    )


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_an_execution_is_started_once_and_followed(on: On, airflow: LocalAirflow) -> None:
    with EmbeddedAws(time_scale=0.003) as aws:
        states = aws.client("stepfunctions")
        trusted = role(aws, "Inner", "states.amazonaws.com")
        machine = states.create_state_machine(
            name="inner", definition=json.dumps(INNER), roleArn=trusted
        )["stateMachineArn"]
        known = {
            "machine": machine,
            "executions": machine.replace(":stateMachine:", ":execution:"),
            "topic": "arn:aws:sns:us-east-1:123456789012:news",
        }

        def attempt(run_id: str, *, good: bool = True, **changed: str) -> Any:
            pipeline = calling({"good": good, "says": "so it is"})
            more: Any = {"parameters": {**known, **changed}, "run_id": run_id}
            return run(pipeline, on=on, aws=aws, airflow=airflow, **more)

        untold = attempt("one")
        aws.client("sns").create_topic(Name="news")
        told = attempt("one")
        failed = attempt("two", good=False)
        refused = attempt("three", machine=f"{machine}-missing")
        started = states.list_executions(stateMachineArn=machine)["executions"]

    assert untold.state == "failed"
    assert (told.state, told.cause) == ("succeeded", None)
    outputs = told.outputs["inner"]
    assert (json.loads(outputs["output"]), outputs["included"]) == ({"jobName": "so it is"}, True)
    # The second attempt took over the execution of the first one.
    assert len({each["name"] for each in started}) == len(started) == 2
    # On the wire the fields are the API's own.
    [start] = [call for call in untold.calls if call.request.get("stateMachineArn") == machine]
    assert set(start.request) == {"stateMachineArn", "name", "input"}
    assert (failed.state, failed.error) == ("failed", "JobFailed")
    assert str(failed.cause).endswith("ended as FAILED: so it is")
    assert (refused.state, refused.error) == ("failed", "StateMachineDoesNotExist")
