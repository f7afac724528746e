"""A file system of a run: filled, compared with its source, and deleted whatever happens."""

from __future__ import annotations

from typing import Any, cast

import pytest

from orchestration import NewFileSystem
from orchestration.errors import RunError
from orchestration.execution.effects import Aborted, Request, ServiceError
from orchestration.execution.places import Attempt
from orchestration.execution.scope import Scope
from orchestration.execution.steps import performed
from orchestration.expressions.evaluate import Values
from orchestration.graph import Graph, Guarded
from orchestration.pipeline.placing.placement import saved
from orchestration.stages.lustre.exporting import KEPT
from orchestration.stages.stage import Context
from tests.performances.scripted import Answer, ScriptedEdge, answers, perform

TASK = "task-0123456789abcdef0"
EXPORT = "task-0123456789abcdef1"
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
            "export": {"DataRepositoryTask": {"TaskId": EXPORT}},
            "exports": task("SUCCEEDED", 7),
            "TagResource": {},
            "running": {"DataRepositoryTasks": []},
            "CancelDataRepositoryTask": {"Lifecycle": "CANCELING"},
            "DeleteFileSystem": DELETED,
            **others,
        }
        plain = answers(responses)

        def script(request: Request) -> Answer:
            if request.operation == "DescribeDataRepositoryTasks":
                which = "imports" if "TaskIds" in request.parameters else "running"
                if request.parameters.get("TaskIds") == [EXPORT]:
                    which = "exports"
                return plain(Request("fsx", which, {}))
            if request.parameters.get("Type") == "EXPORT_TO_REPOSITORY":
                return plain(Request("fsx", "export", {}))
            return plain(request)

        super().__init__(script)


def run(aws: ScriptedEdge, *export: str, keep_for_h: int | None = None) -> None:
    context = Context(pipeline="p", workspace="s3://b", role="r")
    new = NewFileSystem(
        subnet="subnet-1", security_groups=("sg-1",), export=export, keep_for_h=keep_for_h
    )
    fragment = new.lower("fs", "s3://source/set", context)
    assert fragment.guard is not None
    guarded = Guarded(
        name="fs.guard",
        acquire=fragment.guard.acquire,
        body=saved(Graph(fragment.steps), fragment.guard.saving),
        cleanup=fragment.guard.cleanup,
    )
    perform(performed(Graph((guarded,)), Scope(Values({}, {})), Attempt()), aws)


def failing(aws: ScriptedEdge, *export: str, keep_for_h: int | None = None) -> RunError:
    with pytest.raises(RunError) as caught:
        run(aws, *export, keep_for_h=keep_for_h)
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
    assert failing(aws).error == "AccessDenied"
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
    assert failing(aws).error == "AccessDenied"
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


ARN = "arn:aws:fsx:us-east-1:1:file-system/fs-1"
STANDS = (
    "file system fs-1 stands while its tag orchestration:keep-for-h is not 0: export its files by "
    "a data repository task, and delete it; a deployed sweep deletes it 24 h after the run"
)


class Exporting(Lustre):
    """FSx by a script; the file system keeps its tags."""

    def __init__(self, **others: Answer | list[Answer]) -> None:
        created = {"FileSystem": {"FileSystemId": "fs-1", "ResourceARN": ARN}}
        super().__init__(task("SUCCEEDED"), CreateFileSystem=created, **others)
        self.tags: dict[str, str] = {}
        self.others: dict[str, str] = {}
        """The tags that somebody else writes."""
        script = self.script

        def tagged(request: Request) -> Answer:
            answer: Any = script(request)
            if isinstance(answer, ServiceError):
                return answer
            if request.operation in ("TagResource", "CreateFileSystem"):
                tags: Any = request.parameters["Tags"]
                self.tags |= {tag["Key"]: tag["Value"] for tag in tags}
            if request.operation == "DescribeFileSystems":
                both = {**self.tags, **self.others}
                tags = [{"Key": key, "Value": value} for key, value in both.items()]
                return {"FileSystems": [{**answer["FileSystems"][0], "Tags": tags}]}
            return cast("Answer", answer)

        self.script = tagged


EXPORTED = ["TagResource", "CreateDataRepositoryTask", "DescribeDataRepositoryTasks", "TagResource"]


def exporting(**others: Answer | list[Answer]) -> Exporting:
    systems = [system("AVAILABLE")] * 3
    return Exporting(DescribeFileSystems=[*systems, system("DELETING"), GONE], **others)


def test_results_are_in_s3_before_the_file_system_goes() -> None:
    aws = exporting()
    run(aws, "/data/results", "/data/checkpoints")
    request = next(r for r in aws.sent if r.parameters.get("Type") == "EXPORT_TO_REPOSITORY")
    assert request.parameters["Paths"] == ["data/results", "data/checkpoints"]
    assert request.parameters["Report"] == {"Enabled": False}
    begun = aws.sent.index(request) - 1
    deletion = ["DescribeFileSystems", "DescribeDataRepositoryTasks", "DeleteFileSystem"]
    assert aws.operations[begun:-2] == [*EXPORTED, *deletion]
    assert aws.kept["fs.export"]["files"] == 7
    assert aws.tags[KEPT] == "0"


@pytest.mark.parametrize(
    ("refused", "cause"),
    [
        (
            {"exports": task("FAILED", FailureDetails={"Message": "no such path"})},
            "CreateDataRepositoryTask fs.export ended as FAILED: no such path",
        ),
        (
            {"exports": task("CANCELED")},
            "CreateDataRepositoryTask fs.export ended as CANCELED",
        ),
        ({"export": DENIED}, "CreateDataRepositoryTask fs.export: not authorized"),
        (
            {"exports": DENIED},
            "DescribeDataRepositoryTasks of CreateDataRepositoryTask fs.export: not authorized",
        ),
        (
            {"exports": task("EXECUTING")},
            "CreateDataRepositoryTask fs.export did not end within 14400 s",
        ),
        (
            {
                "exports": {
                    "DataRepositoryTasks": [
                        {
                            "Lifecycle": "SUCCEEDED",
                            "Status": {"SucceededCount": 5, "FailedCount": 2},
                        }
                    ]
                }
            },
            "files that could not be exported: 2",
        ),
        ({"TagResource": [{}, DENIED]}, "TagResource fs.saved: not authorized"),
    ],
)
def test_a_failed_export_keeps_the_file_system_and_says_so(refused: Any, cause: str) -> None:
    aws = exporting(**refused)
    error = failing(aws, "/data")
    assert (error.error, error.cause) == ("ExportFailed", f"{cause}; {STANDS}")
    assert "DeleteFileSystem" not in aws.operations
    assert aws.tags[KEPT] == "24"


def test_an_export_waits_for_the_task_that_runs() -> None:
    early = ServiceError("DataRepositoryTaskExecuting", "another task is executing")
    in_turn: list[Answer] = [early, early, {"DataRepositoryTask": {"TaskId": EXPORT}}]
    aws = exporting(export=in_turn)
    run(aws, "/data")
    assert aws.now >= 60
    assert "DeleteFileSystem" in aws.operations


def test_a_file_system_that_cannot_be_marked_is_exported_all_the_same() -> None:
    refused: list[Answer] = [DENIED, {}]
    aws = exporting(TagResource=refused)
    run(aws, "/data")
    assert aws.operations.count("CreateDataRepositoryTask") == 2
    assert "DeleteFileSystem" in aws.operations


def test_an_abort_during_the_export_leaves_the_file_system_and_the_export() -> None:
    aws = exporting(exports=task("EXECUTING"))
    script = aws.script

    def aborted(request: Request) -> Answer:
        aws.aborting = aws.aborting or request.parameters.get("TaskIds") == [EXPORT]
        return script(request)

    aws.script = aborted
    with pytest.raises(Aborted):
        run(aws, "/data")
    assert "DeleteFileSystem" not in aws.operations
    assert "CancelDataRepositoryTask" not in aws.operations
    assert aws.tags[KEPT] == "24"


def test_of_a_body_that_failed_nothing_is_exported_and_the_file_system_goes() -> None:
    aws = exporting(ListObjectsV2={"Contents": []})
    assert failing(aws, "/data").error == "StagedDataDiffers"
    assert "TagResource" not in aws.operations
    assert aws.operations[-3:] == ["DeleteFileSystem", *["DescribeFileSystems"] * 2]


def test_a_person_can_keep_a_file_system_by_its_tag() -> None:
    aws = exporting(ListObjectsV2={"Contents": []})
    aws.others = {KEPT: "48"}
    assert failing(aws, "/data").error == "StagedDataDiffers"
    assert "DeleteFileSystem" not in aws.operations


def test_a_file_system_that_is_gone_already_is_no_failure_of_the_clean_up() -> None:
    systems = [*[system("AVAILABLE")] * 2, GONE]
    aws = Exporting(DescribeFileSystems=systems, DeleteFileSystem=GONE)
    run(aws, "/data")
    assert aws.operations[-1] == "DeleteFileSystem"


RUN = "orchestration:run"
NO_SOURCE: Answer = {"Contents": []}


def test_a_file_system_is_taken_filled_and_then_kept() -> None:
    aws = exporting()
    run(aws, keep_for_h=48)
    assert aws.operations[:2] == ["CreateFileSystem", "TagResource"]
    assert aws.operations[-2:] == ["TagResource", "DescribeFileSystems"]
    assert (aws.tags[RUN], aws.tags[KEPT]) == ("0" * 12, "48")
    created: Any = aws.sent[0].parameters["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in created} | {RUN: "none", KEPT: "0"} == {
        tag["Key"]: tag["Value"] for tag in created
    }


def test_one_that_could_not_be_filled_is_deleted_by_the_run_that_took_it() -> None:
    aws = exporting(ListObjectsV2=NO_SOURCE)
    assert failing(aws, keep_for_h=48).error == "StagedDataDiffers"
    assert "DeleteFileSystem" in aws.operations


def test_one_that_another_run_has_taken_since_is_left_to_that() -> None:
    aws = exporting(ListObjectsV2=NO_SOURCE)
    aws.others = {RUN: "1" * 12}
    assert failing(aws, keep_for_h=48).error == "StagedDataDiffers"
    assert "DeleteFileSystem" not in aws.operations


def test_one_that_was_filled_before_outlives_a_run_that_fails() -> None:
    aws = exporting(ListObjectsV2=NO_SOURCE)
    aws.others = {KEPT: "48"}
    assert failing(aws, keep_for_h=48).error == "StagedDataDiffers"
    assert "DeleteFileSystem" not in aws.operations


def test_one_that_failed_is_deleted_so_that_the_next_run_gets_another() -> None:
    aws = exporting(ListObjectsV2=NO_SOURCE)
    script = aws.script

    def broken(request: Request) -> Answer:
        answer: Any = script(request)
        if request.operation == "DescribeFileSystems" and "AVAILABLE" in str(answer):
            answer["FileSystems"][0]["Lifecycle"] = "FAILED"
        return cast("Answer", answer)

    aws.script = broken
    aws.others = {KEPT: "48", RUN: "1" * 12}
    assert failing(aws, keep_for_h=48).error == "JobFailed"
    assert "DeleteFileSystem" in aws.operations


def test_results_of_a_kept_one_are_exported_and_it_stays_kept() -> None:
    aws = exporting()
    run(aws, "/data", keep_for_h=48)
    assert aws.operations.count("CreateDataRepositoryTask") == 2
    assert aws.tags[KEPT] == "48"
    assert "DeleteFileSystem" not in aws.operations
