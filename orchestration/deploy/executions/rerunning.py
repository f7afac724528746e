"""The next attempt at a run whose execution failed.

It has the same input and the same names. Jobs that finished are adopted, also those of attempts
before; one that failed is followed by another, under its name with ``-2``, ``-3`` and so on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from orchestration.backends.stepfunctions.parameters import ATTEMPT, RUN
from orchestration.deploy.account import Clients
from orchestration.deploy.executions.cleaning import Sleep, clean_up
from orchestration.deploy.executions.runs import Execution, arn_of, described, meaning, others
from orchestration.errors import StartError
from orchestration.execution.timing import wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """An execution that was started as the next attempt at a run."""

    arn: str
    attempt: int
    """The number of the attempt: 2 after the first failure."""
    run: str
    """The name of the run: that in the first execution's input, or its ARN."""


def rerun(execution: str, *, session: Clients, sleep: Sleep = wait) -> Rerun:
    """Start the run of a failed execution again.

    ``execution`` is an ARN, or its end, ``MACHINE:NAME``. What the run has left is cleaned up first
    by the companion of the state machine. Raises :class:`~orchestration.errors.StartError` while an
    execution of the run is running, if one has succeeded, and if the state machine has been changed
    since.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    states = session.client("stepfunctions")
    try:
        last = described(states, arn_of(execution, session))
        _next(states, last)
        _check_definition(states, last)
        _clean_up(states, last, sleep)
        # Somebody else may have started it meanwhile.
        return _started(states, last, _next(states, last))
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"execution {execution} can't be started again: {error}") from error


def token_of(execution: str, session: Clients) -> str:
    """Return the identity of an execution's run, as it stands in names and places."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return described(session.client("stepfunctions"), arn_of(execution, session)).token
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"execution {execution} is not known: {error}") from error


def _next(states: Any, last: Execution) -> int:
    """Return the number of the next attempt, if there may be one."""
    attempts = [last, *others(states, last)]
    for each in attempts:
        if each.status == "RUNNING":
            raise StartError(f"execution {each.arn} of this run is running")
        if each.status == "SUCCEEDED":
            raise StartError(f"execution {each.arn} of this run has succeeded")
    return max(each.attempt for each in attempts) + 1


def _check_definition(states: Any, last: Execution) -> None:
    if last.version_arn:
        return  # It is started by the same version, which never changes.
    then = states.describe_state_machine_for_execution(executionArn=last.arn)
    now = states.describe_state_machine(stateMachineArn=last.machine_arn)
    if meaning(json.loads(then["definition"])) != meaning(json.loads(now["definition"])):
        raise StartError(
            f"state machine {now['name']} has been changed since execution {last.name}, so that "
            "what finished then may not be what it would do now; deploy what it was, or start a "
            "new execution"
        )


def _clean_up(states: Any, last: Execution, sleep: Sleep) -> None:
    """Let the companion stop and delete what the run has left, and wait for its end."""
    if (reason := clean_up(states, last.machine_arn, sleep)) is not None:
        raise StartError(f"what the run has left could not be cleaned up: {reason}")


def _started(states: Any, last: Execution, attempt: int) -> Rerun:
    # Two who start it at the same time start one execution: the name decides.
    try:
        response = states.start_execution(
            stateMachineArn=last.version_arn or last.machine_arn,
            name=f"{last.token}-{attempt}",
            input=json.dumps({**last.input, RUN: last.run, ATTEMPT: attempt}, ensure_ascii=False),
        )
    except states.exceptions.ExecutionAlreadyExists as error:
        raise StartError(f"attempt {attempt} at this run has been started already") from error
    except states.exceptions.StateMachineDoesNotExist as error:
        raise StartError(
            f"version {last.version_arn.rpartition(':')[2]}, which execution {last.name} ran, does "
            "not exist any more; start a new execution"
        ) from error
    return Rerun(arn=response["executionArn"], attempt=attempt, run=last.run)
