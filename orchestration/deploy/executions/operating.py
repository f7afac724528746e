"""The start and the end of an execution by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.parameters import RUN
from orchestration.deploy.account import Account, Clients, in_its_place
from orchestration.deploy.executions.cleaning import Sleep, clean_up
from orchestration.deploy.executions.passing import passing
from orchestration.deploy.executions.runs import arn_of, described, meaning
from orchestration.errors import StartError
from orchestration.execution.timing import wait
from orchestration.expressions import Json
from orchestration.expressions.evaluate import run_token

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """An execution that was started, or one of the same name that was found running."""

    arn: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """An execution that was stopped and cleaned up after."""

    arn: str
    was_running: bool
    """False if it had ended before; what it left is cleaned up all the same."""


def start(
    pipeline: Pipeline,
    values: Mapping[str, Json],
    *,
    session: Clients,
    run: str | None = None,
) -> Started:
    """Start an execution of a deployed pipeline with these values of its parameters.

    ``run`` names the run: a second start under the same name finds the first execution as long as
    that runs, and is refused afterwards. Raises :class:`~orchestration.errors.StartError`.
    https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
    """
    from botocore.exceptions import BotoCoreError, ClientError

    account = Account.of(session)
    in_its_place(pipeline, account)
    passing(pipeline, values, account)
    machine = account.arn("states", f"stateMachine:{pipeline.name}")
    alias = pipeline.alias()
    starting = machine if alias is None else f"{machine}:{alias}"
    states = session.client("stepfunctions")
    given = dict(values) if run is None else {**values, RUN: run}
    name = {} if run is None else {"name": f"{run_token(run)}-1"}
    try:
        deployed = states.describe_state_machine(stateMachineArn=machine)
        response = states.start_execution(
            stateMachineArn=starting, input=json.dumps(given, ensure_ascii=False), **name
        )
        if alias is not None:  # Which may lead to an older version.
            arn = response["executionArn"]
            deployed = states.describe_state_machine_for_execution(executionArn=arn)
    except states.exceptions.StateMachineDoesNotExist as error:
        raise StartError(
            f"pipeline {pipeline.name} is not deployed to {account.id} in {account.region}"
            f"{'' if alias is None else f' with alias {alias}'}; "
            "`orchestrate deploy step-functions` does that"
        ) from error
    except states.exceptions.ExecutionAlreadyExists as error:
        raise StartError(
            f"run {run} of {pipeline.name} has been started before, with other parameters or to "
            "its end; name another, or start a failed one again with `orchestrate rerun`"
        ) from error
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"pipeline {pipeline.name} can't be started: {error}") from error
    return Started(arn=response["executionArn"], warnings=_warnings(pipeline, deployed))


def _warnings(pipeline: Pipeline, deployed: Mapping[str, Any]) -> tuple[str, ...]:
    there = json.loads(deployed["definition"])
    if meaning(there) == meaning(stepfunctions.render(pipeline.lower())):
        return ()
    return ("what is deployed is not what this pipeline says now; deploy it to run that",)


def stop(execution: str, *, session: Clients, sleep: Sleep = wait) -> Stopped:
    """Stop an execution, and let the companion stop and delete what it has left.

    ``execution`` is an ARN, or its end, ``MACHINE:NAME``. Raises
    :class:`~orchestration.errors.StartError`, also where something could not be cleaned up.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    states = session.client("stepfunctions")
    try:
        found = described(states, arn_of(execution, session))
        running = found.status == "RUNNING"
        if running:
            states.stop_execution(
                executionArn=found.arn, error="Stopped", cause="Stopped by orchestrate stop."
            )
        reason = clean_up(states, found.machine_arn, sleep)
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"execution {execution} can't be stopped: {error}") from error
    if reason is not None:
        raise StartError(
            f"execution {found.arn} is stopped, and what it left could not be cleaned up: {reason}"
        )
    return Stopped(arn=found.arn, was_running=running)
