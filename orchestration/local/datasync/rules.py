"""The rules of DataSync that a pipeline can break, in one table.

Sources: "model" is the text of a shape in botocore's service model (1.43); "guide" is a page of the
user guide, below https://docs.aws.amazon.com/datasync/latest/userguide/; "issue" is what people
reported of the real service, or what public tools rely on. Where only the rule is documented, the
message is ours, and marked "wording assumed". Every refusal of DataSync has the same code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.protocol import ServiceError
from orchestration.local.account.rules import Rule, broken

REFUSED: Final = "InvalidRequestException"
_TERRAFORM = (
    "issue: https://github.com/hashicorp/terraform-provider-aws/blob/main/internal/service/datasync"
)
_OPTIONS = "model: Options"
_LUSTRE = "model: CreateLocationFsxLustreRequest"
_FILTERS = "guide: filtering.html; wording assumed"

RULES: Final[Mapping[str, Rule]] = {
    # CreateLocationS3
    "role exists": Rule(
        REFUSED,
        "Unable to assume role. Reason: role {role} does not exist.",
        f"{_TERRAFORM}/location_s3.go; the reason is assumed",
    ),
    "role trusts DataSync": Rule(
        REFUSED,
        "Unable to assume role. Reason: Access denied when calling sts:AssumeRole on {role}.",
        f"{_TERRAFORM}/location_s3.go",
    ),
    "bucket exists": Rule(
        REFUSED,
        "DataSync location access test failed: could not perform s3:ListObjectsV2 on bucket "
        "{bucket}. Ensure bucket access role has s3:ListBucket permission.",
        f"{_TERRAFORM}/location_s3.go",
    ),
    "bucket of another account": Rule(
        REFUSED,
        "DataSync location access test failed: could not perform s3:ListObjectsV2 on bucket "
        "{bucket}. Access denied. Ensure bucket access role has s3:ListBucket permission.",
        f"{_TERRAFORM}/location_s3.go; guide: tutorial_s3-s3-cross-account-transfer.html",
    ),
    "subdirectories": Rule(
        REFUSED,
        "Subdirectory {subdirectory} must not include //, /./ or /../.",
        "model: CreateLocationS3Request.Subdirectory; wording assumed",
    ),
    # CreateLocationFsxLustre
    "file system exists": Rule(
        REFUSED,
        "File system {system} is not found.",
        f"{_LUSTRE}.FsxFilesystemArn; wording assumed",
    ),
    "file system is available": Rule(
        REFUSED,
        "File system {system} is {lifecycle}, not AVAILABLE.",
        "guide: create-lustre-location.html; wording assumed",
    ),
    "security groups exist": Rule(
        REFUSED,
        "Security group {group} is not found.",
        f"{_LUSTRE}.SecurityGroupArns; wording assumed",
    ),
    "directories of a file system": Rule(
        REFUSED,
        "Subdirectory {subdirectory} leaves the mount path.",
        f"{_LUSTRE}.Subdirectory; the rule for '..' is assumed, and its wording",
    ),
    # DeleteLocation
    "locations exist": Rule(
        REFUSED,
        "Location {location} is not found.",
        f"{_TERRAFORM}/location_s3.go: 'not found'",
    ),
    "locations in use stay": Rule(
        REFUSED,
        "Location {location} is in use by task {task}.",
        "guide: deleting-location.html; wording assumed",
    ),
    # CreateTask
    "locations of a task exist": Rule(
        REFUSED,
        "Location {location} is not found.",
        f"{_TERRAFORM}/task.go: 'not found'",
    ),
    "one location is here": Rule(
        REFUSED,
        "Neither the source ({source}) nor the destination ({target}) is in {region}, the region "
        "of the task.",
        "guide: working-with-locations.html#working-with-locations-cross-regions; wording assumed",
    ),
    "100 tasks": Rule(
        REFUSED,
        "The account has 100 tasks, the quota of this region.",
        "guide: datasync-limits.html; wording assumed",
    ),
    "Enhanced mode is for S3": Rule(
        REFUSED,
        "Enhanced mode is not supported between these locations; use Basic mode.",
        "model: CreateTaskRequest.TaskMode; wording assumed",
    ),
    "Enhanced mode verifies what it transfers": Rule(
        REFUSED,
        "VerifyMode POINT_IN_TIME_CONSISTENT is not supported with Enhanced mode.",
        f"{_OPTIONS}.VerifyMode; wording assumed",
    ),
    "Enhanced mode keeps times": Rule(
        REFUSED,
        "Mtime NONE is not supported with Enhanced mode.",
        f"{_OPTIONS}.Mtime; wording assumed",
    ),
    "Basic mode keeps both times or none": Rule(
        REFUSED,
        "Atime {atime} does not go with Mtime {mtime}.",
        f"{_OPTIONS}.Atime; wording assumed",
    ),
    "no deletion without a comparison": Rule(
        REFUSED,
        "PreserveDeletedFiles REMOVE does not go with TransferMode ALL.",
        f"{_OPTIONS}.PreserveDeletedFiles; wording assumed",
    ),
    "objects have no owner": Rule(
        REFUSED,
        "Invalid SyncOption value. Option: {option}, Value: {value} invalid for non-POSIX "
        "transfer. please use NONE.",
        "issue: the message as users of AWS::DataSync::Task quote it",
    ),
    "include patterns end with the wildcard": Rule(
        REFUSED,
        "Include pattern {pattern}: a wildcard may stand at the end only.",
        _FILTERS,
    ),
    "schedules are not simulated": Rule(
        REFUSED,
        "the embedded AWS simulates neither schedules nor manifests nor reports of tasks",
        "guide: task-scheduling.html; wording assumed: a limit of the simulation",
    ),
    # DeleteTask, DescribeTask, StartTaskExecution
    "tasks exist": Rule(REFUSED, "Task {task} is not found.", f"{_TERRAFORM}/task.go: 'not found'"),
    "running tasks stay": Rule(
        REFUSED,
        "Task {task} has a running execution.",
        "guide: deleting-task.html; wording assumed",
    ),
    "one execution at a time": Rule(
        REFUSED,
        "Task {task} already has a running execution {execution}.",
        f"{_OPTIONS}.TaskQueueing; wording assumed",
    ),
    # DescribeTaskExecution, CancelTaskExecution
    "executions exist": Rule(
        REFUSED,
        "Task execution {execution} is not found.",
        f"{_TERRAFORM}/task.go: 'not found'; wording assumed",
    ),
    "executions to cancel run": Rule(
        REFUSED,
        "Task execution {execution} has ended and cannot be cancelled.",
        "guide: run-task.html; wording assumed",
    ),
}


def refusal(rule: str, **values: object) -> ServiceError:
    """Return the error of a request that breaks a rule."""
    error = broken(RULES, rule, **values)
    return ServiceError(error.code, error.message, status=error.status, errorCode="InvalidRequest")
