"""The file systems that training jobs mount."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ServiceError
from orchestration.local.sagemaker.outcomes import JobFailed

LustreDirectory = Callable[[str, str], Path]
"""A function of a Lustre file system's id and a path in it; it raises `ServiceError`."""


class Mounts:
    """The directories of the account's EFS and Lustre file systems."""

    def __init__(self, account: Account, lustre_directory: LustreDirectory) -> None:
        self._efs = account.directory / "efs"
        self._lustre_directory = lustre_directory

    def directory(self, source: Mapping[str, Any]) -> Path:
        """Return the directory of a `FileSystemDataSource`; raise `JobFailed` if it is missing."""
        identifier, path = source["FileSystemId"], source["DirectoryPath"]
        if source["FileSystemType"] == "EFS":
            return self._efs_directory(identifier, path)
        try:
            return self._lustre_directory(identifier, path)
        except ServiceError as error:
            raise JobFailed(f"ClientError: Unable to mount file system: {error.message}") from error

    def _efs_directory(self, identifier: str, path: str) -> Path:
        """Return a directory of an EFS file system; create it if it is new.

        Every id names a file system, empty at first, which lasts as long as the embedded AWS.
        """
        directory = storage.inside(self._efs / identifier, path.strip("/"))
        directory.mkdir(parents=True, exist_ok=True)
        return directory
