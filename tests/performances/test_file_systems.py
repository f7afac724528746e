"""A file system of a run: filled, compared with its source, and deleted whatever happens."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import NewFileSystem
from orchestration.errors import RunError
from orchestration.execution.effects import Aborted, Request, ServiceError
from orchestration.execution.places import Attempt
from orchestration.execution.scope import Scope
from orchestration.execution.steps import performed
from orchestration.expressions.evaluate import Values
from orchestration.graph import Graph, Guarded
from orchestration.stages.stage import Context
from tests.performances.scripted import Answer, ScriptedEdge, answers, perform

TASK = "task-0123456789abcdef0"
DELETED: Answer = {"Lifecycle": "DELETING"}
BUSY: Answer = ServiceError("BadRequest", "a data repository task is EXECUTING")
DENIED = ServiceError("AccessDeniedException", "not authorized")
GONE = ServiceError("FileSystemNotFound", "does not exist")
LISTED: Answer = {"Contents": [{"Key": "set/"}, {"Key": "set/a"}, {"Key": "set/b/c"}]}
FILLED = [
    "CreateFileSystem",
    "ListObjectsV2",
    "DescribeFileSystems",
    "DescribeFileSystems",
    "CreateDataRepositoryAssociation",
    "DescribeDataRepositoryAssociations",
    "CreateDataRepositoryTask",
]


def task(lifecycle: str, files: int = 2, **more: Any) -> Answer:
    status = {"TotalCount": files, "SucceededCount": files, "FailedCount": 0}
    return {"DataRepositoryTasks": [{"Lifecycle": lifecycle, "Status": status, **more}]}


def system(lifecycle: str) -> Answer:
    lustre = {"MountName": "mount"}
    return {"FileSystems": [{"Lifecycle": lifecycle, "LustreConfiguration": lustre}]}


class Lustre(ScriptedEdge):
    """FSx by a script; a task runs until it is cancelled or over."""

    def __init__(self, imports: Answer | list[Answer], **others: Answer | list[Answer]) -> None:
        responses: dict[str, Any] = {
            "CreateFileSystem": {"FileSystem": {"FileSystemId": "fs-1"}},
            "ListObjectsV2": LISTED,
            "DescribeFileSystems": [*[system("AVAILABLE")] * 2, system("DELETING"), GONE],
            "CreateDataRepositoryAssociation": {"Association": {"AssociationId": "dra-1"}},
            "DescribeDataRepositoryAssociations": {"Associations": [{"Lifecycle": "UPDATING"}]},
            "CreateDataRepositoryTask": {"DataRepositoryTask": {"TaskId": TASK}},
            "imports": imports,
            "running": {"DataRepositoryTasks": []},
            "CancelDataRepositoryTask": {"Lifecycle": "CANCELING"},
            "DeleteFileSystem": DELETED,
            **others,
        }
        plain = answers(responses)

        def script(request: Request) -> Answer:
            if request.operation == "DescribeDataRepositoryTasks":
                which = "imports" if "TaskIds" in request.parameters else "running"
                return plain(Request("fsx", which, {}))
            return plain(request)

        super().__init__(script)


def run(aws: ScriptedEdge) -> None:
    context = Context(pipeline="p", workspace="s3://b", role="r")
    new = NewFileSystem(subnet="subnet-1", security_groups=("sg-1",))
    fragment = new.lower("fs", "s3://source/set", context)
    assert fragment.guard is not None
    guarded = Guarded(
        name="fs.guard",
        acquire=fragment.guard.acquire,
        body=Graph(fragment.steps),
        cleanup=fragment.guard.cleanup,
    )
    perform(performed(Graph((guarded,)), Scope(Values({}, {})), Attempt()), aws)


def failing(aws: ScriptedEdge) -> RunError:
    with pytest.raises(RunError) as caught:
        run(aws)
    return caught.value


def test_training_begins_after_the_import() -> None:
    aws = Lustre([task("PENDING", 0), task("EXECUTING", 1), task("SUCCEEDED")])
    run(aws)
    deletion = ["DescribeDataRepositoryTasks", "DeleteFileSystem", *["DescribeFileSystems"] * 2]
    assert aws.operations == [*FILLED, *["DescribeDataRepositoryTasks"] * 3, *deletion]
    assert aws.finished.index("fs.imported") < aws.finished.index("fs.verified")


def test_directories_count_neither_as_objects_nor_as_missing_files() -> None:
    run(Lustre(task("SUCCEEDED", files=2)))
    run(Lustre(task("SUCCEEDED", files=3)))


@pytest.mark.parametrize(("listed", "files"), [(LISTED, 1), ({"Contents": []}, 0), ({}, 0)])
def test_fewer_files_than_objects_and_no_objects_at_all_fail(listed: Answer, files: int) -> None:
    aws = Lustre(task("SUCCEEDED", files), ListObjectsV2=listed)
    assert failing(aws).error == "StagedDataDiffers"
    assert "DeleteFileSystem" in aws.operations


def test_a_failed_import_says_why() -> None:
    aws = Lustre(task("FAILED", FailureDetails={"Message": "2 files could not be processed"}))
    error = failing(aws)
    assert (error.error, error.cause) == (
        "JobFailed",
        "DescribeDataRepositoryTasks fs.imported ended as FAILED: 2 files could not be processed",
    )


def test_a_task_that_runs_is_cancelled_and_the_deletion_waits_for_its_end() -> None:
    refused: list[Answer] = [*[BUSY] * 40, DELETED]
    aws = Lustre(
        DENIED,
        running={"DataRepositoryTasks": [{"TaskId": TASK}]},
        DeleteFileSystem=refused,
    )
    assert failing(aws).error == "AccessDeniedException"
    assert aws.operations.count("CancelDataRepositoryTask") == 1
    assert aws.operations.count("DeleteFileSystem") == 41
    assert aws.operations[-1] == "DescribeFileSystems"


@pytest.mark.parametrize(
    "refused",
    [
        {"running": DENIED},
        {"running": {"DataRepositoryTasks": [{"TaskId": TASK}]}, "CancelDataRepositoryTask": GONE},
    ],
)
def test_nothing_keeps_the_file_system_from_being_deleted(refused: Any) -> None:
    aws = Lustre(DENIED, **refused, DeleteFileSystem=[BUSY, DELETED])
    assert failing(aws).error == "AccessDeniedException"
    assert aws.operations[-3:] == ["DeleteFileSystem", *["DescribeFileSystems"] * 2]


def test_a_deletion_that_stays_refused_fails_the_run() -> None:
    aws = Lustre(task("SUCCEEDED"), DeleteFileSystem=BUSY)
    assert failing(aws).error == "BadRequest"
    assert aws.now == 3600


def test_an_abort_during_the_import_cancels_it() -> None:
    aws = Lustre(
        task("EXECUTING"),
        running={"DataRepositoryTasks": [{"TaskId": TASK}]},
        DeleteFileSystem=[BUSY, DELETED],
    )
    aws.abort_at = "DescribeDataRepositoryTasks"
    with pytest.raises(Aborted):
        run(aws)
    assert aws.operations.count("CancelDataRepositoryTask") == 1
    assert aws.operations[-1] == "DescribeFileSystems"
