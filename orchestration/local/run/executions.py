"""Run a workflow as a state machine and follow its events."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestration.deploy.executions.history import StateEvent, step_names, steps
from orchestration.direct.progress import OnProgress, Progress, StepRun, StepState
from orchestration.execution.timing import pause
from orchestration.expressions import Json
from orchestration.expressions.evaluate import run_token
from orchestration.graph import Workflow
from orchestration.local.run import report
from orchestration.local.run.report import Followed

if TYPE_CHECKING:
    from orchestration.local.server.embedded import EmbeddedAws

_ROLE = "EmbeddedStates"
_RUNNING = {"status": "RUNNING"}


def follow(
    aws: EmbeddedAws,
    workflow: Workflow,
    values: Mapping[str, Json],
    run_id: str,
    on_progress: OnProgress,
) -> Followed:
    """Create the state machine, run it once and follow it to its end.

    An execution of this name that has failed is started again, as the next attempt at its run. An
    exception in the meantime (``KeyboardInterrupt``) stops the execution and its jobs.
    """
    states = aws.client("stepfunctions")
    arn = _machine(aws, workflow)
    first = f"{arn.replace(':stateMachine:', ':execution:')}:{run_id}"
    try:
        states.describe_execution(executionArn=first)
    except states.exceptions.ExecutionDoesNotExist:
        execution = states.start_execution(
            stateMachineArn=arn, name=run_id, input=json.dumps(dict(values))
        )["executionArn"]
    else:
        execution = _again(aws, first)
    try:
        return replace(_followed(aws, execution, workflow, on_progress), identity=first)
    except BaseException:
        states.stop_execution(executionArn=execution, error="Stopped", cause="stopped by its user")
        report.stop_jobs(aws, workflow, run_token(first))
        raise


def _again(aws: EmbeddedAws, execution: str) -> str:
    from orchestration.deploy import rerun

    def sleep(seconds: float) -> None:
        time.sleep(pause(seconds, time_scale=aws.time_scale))

    return rerun(execution, session=aws, sleep=sleep).arn


def role(aws: EmbeddedAws, name: str, service: str) -> str:
    """Return the ARN of a role that a service can assume; create it if it is missing."""
    iam = aws.client("iam")
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        ],
    }
    try:
        response = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
    except iam.exceptions.EntityAlreadyExistsException:
        response = iam.get_role(RoleName=name)
    return str(response["Role"]["Arn"])


def _machine(aws: EmbeddedAws, workflow: Workflow) -> str:
    from orchestration.backends import stepfunctions

    states = aws.client("stepfunctions")
    definition = stepfunctions.compact(stepfunctions.render(workflow))
    role_arn = role(aws, _ROLE, "states.amazonaws.com")
    for machine in states.list_state_machines()["stateMachines"]:
        if machine["name"] == workflow.name:
            arn = str(machine["stateMachineArn"])
            states.update_state_machine(
                stateMachineArn=arn, definition=definition, roleArn=role_arn
            )
            return arn
    created = states.create_state_machine(
        name=workflow.name, definition=definition, roleArn=role_arn, type="STANDARD"
    )
    return str(created["stateMachineArn"])


def _followed(
    aws: EmbeddedAws, execution: str, workflow: Workflow, on_progress: OnProgress
) -> Followed:
    names = step_names(workflow.graph)
    began = time.monotonic()
    seen: dict[str, StepState] = {}
    events: list[Mapping[str, Any]] = []
    while True:
        new = aws.events(execution, after=len(events))
        events += new
        # Without news, or after an end: the execution says whether it still runs.
        described = (
            aws.client("stepfunctions").describe_execution(executionArn=execution)
            if not new or new[-1]["type"].startswith("Execution")
            else _RUNNING
        )
        if described["status"] != "RUNNING":
            # What was written between the two answers belongs to the end.
            events += aws.events(execution, after=len(events))
        known = steps(map(_event, events), names, failed=_failed(described))
        for step in known:
            if seen.get(step.step) != step.state:
                seen[step.step] = step.state
                on_progress(Progress(step.step, step.state, time.monotonic() - began))
        if described["status"] != "RUNNING":
            return _ended(execution, described, known)


def _event(event: Mapping[str, Any]) -> StateEvent:
    return StateEvent(
        id=event["id"],
        previous_id=event["previous_id"],
        type=event["type"],
        at=datetime.datetime.fromisoformat(event["timestamp"]),
        state=event["state"],
    )


def _failed(described: Mapping[str, Any]) -> bool:
    return described["status"] not in ("RUNNING", "SUCCEEDED")


def _ended(execution: str, described: Mapping[str, Any], steps: tuple[StepRun, ...]) -> Followed:
    if _failed(described):
        return Followed(
            identity=execution,
            state="failed",
            error=described.get("error", f"States.{described['status'].title()}"),
            cause=described.get("cause", ""),
            steps=steps,
        )
    return Followed(
        identity=execution,
        state="succeeded",
        outputs=json.loads(described["output"]),
        steps=steps,
    )
