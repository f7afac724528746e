"""S3 data on a file system: linked, imported, and compared with its source.

The import is a task of our own. ``BatchImportMetaDataOnCreate`` would start one whose id nobody is
told, some time after the association has become available.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestration.expressions import All, Compare, Function, Result, Tree, apply, join
from orchestration.graph import Call, Operation, Output, Path, Require, Step, Until
from orchestration.stages.listing import listing
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
    uri: Text
    path: str
    timeout_s: int
    import_timeout_s: int
    after: str
    """The step before the first one of these."""

    @property
    def last(self) -> str:
        """The step after which everything is there."""
        return self._name("verified")

    def listing(self) -> Call:
        """The source's objects: those of the first page, which is what one answer may hold."""
        return listing(self._name("list"), self.uri, numbers=())

    def steps(self) -> tuple[Step, ...]:
        """Link, import, wait until all is visible, and compare."""
        return (self._associate(), self._import(), self._imported(), self._verified())

    def _name(self, step: str) -> str:
        return f"{self.stage}.{step}"

    def _associate(self) -> Call:
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
                    "ClientRequestToken": self.context.resource_name(self.stage),
                    "FileSystemId": self.system,
                    "FileSystemPath": self.path,
                    "DataRepositoryPath": apply(Function.DIRECTORY, self.uri),
                    "Tags": self.context.tag_list(self.stage),
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
            after=(self.after,),
        )

    def _import(self) -> Call:
        request: dict[str, Any] = {
            # Another request than that of the association, so another token.
            "ClientRequestToken": join(self.context.resource_name(self.stage), "-in"),
            "FileSystemId": self.system,
            "Type": "IMPORT_METADATA_FROM_REPOSITORY",
            "Report": {"Enabled": False},
            "Tags": self.context.tag_list(self.stage),
        }
        return Call(
            name=self._name("import"),
            operation=Operation("fsx", "CreateDataRepositoryTask", request),
            outputs={"task_id": Output(("DataRepositoryTask", "TaskId"), kind="string")},
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
        return Require(
            name=self.last,
            condition=All((Compare("gt", objects, 0), Compare("ge", files, objects))),
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
