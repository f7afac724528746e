"""Comparisons of what DataSync counted with what it was to copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestration.expressions import All, Any, Compare, Function, Result, apply, join
from orchestration.graph import Output, Require
from orchestration.refs import Expression

_FAILURES: Final = ("Prepare", "Transfer", "Verify", "Delete")


def _failed(phase: str) -> str:
    return f"failed_{phase.lower()}"


COUNTS: Final = {
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
"""The counts of an execution. In Basic mode nothing tells what was listed, or what failed."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a stage's transfer."""

    stage: str

    def __getitem__(self, name: str) -> Result:
        """Return one of :data:`COUNTS`."""
        return Result(f"{self.stage}.copied", name)

    @property
    def done(self) -> Expression[object]:
        """The objects that are at the destination now, copied by this execution or before."""
        return apply(Function.SUM, [{"n": self[n]} for n in ("transferred", "skipped")], "n")

    @property
    def failed(self) -> Expression[object]:
        """The objects that could not be copied."""
        return apply(Function.SUM, [{"n": self[_failed(f)]} for f in _FAILURES], "n")

    def told(self, *names: str) -> list[str | Expression[object]]:
        """Return counts as parts of a text."""
        return [part for name in names for part in (f"{name}: ", self[name], ", ")]


def by_service(stage: str, *, filtered: bool) -> Require:
    """Compare the counts of an execution in Enhanced mode with each other."""
    counts = Counts(stage)
    conditions: list[Expression[bool]] = [
        Compare("gt", counts.done, 0),
        Compare("eq", counts.failed, 0),
        Compare("ge", counts["verified"], counts["transferred"]),
    ]
    if not filtered:
        # With an exclude filter, what is left out is listed as well.
        conditions.append(Compare("ge", counts.done, counts["listed"]))
    parts = counts.told("listed", "transferred", "skipped", "verified")
    return Require(
        name=f"{stage}.compared",
        condition=All(tuple(conditions)),
        error="StagedDataDiffers",
        cause=join(*parts, "failed: ", counts.failed, " objects"),
    )


def by_listing(stage: str, files: Expression[object], size: Expression[object]) -> Require:
    """Compare the counts of an execution in Basic mode with a listing of its source.

    Basic mode counts directories along with files, so more than the source has is no mistake. Bytes
    are those that this execution wrote: all of them, if it skipped nothing.
    """
    counts = Counts(stage)
    conditions = (
        Compare("ge", counts["verified"], files),
        Compare("ge", counts.done, files),
        Any((Compare("gt", counts["skipped"], 0), Compare("ge", counts["bytes"], size))),
    )
    told = counts.told("transferred", "skipped", "verified")
    return Require(
        name=f"{stage}.compared",
        condition=All(conditions),
        error="StagedDataDiffers",
        cause=join(
            *("source: ", files, " objects, ", size, " bytes; on the file system: "),
            *told,
            *("written: ", counts["bytes"], " bytes"),
        ),
    )
