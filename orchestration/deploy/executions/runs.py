"""Executions, and the runs that they are attempts at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from orchestration.backends.stepfunctions.parameters import ATTEMPT, RUN
from orchestration.errors import StartError
from orchestration.expressions.evaluate import run_token

# EventBridge Scheduler may start one run twice, within its retries.
_TOGETHER = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """An execution, as Step Functions describes it."""

    arn: str
    machine_arn: str
    status: str
    started: datetime
    input: Mapping[str, Any]

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
    )


def others(states: Any, execution: Execution) -> Iterator[Execution]:
    """Yield the other executions of the same run, the newest first."""
    since = execution.started - _TOGETHER
    pages = states.get_paginator("list_executions").paginate(stateMachineArn=execution.machine_arn)
    for page in pages:
        for each in page["executions"]:
            if each["startDate"] < since:
                return
            if each["executionArn"] != execution.arn:
                other = described(states, each["executionArn"])
                if other.token == execution.token:
                    yield other
