"""The end of a file system: whatever works on it is cancelled, and it is deleted.

FSx refuses to delete a file system while a data repository task is pending, executes or is being
cancelled, with the same ``BadRequest`` as whatever else is too early.
"""

from __future__ import annotations

from orchestration.expressions import Compare, Result, Tree
from orchestration.graph import (
    ANY_ERROR,
    Call,
    Choose,
    ErrorPattern,
    Graph,
    Operation,
    Output,
    Recovery,
    Retry,
    Until,
)
from orchestration.stages.lustre.waiting import LIFECYCLE, REASON, described

NOT_FOUND = ErrorPattern("FileSystemNotFound")
# About 15 minutes: giving up on either call may leave a file system behind, and it costs.
PERSISTENT = Retry(attempts=10)
_UNTIL_IT_MAY = Retry(attempts=10, busy=(ErrorPattern("BadRequest"),))


def deletion(stage: str, system: Tree, timeout_s: int) -> Graph:
    """Cancel the task that runs, if one does, and delete the file system."""
    running = Result(f"{stage}.running", "task_id")
    busy = Choose(
        name=f"{stage}.busy",
        condition=Compare("ne", running, ""),
        then=Graph((_cancel(stage, running),)),
        otherwise=Graph(),
    )
    return Graph((_running(stage, system), busy, _delete(stage, system, timeout_s)))


def _running(stage: str, system: Tree) -> Call:
    """The task that runs: the steps of a run start one after the other."""
    filters: Tree = [
        {"Name": "file-system-id", "Values": [system]},
        {"Name": "task-lifecycle", "Values": ["PENDING", "EXECUTING"]},
    ]
    return Call(
        name=f"{stage}.running",
        operation=Operation("fsx", "DescribeDataRepositoryTasks", {"Filters": filters}),
        outputs={
            "task_id": Output(("DataRepositoryTasks", 0, "TaskId"), kind="string", default="")
        },
        # Whatever this is answered, the file system is deleted.
        recoveries=(Recovery(ANY_ERROR, {"task_id": ""}),),
    )


def _cancel(stage: str, task: Tree) -> Call:
    return Call(
        name=f"{stage}.cancel",
        operation=Operation("fsx", "CancelDataRepositoryTask", {"TaskId": task}),
        # It may be over by now; and one that cannot be cancelled is waited for.
        recoveries=(Recovery(ANY_ERROR, {}),),
    )


def _delete(stage: str, system: Tree, timeout_s: int) -> Call:
    request = {
        "FileSystemId": system,
        # Without one every attempt would be given another.
        "ClientRequestToken": system,
    }
    return Call(
        name=f"{stage}.delete",
        operation=Operation("fsx", "DeleteFileSystem", request),
        recoveries=(Recovery(NOT_FOUND, {}),),
        retry=_UNTIL_IT_MAY,
        until=Until(
            poll=described(system),
            status=LIFECYCLE,
            success=frozenset(),
            failure=frozenset(["FAILED"]),
            reason=REASON,
            gone=NOT_FOUND,
            timeout_s=timeout_s,
        ),
        after=(f"{stage}.busy",),
    )
