"""The operations on file systems of a simulated FSx for Lustre."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import (
    JsonObject,
    Operation,
    Service,
    ServiceError,
)
from orchestration.local.account.storage import Location
from orchestration.local.fsx import creation
from orchestration.local.fsx.file_system import FileSystem
from orchestration.local.fsx.later import later
from orchestration.local.fsx.repositories import Repositories
from orchestration.local.fsx.rules import refusal
from orchestration.local.fsx.tokens import Tokens

# Seconds of AWS until a new file system is AVAILABLE, and until a deleted one is gone.
CREATION_S = 300.0
DELETION_S = 120.0


class FileSystems(Service):
    """The file systems of an account."""

    name = "fsx"

    def __init__(self, account: Account) -> None:
        self._account = account
        self._systems: dict[str, FileSystem] = {}
        self._tokens: Tokens[FileSystem] = Tokens()
        self._lock = threading.RLock()
        self._repositories = Repositories(account, self.get)
        operations: dict[str, Operation] = {
            "CreateFileSystem": self._create,
            "DescribeFileSystems": self._describe,
            "DeleteFileSystem": self._delete,
            "TagResource": self._tag,
            "UntagResource": self._untag,
            "ListTagsForResource": self._list_tags,
        }
        super().__init__({**operations, **self._repositories.operations()})

    def get(self, identifier: str) -> FileSystem:
        """Return a file system; raise `FileSystemNotFound` if it does not exist."""
        if identifier not in self._systems:
            raise ServiceError("FileSystemNotFound", f"File system '{identifier}' does not exist.")
        return self._systems[identifier]

    def mounted(self, identifier: str, path: str) -> Path:
        """Return the directory that a training job mounts as `/MountName/...`."""
        system = self.get(identifier)
        if system.lifecycle not in ("AVAILABLE", "UPDATING"):
            raise ServiceError(
                "BadRequest", f"file system {identifier} is {system.lifecycle}, not AVAILABLE"
            )
        mount, _, below = path.strip("/").partition("/")
        if mount != system.lustre["MountName"]:
            raise ServiceError(
                "BadRequest",
                f"the directory path '{path}' does not begin with the mount name "
                f"'/{system.lustre['MountName']}' of file system {identifier}",
            )
        directory = system.local_path(below)
        if not directory.is_dir():
            raise ServiceError(
                "BadRequest", f"the directory path '{path}' does not exist on {identifier}"
            )
        return directory

    def subnets(self, identifier: str) -> list[str]:
        """Return the subnets of a file system."""
        return list(self.get(identifier).request["SubnetIds"])

    def state(self) -> JsonObject:
        """Return file systems, associations and tasks as in Describe responses."""
        return {
            "FileSystems": {
                identifier: system.description()
                for identifier, system in list(self._systems.items())
            },
            **self._repositories.state(),
        }

    def _create(self, request: JsonObject) -> JsonObject:
        if request["FileSystemType"] != "LUSTRE":
            raise ServiceError("BadRequest", "the embedded AWS simulates LUSTRE only")
        with self._lock:
            existing = self._tokens.known(request)
            if existing is not None:
                return {"FileSystem": existing.description()}
            creation.check(request)
            self._check_network(request)
            system = FileSystem(self._account, request)
            self._systems[system.id] = system
            self._tokens.remember(request, system)
        created = system.description()
        later(self._account, CREATION_S, lambda: self._become_available(system))
        return {"FileSystem": created}

    def _check_network(self, request: JsonObject) -> None:
        """Refuse a subnet or security groups that do not exist."""
        for subnet in request["SubnetIds"]:
            if self._account.networks.zone(subnet) is None:
                raise refusal("subnets exist", subnet=subnet)
        for group in request.get("SecurityGroupIds", []):
            if not self._account.networks.has_group(group):
                raise refusal("security groups exist", group=group)

    def _become_available(self, system: FileSystem) -> None:
        if system.lifecycle == "CREATING":
            lifecycle = self._created(system)
            with self._lock:
                # It may have been deleted meanwhile.
                if system.lifecycle == "CREATING":
                    system.lifecycle = lifecycle

    def _created(self, system: FileSystem) -> str:
        """Fill a new file system, and return what has become of it."""
        if self._account.faults.for_job("CreateFileSystem", system.id):
            return "FAILED"
        path = system.lustre.get("ImportPath")
        if path:
            try:
                storage.download(Location.parse(path), system.directory)
            except ServiceError:
                return "FAILED"
        return "AVAILABLE"

    def _describe(self, request: JsonObject) -> JsonObject:
        identifiers = request.get("FileSystemIds") or list(self._systems)
        return {"FileSystems": [self.get(each).description() for each in identifiers]}

    def _delete(self, request: JsonObject) -> JsonObject:
        with self._lock:
            system = self.get(request["FileSystemId"])
            task = self._repositories.unfinished(system.id)
            if task is not None:
                raise refusal(
                    "no deletion during a task",
                    system=system.id,
                    task=task.id,
                    lifecycle=task.lifecycle,
                )
            system.lifecycle = "DELETING"
        later(self._account, DELETION_S, lambda: self._vanish(system))
        return {"FileSystemId": system.id, "Lifecycle": "DELETING"}

    def _vanish(self, system: FileSystem) -> None:
        self._repositories.forget(system.id)
        with self._lock:
            # "If a file system with the specified client request token doesn't exist,
            # CreateFileSystem creates a new, empty Amazon FSx file system" (the service model).
            self._tokens.forget(system)
            self._systems.pop(system.id, None)
        shutil.rmtree(system.directory, ignore_errors=True)

    def _tags_of(self, request: JsonObject) -> dict[str, str]:
        arn = request["ResourceARN"]
        for system in list(self._systems.values()):
            if system.arn == arn:
                return system.tags
        tags = self._repositories.tags_of(arn)
        if tags is None:
            raise ServiceError("ResourceNotFound", f"{arn} does not exist", ResourceARN=arn)
        return tags

    def _tag(self, request: JsonObject) -> JsonObject:
        self._tags_of(request).update({tag["Key"]: tag["Value"] for tag in request["Tags"]})
        return {}

    def _untag(self, request: JsonObject) -> JsonObject:
        tags = self._tags_of(request)
        for key in request["TagKeys"]:
            tags.pop(key, None)
        return {}

    def _list_tags(self, request: JsonObject) -> JsonObject:
        tags = sorted(self._tags_of(request).items())
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags]}
