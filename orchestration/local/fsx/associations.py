"""Associations of a Lustre file system with S3, and export tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from orchestration.local.account import storage
from orchestration.local.account.protocol import JsonObject, now
from orchestration.local.account.storage import Location
from orchestration.local.fsx.file_system import FileSystem


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

    def import_objects(self) -> None:
        """Copy the objects of the prefix into the directory."""
        directory = self.system.local_path(self.path)
        directory.mkdir(parents=True, exist_ok=True)
        imports = self.request.get("BatchImportMetaDataOnCreate") or self.request.get("S3", {}).get(
            "AutoImportPolicy", {}
        ).get("Events")
        if imports:
            storage.download(self.prefix, directory)
        self.imported = {path: _mark(path) for path in storage.files(directory)}

    def export(self, below: str | None = None) -> int:
        """Write changed files back to S3 and return how many."""
        directory = self.system.local_path(self.path)
        start = self.system.local_path(below) if below else directory
        changed = [
            path
            for path in ([start] if start.is_file() else storage.files(start))
            if self.imported.get(path) != _mark(path)
        ]
        for path in changed:
            relative = path.relative_to(directory).as_posix()
            storage.write(self.prefix.child(relative), path.read_bytes())
            self.imported[path] = _mark(path)
        return len(changed)

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


@dataclass
class Task:
    """An export of files to S3."""

    id: str
    arn: str
    request: JsonObject
    created: datetime = field(default_factory=now)
    ended: datetime | None = None
    lifecycle: str = "PENDING"
    files: int = 0
    failure: str | None = None

    def description(self) -> JsonObject:
        """Return the task as in a Describe response."""
        description: JsonObject = {
            "TaskId": self.id,
            "ResourceARN": self.arn,
            "FileSystemId": self.request["FileSystemId"],
            "Type": self.request["Type"],
            "Paths": self.request.get("Paths", []),
            "Report": self.request["Report"],
            "Lifecycle": self.lifecycle,
            "CreationTime": self.created,
            "StartTime": self.created,
            "EndTime": self.ended,
            "Status": {"TotalCount": self.files, "SucceededCount": self.files, "FailedCount": 0},
            "FailureDetails": {"Message": self.failure} if self.failure else None,
        }
        return {key: value for key, value in description.items() if value is not None}


def _mark(path: Path) -> tuple[int, int]:
    status = path.stat()
    return (status.st_size, status.st_mtime_ns)
