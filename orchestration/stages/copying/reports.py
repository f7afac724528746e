"""The completion report of a job of S3 Batch Operations, whose first rows say what failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestration.expressions import Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    ANY_ERROR,
    Call,
    Choose,
    Fail,
    Graph,
    Operation,
    Output,
    Recovery,
)
from orchestration.refs import Expression

FAILED: Final = "BatchCopyFailed"
_BEGINNING: Final = "bytes=0-999"
"""A row is a bucket, a key, a version, ``failed``, a code, a status and a message."""
_NOT_READ: Final = "(it could not be read)"


@dataclass(frozen=True, kw_only=True)
class FailedTasks:
    """The end of a run whose job could not copy some objects."""

    name: str
    report: Expression[str]
    """The place of all reports of the stage."""
    job: Result
    failed: Result
    cause: Expression[str]
    """The words before the rows."""
    after: tuple[str, ...]

    def step(self) -> Choose:
        """Return the step that fails the run if a task has failed."""
        return Choose(
            name=self.name,
            condition=Compare("gt", self.failed, 0),
            then=Graph((self._rows(), self._read(), self._fail())),
            otherwise=Graph(),
            after=self.after,
        )

    @property
    def _bucket(self) -> Expression[object]:
        return apply(Function.S3_BUCKET, self.report)

    @property
    def _folder(self) -> Expression[str]:
        """The prefix of the files with rows; with failed tasks only, there is one."""
        return join(apply(Function.S3_KEY, self.report), "/job-", self.job, "/results/")

    def _rows(self) -> Call:
        request: dict[str, Tree] = {"Bucket": self._bucket, "Prefix": self._folder, "MaxKeys": 1}
        return Call(
            name=f"{self.name}.rows",
            operation=Operation("s3", "ListObjectsV2", request),
            outputs={"key": Output(("Contents", 0, "Key"), default=None)},
            # What can't be read must not hide what the job said.
            recoveries=(Recovery(ANY_ERROR, {"key": None}),),
        )

    def _read(self) -> Call:
        # Written so, the state machine's role may read reports only.
        key = apply(Function.FIRST_OF, Result(f"{self.name}.rows", "key"), self._folder)
        name = apply(Function.REMOVE_PREFIX, key, self._folder)
        request: dict[str, Tree] = {
            "Bucket": self._bucket,
            "Key": join(self._folder, name),
            "Range": _BEGINNING,
        }
        return Call(
            name=f"{self.name}.report",
            operation=Operation("s3", "GetObject", request),
            outputs={"rows": Output(("Body",), kind="string")},
            recoveries=(Recovery(ANY_ERROR, {"rows": _NOT_READ}),),
        )

    def _fail(self) -> Fail:
        rows = Result(f"{self.name}.report", "rows")
        return Fail(
            name=f"{self.name}.failed",
            error=FAILED,
            cause=join(self.cause, "; the report begins: ", rows),
        )
