"""An association of a Lustre file system with S3: a directory, and the prefix that it mirrors."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from orchestration.local.account import storage
from orchestration.local.account.protocol import JsonObject, ServiceError, now
from orchestration.local.account.storage import Location
from orchestration.local.fsx.file_system import FileSystem

_LONGEST_KEY: Final = 1024
"""Bytes of an S3 key; paths of files may be longer."""


@dataclass
class Association:
    """A directory of a file system and the S3 prefix that it mirrors."""

    id: str
    arn: str
    request: JsonObject
    system: FileSystem
    created: datetime = field(default_factory=now)
    lifecycle: str = "CREATING"
    imported: dict[Path, tuple[int, int]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The directory, as a path of the file system."""
        return str(self.request.get("FileSystemPath", "/"))

    @property
    def prefix(self) -> Location:
        """The prefix, ending with a slash."""
        # A data repository path names a prefix, as a directory does.
        path = Location.parse(self.request["DataRepositoryPath"])
        return Location(path.bucket, path.key.rstrip("/") + "/" if path.key else "")

    @property
    def exports_automatically(self) -> bool:
        """True if the service exports changes by itself."""
        return bool(self.request.get("S3", {}).get("AutoExportPolicy", {}).get("Events"))

    def become_available(self) -> None:
        """Make the directory, still without any files."""
        self.system.local_path(self.path).mkdir(parents=True, exist_ok=True)
        self.lifecycle = "AVAILABLE"

    def import_objects(self, below: Location | None = None) -> tuple[int, int]:
        """Make files of the objects (below a prefix); return how many came, and how many cannot."""
        succeeded = failed = 0
        directory = self.system.local_path(self.path)
        for stored in storage.objects(self.prefix):
            if below is not None and not stored.key.startswith(below.key):
                continue
            target = storage.inside(directory, stored.relative)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(storage.read(self.prefix.at(stored.key)))
            except (OSError, ServiceError):
                # An object that has the name of a directory (`a` beside `a/b`), or may not be read.
                failed += 1
            else:
                succeeded += 1
                self.imported[target] = _mark(target)
        return succeeded, failed

    def export(self, below: str | None = None) -> tuple[int, int]:
        """Write changed files back to S3; return how many went, and how many cannot."""
        directory = self.system.local_path(self.path)
        start = self.system.local_path(below) if below else directory
        changed = [
            path
            for path in ([start] if start.is_file() else storage.files(start))
            if self.imported.get(path) != _mark(path)
        ]
        failed = 0
        for path in changed:
            target = self.prefix.child(path.relative_to(directory).as_posix())
            try:
                if len(target.key.encode()) > _LONGEST_KEY:
                    raise OSError(f"{target} is too long")
                storage.write(target, path.read_bytes())
            except (OSError, ServiceError):
                failed += 1
            else:
                self.imported[path] = _mark(path)
        return len(changed) - failed, failed

    def description(self) -> JsonObject:
        """Return the association as in a Describe response."""
        members = (
            "FileSystemPath",
            "DataRepositoryPath",
            "BatchImportMetaDataOnCreate",
            "ImportedFileChunkSize",
            "S3",
        )
        return {
            "AssociationId": self.id,
            "ResourceARN": self.arn,
            "FileSystemId": self.system.id,
            "Lifecycle": self.lifecycle,
            "CreationTime": self.created,
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
            **{key: self.request[key] for key in members if key in self.request},
        }


def _mark(path: Path) -> tuple[int, int]:
    status = path.stat()
    return (status.st_size, status.st_mtime_ns)
