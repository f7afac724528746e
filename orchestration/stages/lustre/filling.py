"""S3 data copied onto a file system that exists, by DataSync in Basic mode.

Enhanced mode does not reach file systems. Basic mode counts directories along with files and does
not tell what it listed, so its counts are compared with a listing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestration.expressions import Compare, Result, Tree, join
from orchestration.graph import Call, Require, Step
from orchestration.refs import Expression
from orchestration.stages.copying.comparing import by_listing
from orchestration.stages.copying.datasync import Transfer
from orchestration.stages.copying.locations import in_s3, on_lustre
from orchestration.stages.listing import counted
from orchestration.stages.stage import Context
from orchestration.stages.values import Text

_MOST_PAGES: Final = 1000
"""Of a source with more objects, these are the fewest that must have come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """The steps that copy one S3 prefix onto a file system."""

    stage: str
    context: Context
    source: Text
    role: Tree
    source_kms_key: Tree
    available: Call
    """The wait for the file system; it gives its ``arn`` and its ``owner``."""
    path: str
    security_groups: tuple[Text, ...]
    timeout_s: int

    def steps(self) -> tuple[Step, ...]:
        """List the source, copy it, and compare."""
        listed = counted(
            self._name("list"), self.source, most=_MOST_PAGES, after=(self.available.name,)
        )
        transfer = Transfer(
            stage=self.stage,
            context=self.context,
            source=in_s3(
                self._name("source"),
                self.source,
                self.role,
                self.context,
                key=self.source_kms_key,
                after=(self._name("usable"),),
            ),
            target=on_lustre(
                self._name("target"),
                Result(self.available.name, "arn"),
                self.path,
                owner=Result(self.available.name, "owner"),
                security_groups=self.security_groups,
                context=self.context,
            ),
            compared=by_listing(self.stage, self._count("files"), self._count("bytes")),
            mode="BASIC",
            timeout_s=self.timeout_s,
        )
        return (self.available, listed, self._usable(), *transfer.steps())

    def outputs(self) -> Mapping[str, Tree]:
        """Return the counts of the source, which the file system now has."""
        return {"object_count": self._count("files"), "total_bytes": self._count("bytes")}

    def _name(self, step: str) -> str:
        return f"{self.stage}.{step}"

    def _count(self, name: str) -> Expression[object]:
        return Result(self._name("list"), name)

    def _usable(self) -> Require:
        return Require(
            name=self._name("usable"),
            condition=Compare("gt", self._count("files"), 0),
            error="SourceNotUsable",
            cause=join(f"stage {self.stage} expected objects below ", self.source, "; saw 0"),
        )
