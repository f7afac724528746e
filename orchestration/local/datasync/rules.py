"""The rules of DataSync that a pipeline can break, in one table.

Sources: "model" is the text of a shape in botocore's service model (1.43); "guide" is a page of the
user guide, below https://docs.aws.amazon.com/datasync/latest/userguide/; "issue" is what people
reported of the real service, or what public tools rely on. Where only the rule is
documented, the message is ours, and marked "message assumed". Every refusal of DataSync has the
same code, ``InvalidRequestException``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestration.local.account.protocol import ServiceError

REFUSED: Final = "InvalidRequestException"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: the message to a request that breaks it, and where the rule is written down."""

    message: str
    source: str


_TERRAFORM = (
    "issue: https://github.com/hashicorp/terraform-provider-aws/blob/main/internal/service/datasync"
)
_OPTIONS = "model: Options"
_FILTERS = "guide: filtering.html; message assumed"

RULES: Final[Mapping[str, Rule]] = {
    # CreateLocationS3
    "role exists": Rule(
        "Unable to assume role. Reason: role {role} does not exist.",
        f"{_TERRAFORM}/location_s3.go; the reason is assumed",
    ),
    "role trusts DataSync": Rule(
        "Unable to assume role. Reason: Access denied when calling sts:AssumeRole on {role}.",
        f"{_TERRAFORM}/location_s3.go",
    ),
    "bucket exists": Rule(
        "DataSync location access test failed: could not perform s3:ListObjectsV2 on bucket "
        "{bucket}. Ensure bucket access role has s3:ListBucket permission.",
        f"{_TERRAFORM}/location_s3.go",
    ),
    "subdirectories": Rule(
        "Subdirectory {subdirectory} must not include //, /./ or /../.",
        "model: CreateLocationS3Request.Subdirectory; message assumed",
    ),
    # DeleteLocation
    "locations exist": Rule(
        "Location {location} is not found.",
        f"{_TERRAFORM}/location_s3.go: 'not found'",
    ),
    "locations in use stay": Rule(
        "Location {location} is in use by task {task}.",
        "guide: deleting-location.html; message assumed",
    ),
    # CreateTask
    "locations of a task exist": Rule(
        "Location {location} is not found.",
        f"{_TERRAFORM}/task.go: 'not found'",
    ),
    "100 tasks": Rule(
        "The account has 100 tasks, the quota of this region.",
        "guide: datasync-limits.html; message assumed",
    ),
    "Enhanced mode verifies what it transfers": Rule(
        "VerifyMode POINT_IN_TIME_CONSISTENT is not supported with Enhanced mode.",
        f"{_OPTIONS}.VerifyMode; message assumed",
    ),
    "Enhanced mode keeps times": Rule(
        "Mtime NONE is not supported with Enhanced mode.",
        f"{_OPTIONS}.Mtime; message assumed",
    ),
    "Basic mode keeps both times or none": Rule(
        "Atime {atime} does not go with Mtime {mtime}.",
        f"{_OPTIONS}.Atime; message assumed",
    ),
    "no deletion without a comparison": Rule(
        "PreserveDeletedFiles REMOVE does not go with TransferMode ALL.",
        f"{_OPTIONS}.PreserveDeletedFiles; message assumed",
    ),
    "objects have no owner": Rule(
        "Invalid SyncOption value. Option: {option}, Value: {value} invalid for non-POSIX "
        "transfer. please use NONE.",
        "issue: the message as users of AWS::DataSync::Task quote it",
    ),
    "include patterns end with the wildcard": Rule(
        "Include pattern {pattern}: a wildcard may stand at the end only.",
        _FILTERS,
    ),
    "schedules are not simulated": Rule(
        "the embedded AWS simulates neither schedules nor manifests nor reports of tasks",
        "guide: task-scheduling.html; message assumed: a limit of the simulation",
    ),
    # DeleteTask, DescribeTask, StartTaskExecution
    "tasks exist": Rule("Task {task} is not found.", f"{_TERRAFORM}/task.go: 'not found'"),
    "running tasks stay": Rule(
        "Task {task} has a running execution.",
        "guide: deleting-task.html; message assumed",
    ),
    "one execution at a time": Rule(
        "Task {task} already has a running execution {execution}.",
        f"{_OPTIONS}.TaskQueueing; message assumed",
    ),
    # DescribeTaskExecution, CancelTaskExecution
    "executions exist": Rule(
        "Task execution {execution} is not found.",
        f"{_TERRAFORM}/task.go: 'not found'; message assumed",
    ),
    "executions to cancel run": Rule(
        "Task execution {execution} has ended and cannot be cancelled.",
        "guide: run-task.html; message assumed",
    ),
}


def refusal(rule: str, **values: object) -> ServiceError:
    """Return the error of a request that breaks a rule."""
    return ServiceError(REFUSED, RULES[rule].message.format(**values), errorCode="InvalidRequest")
