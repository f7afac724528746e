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
from typing import Any, Final

from orchestration.errors import Problem
from orchestration.expressions import All, Compare, Function, Result, Tree, apply, join
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
    Retry,
    Step,
    Until,
)
from orchestration.refs import Expression
from orchestration.stages.copying.ending import (
    EXECUTION,
    REFUSED,
    STATE,
    cleanup,
    described,
    described_task,
)
from orchestration.stages.listing import prefix_of
from orchestration.stages.stage import Context
from orchestration.stages.values import Text

_ROLE_IS_NEW: Final = (
    ErrorPattern(REFUSED, "Unable to assume role"),
    ErrorPattern(REFUSED, "access test failed"),
)
_OPTIONS: Final[Mapping[str, Tree]] = {
    "VerifyMode": "ONLY_FILES_TRANSFERRED",
    # Else a second execution, which a lost response may lead to, would copy after the first.
    "TaskQueueing": "DISABLED",
    "TransferMode": "CHANGED",
    # Objects have no owner: DataSync refuses its own defaults for them between S3 locations.
    "Uid": "NONE",
    "Gid": "NONE",
    "PosixPermissions": "NONE",
}
_PARTITIONS: Final = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}
_FAILURES: Final = ("Prepare", "Transfer", "Verify", "Delete")


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
    source: Text
    target: Text
    role: Tree
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    storage_class: str | None
    timeout_s: int

    def steps(self) -> tuple[Step, ...]:
        """Make the locations and the task, run it once, compare its counts, and clean up."""
        transfer = Guarded(
            name=self._name("transfer"),
            acquire=self._create_task(),
            body=Graph(
                (self._earlier(), self._once(), self._started(), self._copied(), *self._compared())
            ),
            cleanup=cleanup(self.stage),
        )
        return (
            self._location("source", self.source, {}),
            self._location("target", self.target, self._target_options),
            transfer,
        )

    def outputs(self) -> dict[str, Tree]:
        """Return what DataSync counted."""
        return {"object_count": self._done, "total_bytes": self._count("bytes")}

    def _name(self, step: str) -> str:
        return f"{self.stage}.{step}"

    def _count(self, name: str) -> Result:
        return Result(self._name("copied"), name)

    @property
    def _done(self) -> Expression[object]:
        """The objects that are at the destination now, copied by this execution or before."""
        return apply(Function.SUM, [{"n": self._count(n)} for n in ("transferred", "skipped")], "n")

    @cached_property
    def _task(self) -> Result:
        return Result(self._name("task"), "arn")

    @property
    def _target_options(self) -> dict[str, Any]:
        return {} if self.storage_class is None else {"S3StorageClass": self.storage_class}

    def _location(self, step: str, uri: Text, options: Mapping[str, Tree]) -> Call:
        region = self.context.region or ""
        partitions = (name for start, name in _PARTITIONS.items() if region.startswith(start))
        bucket = apply(Function.S3_BUCKET, uri)
        request: dict[str, Tree] = {
            "S3BucketArn": join(f"arn:{next(partitions, 'aws')}:s3:::", bucket),
            "Subdirectory": join("/", prefix_of(uri)),
            "S3Config": {"BucketAccessRoleArn": self.role},
            "Tags": self.context.tag_list(self.stage),
            **options,
        }
        return Call(
            name=self._name(step),
            operation=Operation("datasync", "CreateLocationS3", request),
            outputs={"arn": Output(("LocationArn",), kind="string")},
            retry=Retry(errors=_ROLE_IS_NEW),
        )

    def _create_task(self) -> Call:
        request: dict[str, Tree] = {
            "SourceLocationArn": Result(self._name("source"), "arn"),
            "DestinationLocationArn": Result(self._name("target"), "arn"),
            "Name": self.context.resource_name(self.stage),
            "TaskMode": "ENHANCED",
            "Options": _OPTIONS,
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
                outputs=_COUNTS,
            ),
            after=(self._name("runs"),),
        )

    def _compared(self) -> tuple[Require, Require]:
        """Compare what DataSync counted with what it was to copy."""
        runs = Require(
            name=self._name("runs"),
            condition=Compare("ne", Result(self._name("started"), "execution"), ""),
            error="TransferNotStarted",
            cause=join("DataSync refused to start task ", self._task),
        )
        failed = apply(Function.SUM, [{"n": self._count(_failed(f))} for f in _FAILURES], "n")
        done = self._done
        conditions: list[Expression[bool]] = [
            Compare("gt", done, 0),
            Compare("eq", failed, 0),
            Compare("ge", self._count("verified"), self._count("transferred")),
        ]
        if not self.exclude:
            # With an exclude filter, what is left out is listed as well.
            conditions.append(Compare("ge", done, self._count("listed")))
        names = ("listed", "transferred", "skipped", "verified")
        parts = [part for n in names for part in (f"{n}: ", self._count(n), ", ")]
        compared = Require(
            name=self._name("compared"),
            condition=All(tuple(conditions)),
            error="StagedDataDiffers",
            cause=join(*parts, "failed: ", failed, " objects"),
        )
        return runs, compared


def _failed(phase: str) -> str:
    return f"failed_{phase.lower()}"


_COUNTS: Final = {
    "listed": Output(("FilesListed", "AtSource"), kind="number", default=0),
    "transferred": Output(("FilesTransferred",), kind="number", default=0),
    "skipped": Output(("FilesSkipped",), kind="number", default=0),
    "verified": Output(("FilesVerified",), kind="number", default=0),
    "bytes": Output(("BytesWritten",), kind="number", default=0),
    **{
        _failed(phase): Output(("FilesFailed", phase), kind="number", default=0)
        for phase in _FAILURES
    },
}
