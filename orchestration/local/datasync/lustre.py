"""Locations on FSx for Lustre: a directory of a file system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from orchestration.local.account import storage
from orchestration.local.account.networks import Networks
from orchestration.local.account.protocol import JsonObject, ServiceError, now
from orchestration.local.datasync.locations import File
from orchestration.local.datasync.rules import refusal
from orchestration.local.fsx.file_system import FileSystem

_USABLE: Final = ("AVAILABLE", "UPDATING")


@dataclass(frozen=True)
class LustreFile:
    """A file of a file system."""

    path: Path

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.path.stat().st_size

    @property
    def etag(self) -> str | None:
        """Nothing: files have no ETag."""
        return None

    def content(self) -> bytes:
        """Read it."""
        return self.path.read_bytes()


@dataclass
class LustreLocation:
    """One location on a file system."""

    arn: str
    request: JsonObject
    tags: dict[str, str]
    system: FileSystem
    created: datetime = field(default_factory=now)
    kind = "FsxLustre"

    @property
    def path(self) -> str:
        """The path in the file system."""
        return str(self.request.get("Subdirectory", "/"))

    @property
    def uri(self) -> str:
        """The location as DataSync writes it."""
        return f"fsxl://{self.region}.{self.system.id}/{self.path.strip('/')}"

    @property
    def region(self) -> str:
        """The region of the file system."""
        return str(self.request["FsxFilesystemArn"]).split(":")[3]

    def description(self) -> JsonObject:
        """Return the location as in a Describe response."""
        return {
            "LocationArn": self.arn,
            "LocationUri": self.uri,
            "SecurityGroupArns": self.request["SecurityGroupArns"],
            "CreationTime": self.created,
        }

    def files(self) -> dict[str, File]:
        """Return the files below the directory, in order."""
        root = self._root
        return {path.relative_to(root).as_posix(): LustreFile(path) for path in storage.files(root)}

    def lets_read(self, path: str) -> bool:
        """Return True: DataSync reads as root."""
        return True

    def lets_write(self, path: str) -> bool:
        """Return True: DataSync writes as root."""
        return True

    def write(self, path: str, file: File, options: JsonObject) -> None:
        """Write a copy of a file, and the directories around it."""
        target = storage.inside(self._root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content())

    def remove(self, path: str) -> None:
        """Delete a file."""
        storage.inside(self._root, path).unlink()

    @property
    def _root(self) -> Path:
        return self.system.local_path(self.path)


def check(
    request: JsonObject, networks: Networks, file_system: Callable[[str], FileSystem]
) -> FileSystem:
    """Return the file system of a location; raise the service's error if a rule is broken."""
    arn = str(request["FsxFilesystemArn"])
    try:
        system = file_system(arn.rpartition("/")[2])
    except ServiceError:
        raise refusal("file system exists", system=arn) from None
    if system.arn != arn:
        raise refusal("file system exists", system=arn)
    if system.lifecycle not in _USABLE:
        raise refusal("file system is available", system=arn, lifecycle=system.lifecycle)
    for group in request["SecurityGroupArns"]:
        if not networks.has_group(group.rpartition("/")[2]):
            raise refusal("security groups exist", group=group)
    if ".." in str(request.get("Subdirectory", "/")).split("/"):
        raise refusal("directories of a file system", subdirectory=request["Subdirectory"])
    return system
