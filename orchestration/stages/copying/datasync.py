"""Copies made by DataSync: any number of objects of any size.

DataSync takes no idempotency token, and names of its tasks need not be unique. What settles a
response that was lost is the task: it is made by a step of its own, an execution is started only
where the task has none yet, and the task refuses a second one while the first runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from orchestration.errors import Problem
from orchestration.expressions import Compare, Result, Tree, join
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    Graph,
    Guarded,
    Operation,
    Output,
    Recovery,
    Require,
    Step,
    Until,
)
from orchestration.stages.copying.comparing import COUNTS
from orchestration.stages.copying.ending import (
    EXECUTION,
    REFUSED,
    STATE,
    cleanup,
    described,
    described_task,
)
from orchestration.stages.copying.locations import location_of
from orchestration.stages.stage import Context

Mode = Literal["ENHANCED", "BASIC"]
# Else a second execution, which a lost response may lead to, would copy after the first.
_ONE_AT_A_TIME: Final[Mapping[str, Tree]] = {"TaskQueueing": "DISABLED", "TransferMode": "CHANGED"}
_OPTIONS: Final[Mapping[Mode, Mapping[str, Tree]]] = {
    "ENHANCED": {
        "VerifyMode": "ONLY_FILES_TRANSFERRED",
        **_ONE_AT_A_TIME,
        # Objects have no owner: DataSync refuses its own defaults for them between S3 locations.
        "Uid": "NONE",
        "Gid": "NONE",
        "PosixPermissions": "NONE",
    },
    # Files get the owners and permissions that their objects have as metadata, or DataSync's own.
    "BASIC": {"VerifyMode": "POINT_IN_TIME_CONSISTENT", **_ONE_AT_A_TIME},
}


def misplaced(path: str, patterns: Sequence[str]) -> Iterator[Problem]:
    """Yield the errors of filters."""
    for number, pattern in enumerate(patterns):
        plain = re.sub(r"\\.", "", pattern)
        if not pattern or "|" in plain:
            yield Problem(f"{path}[{number}]", f"expected one pattern, got {pattern!r}")
        elif path == "include" and "*" in plain.removesuffix("*"):
            yield Problem(
                f"{path}[{number}]",
                f"{pattern!r}: DataSync takes a wildcard at the end of what is included only",
            )


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """The steps by which one stage has DataSync copy its data."""

    stage: str
    context: Context
    source: Call
    """The call that makes the location ``<stage>.source``."""
    target: Call
    """The call that makes the location ``<stage>.target``."""
    compared: Require
    """The comparison of what DataSync counted with what it was to copy."""
    mode: Mode = "ENHANCED"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    timeout_s: int

    def steps(self) -> tuple[Step, ...]:
        """Make the locations and the task, run it once, compare its counts, and clean up."""
        transfer = Guarded(
            name=self._name("transfer"),
            acquire=self._create_task(),
            body=Graph(
                (
                    self._earlier(),
                    self._once(),
                    self._started(),
                    self._copied(),
                    self._runs(),
                    self.compared,
                )
            ),
            cleanup=cleanup(self.stage),
        )
        return (self.source, self.target, transfer)

    def _name(self, step: str) -> str:
        return f"{self.stage}.{step}"

    @cached_property
    def _task(self) -> Result:
        return Result(self._name("task"), "arn")

    def _create_task(self) -> Call:
        request: dict[str, Tree] = {
            "SourceLocationArn": location_of(self.source),
            "DestinationLocationArn": location_of(self.target),
            "Name": self.context.resource_name(self.stage),
            "TaskMode": self.mode,
            "Options": _OPTIONS[self.mode],
            "Tags": self.context.tag_list(self.stage),
        }
        for field_name, patterns in (("Includes", self.include), ("Excludes", self.exclude)):
            if patterns:
                rule: dict[str, Tree] = {
                    "FilterType": "SIMPLE_PATTERN",
                    "Value": "|".join(patterns),
                }
                request[field_name] = [rule]
        return Call(
            name=self._name("task"),
            operation=Operation("datasync", "CreateTask", request),
            outputs={"arn": Output(("TaskArn",), kind="string")},
        )

    def _earlier(self) -> Call:
        return Call(
            name=self._name("earlier"),
            operation=Operation("datasync", "ListTaskExecutions", {"TaskArn": self._task}),
            outputs={
                "execution": Output(
                    ("TaskExecutions", 0, "TaskExecutionArn"), kind="string", default=""
                )
            },
        )

    def _once(self) -> Choose:
        request: dict[str, Tree] = {
            "TaskArn": self._task,
            "Tags": self.context.tag_list(self.stage),
        }
        start = Call(
            name=self._name("start"),
            operation=Operation("datasync", "StartTaskExecution", request),
            # It may run, the response having been lost; if it does not, the next step says so.
            recoveries=(Recovery(ErrorPattern(REFUSED), {}),),
        )
        return Choose(
            name=self._name("once"),
            condition=Compare("eq", Result(self._name("earlier"), "execution"), ""),
            then=Graph((start,)),
            otherwise=Graph(),
        )

    def _started(self) -> Call:
        return Call(
            name=self._name("started"),
            operation=described_task(self._task),
            outputs=STATE,
            after=(self._name("once"),),
        )

    def _copied(self) -> Call:
        execution = Result(self._name("copied"), "execution")
        return Call(
            name=self._name("copied"),
            operation=described_task(self._task),
            outputs={"execution": Output(EXECUTION, kind="string")},
            until=Until(
                poll=described(execution),
                status=("Status",),
                success=frozenset(["SUCCESS"]),
                failure=frozenset(["ERROR"]),
                reason=("Result", "ErrorDetail"),
                stop=Operation("datasync", "CancelTaskExecution", {"TaskExecutionArn": execution}),
                timeout_s=self.timeout_s,
                outputs=COUNTS,
            ),
            after=(self._name("runs"),),
        )

    def _runs(self) -> Require:
        return Require(
            name=self._name("runs"),
            condition=Compare("ne", Result(self._name("started"), "execution"), ""),
            error="TransferNotStarted",
            cause=join("DataSync refused to start task ", self._task),
        )
