"""The transfer of an execution: objects listed, compared, copied and verified."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from orchestration.local.account.protocol import JsonObject
from orchestration.local.datasync import filters
from orchestration.local.datasync.locations import Location, directories, same

_UNTRANSFERABLE: Final = re.compile(r"^/|//|/\.\.?/")
"""Keys that DataSync does not transfer: model, CreateLocationS3Request.Subdirectory."""


@dataclass
class Counts:
    """The counters of an execution."""

    listed: int = 0
    prepared: int = 0
    transferred: int = 0
    verified: int = 0
    skipped: int = 0
    deleted: int = 0
    estimated_bytes: int = 0
    bytes: int = 0
    failed: dict[str, int] = field(
        default_factory=lambda: {"Prepare": 0, "Transfer": 0, "Verify": 0, "Delete": 0}
    )

    def description(self, mode: str) -> JsonObject:
        """Return the counters as in a Describe response."""
        counters = {
            "EstimatedFilesToTransfer": self.prepared,
            "EstimatedBytesToTransfer": self.estimated_bytes,
            "FilesTransferred": self.transferred,
            "BytesWritten": self.bytes,
            "BytesTransferred": self.bytes,
            "FilesDeleted": self.deleted,
            "FilesSkipped": self.skipped,
            "FilesVerified": self.verified,
        }
        if mode != "ENHANCED":
            return counters
        return {
            **counters,
            "FilesPrepared": self.prepared,
            "FilesListed": {"AtSource": self.listed},
            "FilesFailed": dict(self.failed),
        }


@dataclass
class Transfer:
    """The work of one execution, in the phases of its statuses."""

    source: Location
    target: Location
    options: JsonObject
    mode: str
    includes: Sequence[str] = ()
    excludes: Sequence[str] = ()
    counts: Counts = field(default_factory=Counts)
    _paths: list[str] = field(default_factory=list)
    """The files to copy."""
    _kept: list[str] = field(default_factory=list)
    """The files that the destination has already."""

    def prepare(self) -> None:
        """List the source and choose what differs at the destination."""
        target = self.target.files()
        everything = self.options["TransferMode"] == "ALL"
        for path, file in self.source.files().items():
            wanted = filters.chosen(path, self.includes, self.excludes)
            # With an exclude filter, everything at the source is listed.
            if wanted or filters.chosen(path, self.includes, ()):
                self.counts.listed += 1
            if not wanted:
                continue
            if _UNTRANSFERABLE.search(path):
                self.counts.failed["Prepare"] += 1
            elif not everything and same(file, target.get(path)):
                self._kept.append(path)
            else:
                self._paths.append(path)
                self.counts.estimated_bytes += file.size
        self.counts.skipped = len(self._kept) + self._around(self._kept)
        self.counts.prepared = len(self._paths) + self._around(self._paths)

    def copy(self, cancelled: Callable[[], bool]) -> None:
        """Copy what was chosen; stop where it is cancelled."""
        source, copied = self.source.files(), list[str]()
        for path in self._paths:
            if cancelled():
                return
            file = source.get(path)
            if file is None or not (self.source.lets_read(path) and self.target.lets_write(path)):
                self.counts.failed["Transfer"] += 1
                continue
            self.target.write(path, file, self.options)
            copied.append(path)
            self.counts.transferred = len(copied)
            self.counts.bytes += file.size
        self.counts.transferred += self._around(copied)
        # What could not be read has failed already, and is not verified.
        self._paths = copied
        self._delete()

    def verify(self) -> None:
        """Compare the destination with the source: what was copied, or everything."""
        source, target = self.source.files(), self.target.files()
        everything = self.options["VerifyMode"] == "POINT_IN_TIME_CONSISTENT"
        right = []
        for path in (*self._paths, *(self._kept if everything else ())):
            if path in source and same(source[path], target.get(path)):
                right.append(path)
            else:
                self.counts.failed["Verify"] += 1
        self.counts.verified = len(right) + self._around(right)

    def _around(self, paths: Sequence[str]) -> int:
        """Count the directories around files, as Basic mode does."""
        return 0 if self.mode == "ENHANCED" else len(directories(paths))

    def _delete(self) -> None:
        """Delete what only the destination has, if the task asks for it."""
        if self.options.get("PreserveDeletedFiles") != "REMOVE":
            return
        source = self.source.files()
        for path in self.target.files():
            if path not in source:
                self.target.remove(path)
                self.counts.deleted += 1
