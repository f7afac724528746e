"""Executions, and the runs that they are attempts at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from orchestration.backends.stepfunctions.beginning.overlapping import SKIPPED
from orchestration.backends.stepfunctions.parameters import ATTEMPT, RUN
from orchestration.deploy.account import Account, Clients
from orchestration.errors import StartError
from orchestration.expressions.evaluate import run_token

# EventBridge Scheduler may start one run twice, within its retries.
_TOGETHER = timedelta(days=1)
_KEPT = timedelta(days=90)
"""Executions are kept for so long after their end:
https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"""
TOKEN: Final = re.compile(r"[0-9a-f]{12}")
"""The token of a run, with which the names of its attempts begin."""
_NAME: Final = re.compile(r"[^\s/:<>{}\[\]?*\"#%\\^|~`$&,;\x00-\x1f\x7f-\x9f]{1,80}")
"""https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """An execution, as Step Functions describes it."""

    arn: str
    machine_arn: str
    status: str
    started: datetime
    input: Mapping[str, Any]
    version_arn: str = ""
    """The version that it runs; empty if it was started by the state machine itself."""
    error: str = ""
    """The name of the error that has ended it."""

    @property
    def run(self) -> str:
        """The name of the run, as the state machine itself derives it."""
        return str(self.input.get(RUN) or self.arn)

    @property
    def token(self) -> str:
        """The run's identity in names."""
        return run_token(self.run)

    @property
    def attempt(self) -> int:
        """The number of the attempt."""
        number = self.input.get(ATTEMPT)
        usable = isinstance(number, int | float) and not isinstance(number, bool)
        return max(1, int(number)) if usable and number is not None else 1

    @property
    def name(self) -> str:
        """The name among the executions of the state machine."""
        return self.arn.rpartition(":")[2]


def arn_of(execution: str, session: Clients) -> str:
    """Return the ARN of an execution that is named by it, or by its end, ``MACHINE:NAME``."""
    if execution.startswith("arn:"):
        return execution
    machine, colon, name = execution.partition(":")
    if not (machine and colon and name):
        raise StartError(
            f"expected the ARN of an execution, or its end, MACHINE:NAME, got {execution!r}"
        )
    return Account.of(session).arn("states", f"execution:{execution}")


def described(states: Any, arn: str) -> Execution:
    """Ask for an execution."""
    response = states.describe_execution(executionArn=arn)
    given = json.loads(response.get("input", "{}"))
    if not isinstance(given, dict):
        raise StartError(f"execution {arn} was started with an input that is not an object")
    return Execution(
        arn=arn,
        machine_arn=response["stateMachineArn"],
        status=response["status"],
        started=response["startDate"],
        input=given,
        version_arn=response.get("stateMachineVersionArn") or "",
        error=response.get("error") or "",
    )


def found(pipeline: str, run: str, session: Clients) -> Execution:
    """Return an execution of a deployed pipeline: the latest of a run, or one by its own name.

    ``run`` is an ARN, or its end, ``PIPELINE:NAME``; or what ``start`` named the run, or its token.
    Raises :class:`~orchestration.errors.StartError`.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    states = session.client("stepfunctions")
    try:
        if run.startswith(("arn:", f"{pipeline}:")):
            return described(states, arn_of(run, session))
        if (exact := named(pipeline, run, session)) is not None:
            return exact
        machine = Account.of(session).arn("states", f"stateMachine:{pipeline}")
        # Any name may begin with that of another run, but not with its token.
        tokens = (run, run_token(run)) if TOKEN.fullmatch(run) else (run_token(run),)
        attempts = tuple(f"{token}-" for token in tokens)
        pages = states.get_paginator("list_executions").paginate(stateMachineArn=machine)
        for page in pages:
            for each in page["executions"]:
                if each["name"].startswith(attempts):
                    return described(states, each["executionArn"])
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"run {run} of {pipeline} can't be looked up: {error}") from error
    raise StartError(
        f"there is no run {run} of {pipeline} on Step Functions; `orchestrate runs {pipeline}` "
        "shows what there is"
    )


def named(pipeline: str, name: str, session: Clients) -> Execution | None:
    """Return the execution of a deployed pipeline with just this name, if there is one."""
    if not _NAME.fullmatch(name):
        return None
    states = session.client("stepfunctions")
    try:
        return described(states, arn_of(f"{pipeline}:{name}", session))
    except states.exceptions.ExecutionDoesNotExist:
        return None


def meaning(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a definition that says what its executions do."""
    return {key: value for key, value in definition.items() if key != "Comment"}


def others(
    states: Any, execution: Execution, *, since: datetime | None = None
) -> Iterator[Execution]:
    """Yield the other executions of the same run, the newest first.

    Those before ``since`` are not looked at; without it, those a day older than the execution.
    """
    since = since or execution.started - _TOGETHER
    pages = states.get_paginator("list_executions").paginate(stateMachineArn=execution.machine_arn)
    for page in pages:
        for each in page["executions"]:
            if each["startDate"] < since:
                return
            if each["executionArn"] != execution.arn:
                other = described(states, each["executionArn"])
                if other.token == execution.token:
                    yield other


def begun(states: Any, execution: Execution) -> datetime:
    """Return the start of the first attempt at the run of an execution."""
    if execution.attempt == 1:
        return execution.started
    earlier = others(states, execution, since=execution.started - _KEPT)
    return min([execution.started, *(each.started for each in earlier)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An execution of a pipeline's state machine, as a list shows it."""

    arn: str
    status: str
    """``RUNNING``, ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT`` or ``ABORTED``, as AWS has it, or
    ``SKIPPED``: another one was under way (``overlap``), for which it has ended at once."""
    started: datetime
    ended: datetime | None
    error: str = ""
    cause: str = ""

    @property
    def name(self) -> str:
        """The end of its ARN, by which commands name it: ``digits:0f5b7f0e-…``."""
        return _name_of(self.arn)


def listed(pipeline: str, *, session: Clients, most: int = 20) -> tuple[Listed, ...]:
    """List the executions of a deployed pipeline, the newest first.

    Raises :class:`~orchestration.errors.StartError` where it is not deployed.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    machine = Account.of(session).arn("states", f"stateMachine:{pipeline}")
    states = session.client("stepfunctions")
    pages = states.get_paginator("list_executions").paginate(
        stateMachineArn=machine, PaginationConfig={"MaxItems": most, "PageSize": min(most, 1000)}
    )
    try:
        return tuple(_listed(states, each) for page in pages for each in page["executions"])
    except (BotoCoreError, ClientError) as error:
        raise StartError(f"runs of {pipeline} can't be listed: {error}") from error


def _listed(states: Any, found: Mapping[str, Any]) -> Listed:
    """Ask how an execution has ended: with an error, or skipped for another one."""
    arn, status = found["executionArn"], found["status"]
    end = {} if status == "RUNNING" else states.describe_execution(executionArn=arn)
    other = _skipped_for(end)
    return Listed(
        arn=arn,
        status="SKIPPED" if other else status,
        started=found["startDate"],
        ended=found.get("stopDate"),
        error=end.get("error", ""),
        cause=f"{_name_of(other)} was under way" if other else end.get("cause", ""),
    )


def _skipped_for(end: Mapping[str, Any]) -> str:
    """Return the ARN of the execution for which one was skipped; empty where it was not."""
    output = json.loads(end.get("output") or "null")
    return str(output.get(SKIPPED, "")) if isinstance(output, dict) else ""


def _name_of(arn: str) -> str:
    return ":".join(arn.split(":")[-2:])
