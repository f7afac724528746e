"""The transfer of an execution: objects listed, compared, copied and verified."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.datasync import filters
from orchestration.local.datasync.locations import Location

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

    def description(self) -> JsonObject:
        """Return the counters as in a Describe response."""
        return {
            "EstimatedFilesToTransfer": self.prepared,
            "EstimatedBytesToTransfer": self.estimated_bytes,
            "FilesTransferred": self.transferred,
            "BytesWritten": self.bytes,
            "BytesTransferred": self.bytes,
            "FilesDeleted": self.deleted,
            "FilesSkipped": self.skipped,
            "FilesVerified": self.verified,
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
    includes: Sequence[str] = ()
    excludes: Sequence[str] = ()
    counts: Counts = field(default_factory=Counts)
    _keys: list[str] = field(default_factory=list)
    """The keys to copy, relative to the source."""

    def prepare(self) -> None:
        """List the source and choose what differs at the destination."""
        source, target = _keys(self.source), _keys(self.target)
        everything = self.options.get("TransferMode") == "ALL"
        for relative in _below(source, self.source.prefix):
            wanted = filters.chosen(relative, self.includes, self.excludes)
            # With an exclude filter, everything at the source is listed.
            if wanted or filters.chosen(relative, self.includes, ()):
                self.counts.listed += 1
            if not wanted:
                continue
            if _UNTRANSFERABLE.search(relative):
                self.counts.failed["Prepare"] += 1
                continue
            stored = source[self.source.prefix + relative]
            if not everything and _same(stored, target.get(self.target.prefix + relative)):
                self.counts.skipped += 1
                continue
            self._keys.append(relative)
            self.counts.estimated_bytes += stored.size
        self.counts.prepared = len(self._keys)

    def copy(self, cancelled: Callable[[], bool]) -> None:
        """Copy what was chosen; stop where it is cancelled."""
        from moto.s3.models import s3_backends

        backend, source = s3_backends[ACCOUNT_ID]["aws"], _keys(self.source)
        for relative in self._keys:
            if cancelled():
                return
            stored = source.get(self.source.prefix + relative)
            if stored is None:
                self.counts.failed["Transfer"] += 1
                continue
            backend.copy_object(
                stored,
                self.target.bucket,
                self.target.prefix + relative,
                storage=self.target.storage_class,
            )
            self.counts.transferred += 1
            self.counts.bytes += stored.size
        self._delete()

    def verify(self) -> None:
        """Compare what was copied with the source, object by object."""
        source, target = _keys(self.source), _keys(self.target)
        for relative in self._keys:
            copied = target.get(self.target.prefix + relative)
            original = source.get(self.source.prefix + relative)
            if original is not None and _same(original, copied):
                self.counts.verified += 1
            else:
                self.counts.failed["Verify"] += 1

    def _delete(self) -> None:
        """Delete what only the destination has, if the task asks for it."""
        if self.options.get("PreserveDeletedFiles") != "REMOVE":
            return
        from moto.s3.models import s3_backends

        source, target = _keys(self.source), _keys(self.target)
        for relative in list(_below(target, self.target.prefix)):
            if self.source.prefix + relative not in source:
                key = self.target.prefix + relative
                s3_backends[ACCOUNT_ID]["aws"].delete_object(self.target.bucket, key)
                self.counts.deleted += 1


def _keys(location: Location) -> Any:
    """Return the objects of a location's bucket, by key."""
    from moto.s3.models import s3_backends

    return s3_backends[ACCOUNT_ID]["aws"].buckets[location.bucket].keys


def _below(keys: Any, prefix: str) -> Iterator[str]:
    """Yield the keys of objects below a prefix, relative to it; those of folders are left out."""
    return (
        key[len(prefix) :]
        for key in sorted(keys)
        if key.startswith(prefix) and key != prefix and not key.endswith("/")
    )


def _same(stored: Any, other: Any) -> bool:
    return other is not None and (stored.size, stored.etag) == (other.size, other.etag)
