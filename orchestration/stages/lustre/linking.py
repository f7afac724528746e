"""S3 data on a file system: linked, imported, and compared with its source.

The import is a task of our own. ``BatchImportMetaDataOnCreate`` would start one whose id nobody is
told, some time after the association has become available.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestration.expressions import All, Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    Call,
    ErrorPattern,
    Operation,
    Output,
    Path,
    Require,
    Retry,
    Step,
    Until,
)
from orchestration.stages.listing import listing
from orchestration.stages.lustre.asking import LustreLink
from orchestration.stages.lustre.keeping import NO_RUN
from orchestration.stages.lustre.waiting import USABLE
from orchestration.stages.stage import Context
from orchestration.stages.values import Text

_TASK: Path = ("DataRepositoryTasks", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linking:
    """The steps that bring one S3 prefix onto a file system."""

    stage: str
    context: Context
    system: Result
    link: LustreLink
    number: int
    """1: the stage's own source; further links are counted on."""
    timeout_s: int
    import_timeout_s: int
    kept: bool = False
    """True if the file system is kept for later runs, which find the link that is there."""

    @property
    def last(self) -> str:
        """The step after which everything is there."""
        return self._name("verified" if self.link.is_filled else "associate")

    def listing(self, after: tuple[str, ...]) -> Call:
        """List the source's objects: those of the first page, as many as one answer may hold."""
        return listing(self._name("list"), self._uri, numbers=(), after=after)

    def steps(self, after: tuple[str, ...]) -> tuple[Step, ...]:
        """Link, import, wait until all is visible, and compare."""
        associated = self._associate(after)
        if not self.link.is_filled:
            return (associated,)
        return (associated, self._import(), self._imported(), self._verified())

    @property
    def _uri(self) -> Text:
        if self.link.uri is not None:
            return self.link.uri
        return self.context.location(self.stage, self.link.path.strip("/"))

    def _name(self, step: str) -> str:
        return f"{self.stage}.{step}{f'_{self.number}' if self.number > 1 else ''}"

    def _token(self, what: str) -> Tree:
        # Another request than that of the file system, so mostly another token.
        end = f"{what}{self.number if self.number > 1 else ''}"
        name = self.context.attempt_name(self.stage) if self.kept else self.system
        return join(name, f"-{end}")

    def _linked(self) -> Tree:
        """Return the token of the link: of a kept file system the same in every run."""
        if not self.kept:
            return self._token("link")
        return apply(Function.HASH, join(self.system, " ", self.link.path))

    def _associate(self, after: tuple[str, ...]) -> Call:
        name = self._name("associate")
        described = Operation(
            "fsx",
            "DescribeDataRepositoryAssociations",
            {"AssociationIds": [Result(name, "association_id")]},
        )
        return Call(
            name=name,
            operation=Operation(
                "fsx",
                "CreateDataRepositoryAssociation",
                {
                    "ClientRequestToken": self._linked(),
                    "FileSystemId": self.system,
                    "FileSystemPath": self.link.path,
                    "DataRepositoryPath": apply(Function.DIRECTORY, self._uri),
                    "Tags": self.context.tag_list(self.stage, run=NO_RUN if self.kept else None),
                },
            ),
            outputs={"association_id": Output(("Association", "AssociationId"), kind="string")},
            until=Until(
                poll=described,
                status=("Associations", 0, "Lifecycle"),
                success=USABLE,
                failure=frozenset(["FAILED", "MISCONFIGURED", "DELETING"]),
                reason=("Associations", 0, "FailureDetails", "Message"),
                timeout_s=self.timeout_s,
            ),
            after=after,
        )

    def _import(self) -> Call:
        request: dict[str, Any] = {
            "ClientRequestToken": self._token("in"),
            "FileSystemId": self.system,
            "Type": "IMPORT_METADATA_FROM_REPOSITORY",
            "Report": {"Enabled": False},
            "Tags": self.context.tag_list(self.stage),
        }
        if self.number > 1 or self.kept:
            # Without paths, all links are gone through.
            request["Paths"] = [apply(Function.DIRECTORY, self._uri)]
        return Call(
            name=self._name("import"),
            operation=Operation("fsx", "CreateDataRepositoryTask", request),
            outputs={"task_id": Output(("DataRepositoryTask", "TaskId"), kind="string")},
            retry=Retry(busy=(ErrorPattern("DataRepositoryTaskExecuting"),))
            if self.kept
            else Retry(),
            after=(self._name("associate"),),
        )

    def _imported(self) -> Call:
        return waited(
            self._name("imported"),
            Result(self._name("import"), "task_id"),
            self.import_timeout_s,
            {"files": Output((*_TASK, "Status", "SucceededCount"), kind="number")},
        )

    def _verified(self) -> Require:
        """Compare counts; of bytes FSx tells nothing.

        Nobody could verify whether the task counts directories, so more than the source has is no
        mistake, and fewer always is.
        """
        objects = apply(Function.COUNT_FILES, Result(self._name("list"), "objects"))
        files = Result(self._name("imported"), "files")
        some = Compare("gt", objects, 0)
        # Of a file system that was filled before, the task may count what has changed only.
        enough = () if self.kept else (Compare("ge", files, objects),)
        return Require(
            name=self.last,
            condition=All((some, *enough)),
            error="StagedDataDiffers",
            cause=join("source: ", objects, " objects; on the file system: ", files, " files"),
        )


def waited(name: str, task: Tree, timeout_s: int, outputs: dict[str, Output]) -> Call:
    """The wait for a data repository task; one that could not process a file has failed."""
    described = Operation("fsx", "DescribeDataRepositoryTasks", {"TaskIds": [task]})
    return Call(
        name=name,
        operation=described,
        until=Until(
            poll=described,
            status=(*_TASK, "Lifecycle"),
            success=frozenset(["SUCCEEDED"]),
            failure=frozenset(["FAILED", "CANCELED"]),
            reason=(*_TASK, "FailureDetails", "Message"),
            timeout_s=timeout_s,
            outputs=outputs,
        ),
    )
