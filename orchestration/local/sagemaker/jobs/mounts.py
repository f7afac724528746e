"""The file systems that training jobs mount."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ServiceError
from orchestration.local.sagemaker.outcomes import JobFailed


class LustreFileSystems(Protocol):
    """The Lustre file systems of the account; both methods raise `ServiceError`."""

    def mounted(self, identifier: str, path: str) -> Path:
        """Return the directory of a path on a file system."""

    def subnets(self, identifier: str) -> list[str]:
        """Return the subnets of a file system."""


class Mounts:
    """The directories of the account's EFS and Lustre file systems."""

    def __init__(self, account: Account, lustre: LustreFileSystems) -> None:
        self._efs = account.directory / "efs"
        self._lustre = lustre

    def subnets(self, identifier: str) -> list[str]:
        """Return the subnets of a Lustre file system."""
        return self._lustre.subnets(identifier)

    def directory(self, source: Mapping[str, Any]) -> Path:
        """Return the directory of a `FileSystemDataSource`; raise `JobFailed` if it is missing."""
        identifier, path = source["FileSystemId"], source["DirectoryPath"]
        if source["FileSystemType"] == "EFS":
            return self._efs_directory(identifier, path)
        try:
            return self._lustre.mounted(identifier, path)
        except ServiceError as error:
            raise JobFailed(f"ClientError: Unable to mount file system: {error.message}") from error

    def _efs_directory(self, identifier: str, path: str) -> Path:
        """Return a directory of an EFS file system; create it if it is new.

        Every id names a file system, empty at first, which lasts as long as the embedded AWS.
        """
        directory = storage.inside(self._efs / identifier, path.strip("/"))
        directory.mkdir(parents=True, exist_ok=True)
        return directory
