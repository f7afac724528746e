"""The export of what jobs wrote to a file system, to S3, before the file system is deleted.

The file system itself says that it must not be deleted: a tag is written before the export begins
and taken back when everything is in S3. So a run that is killed in between leaves the mark, and
whoever cleans up after it reads the same. Hours count from the end of the run.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/export-data-repo-task-dra.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from orchestration.errors import Problem
from orchestration.expressions import (
    All,
    Any,
    Compare,
    Function,
    Json,
    Result,
    Tree,
    apply,
    join,
    run_attempt,
    run_id,
)
from orchestration.graph import (
    ANY_ERROR,
    Call,
    Choose,
    ErrorPattern,
    Failure,
    Graph,
    Operation,
    Output,
    Path,
    Recovery,
    Require,
    Retry,
    Until,
)
from orchestration.refs import Expression
from orchestration.stages.lustre.deleting import NOT_FOUND
from orchestration.stages.lustre.waiting import LIFECYCLE, described
from orchestration.stages.stage import Context

KEPT: Final = "orchestration:keep-for-h"
"""The tag of a file system that outlives its run: the hours from the run's end on that it is kept.
Absent, or 0: not at all."""
EXPORT_FAILED: Final = "ExportFailed"
_TASK: Path = ("DataRepositoryTasks", 0)
_PERSISTENT = Retry(attempts=10)
_DENIED = ErrorPattern("AccessDenied", "not authorized")
_ONE_AT_A_TIME = Retry(attempts=10, busy=(ErrorPattern("DataRepositoryTaskExecuting"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporting:
    """The steps that write directories back to S3."""

    stage: str
    context: Context
    paths: tuple[str, ...]
    """Directories of the file system, with their leading slashes."""
    keep_h: int
    """Hours for which the file system is kept if the export fails."""
    kept_h: int = 0
    """Hours for which it is kept otherwise."""
    timeout_s: int

    @property
    def files(self) -> Result:
        """The number of files written to S3."""
        return Result(self._name("export"), "files")

    def steps(self) -> Graph:
        """Mark the file system, export, and take the mark back if nothing is left behind."""
        return Graph((self._mark(), self._export(), self._exported(), self._unmark()))

    @property
    def _system(self) -> Result:
        return Result(self._name("create"), "file_system_id")

    @property
    def _hours(self) -> int:
        return max(self.keep_h, self.kept_h)

    @property
    def _remedy(self) -> Expression[str]:
        return join(
            "file system ",
            self._system,
            f" stands while its tag {KEPT} is not 0: export its files by a data repository task, "
            f"and delete it; a deployed sweep deletes it {self._hours} h after the run",
        )

    def _name(self, step: str) -> str:
        return f"{self.stage}.{step}"

    def _tagged(self, hours: int) -> Operation:
        tags: Tree = [{"Key": KEPT, "Value": str(hours)}]
        arn = Result(self._name("create"), "arn")
        return Operation("fsx", "TagResource", {"ResourceARN": arn, "Tags": tags})

    def _mark(self) -> Call:
        return Call(
            name=self._name("keep"),
            operation=self._tagged(self._hours),
            retry=_PERSISTENT,
            # Without the mark, the export is all that can still save the files.
            recoveries=(Recovery(ANY_ERROR, {}),),
        )

    def _export(self) -> Call:
        polled: dict[str, Tree] = {"TaskIds": [Result(self._name("export"), "task_id")]}
        request: dict[str, Tree] = {
            "ClientRequestToken": join(self._system, "-", run_attempt(), "-out"),
            "FileSystemId": self._system,
            "Type": "EXPORT_TO_REPOSITORY",
            # Relative to where the file system is mounted.
            "Paths": [path.strip("/") for path in self.paths],
            "Report": {"Enabled": False},
            "Tags": self.context.tag_list(self.stage),
        }
        return Call(
            name=self._name("export"),
            operation=Operation("fsx", "CreateDataRepositoryTask", request),
            outputs={"task_id": Output(("DataRepositoryTask", "TaskId"), kind="string")},
            until=Until(
                poll=Operation("fsx", "DescribeDataRepositoryTasks", polled),
                status=(*_TASK, "Lifecycle"),
                success=frozenset(["SUCCEEDED"]),
                failure=frozenset(["FAILED", "CANCELED"]),
                reason=(*_TASK, "FailureDetails", "Message"),
                timeout_s=self.timeout_s,
                outputs={
                    "files": Output((*_TASK, "Status", "SucceededCount"), kind="number"),
                    "failed": Output((*_TASK, "Status", "FailedCount"), kind="number", default=0),
                },
            ),
            retry=_ONE_AT_A_TIME,
            failure=Failure(error=EXPORT_FAILED, remedy=self._remedy),
            after=(self._name("keep"),),
        )

    def _exported(self) -> Require:
        failed = Result(self._name("export"), "failed")
        return Require(
            name=self._name("exported"),
            condition=Compare("eq", failed, 0),
            error=EXPORT_FAILED,
            cause=join("files that could not be exported: ", failed, "; ", self._remedy),
        )

    def _unmark(self) -> Call:
        return Call(
            name=self._name("saved"),
            operation=self._tagged(self.kept_h),
            retry=_PERSISTENT,
            failure=Failure(error=EXPORT_FAILED, remedy=self._remedy),
            after=(self._name("exported"),),
        )


def unless_kept(stage: str, deletion: Graph, *, shared: bool) -> Graph:
    """Delete the file system unless it is marked, by this run or by a person.

    One that is ``shared`` with other runs is deleted only by the last that took it, or when it is
    of no use.
    """
    marks, system = f"{stage}.marks", Result(f"{stage}.create", "file_system_id")
    unknown: dict[str, Json] = {"tags": [], **({"lifecycle": ""} if shared else {})}
    tags = Output(("FileSystems", 0, "Tags"), kind="list", columns=("Key", "Value"), default=())
    lifecycle = Output(LIFECYCLE, kind="string", default="")
    reading = Call(
        name=marks,
        operation=described(system),
        outputs={"tags": tags, **({"lifecycle": lifecycle} if shared else {})},
        retry=_PERSISTENT,
        # What is gone holds nothing; and a run that may not look at a file system has not seen it
        # become available, so that nothing was ever written to it.
        recoveries=(Recovery(NOT_FOUND, unknown), Recovery(_DENIED, unknown)),
    )
    choice = Choose(
        name=f"{stage}.delete_unless_kept",
        condition=_expendable(marks, shared=shared),
        then=deletion,
        otherwise=Graph(),
    )
    return Graph((reading, choice))


def _expendable(marks: str, *, shared: bool) -> Expression[bool]:
    tags = Result(marks, "tags")
    hours = apply(Function.TAG, tags, KEPT)
    unmarked = Any((Compare("eq", hours, ""), Compare("eq", hours, "0")))
    if not shared:
        return unmarked
    own = Compare("eq", apply(Function.TAG, tags, "orchestration:run"), run_id())
    useless = Compare("eq", Result(marks, "lifecycle"), "FAILED")
    return Any((useless, All((unmarked, own))))


def problems(paths: tuple[str, ...], linked: tuple[str, ...]) -> Iterator[Problem]:
    """Yield the paths that are in no linked directory."""
    for number, path in enumerate(paths):
        if not any(within(path, directory) for directory in linked):
            message = f"expected one of {', '.join(linked)}, or a directory below, got {path!r}"
            yield Problem(f"export[{number}]", message)


def within(path: str, directory: str) -> bool:
    """Return whether a path is a directory, or below it.

    >>> within("/data/out", "/data"), within("/data2", "/data")
    (True, False)
    """
    relative = PurePosixPath(path)
    return relative.is_relative_to(directory) and ".." not in relative.parts
