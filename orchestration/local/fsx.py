"""FSx for Lustre, simulated: a file system is a directory, its S3 associations are copied files."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import threading
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from orchestration.local import storage
from orchestration.local.protocol import (
    ACCOUNT_ID,
    JsonObject,
    Operation,
    Service,
    ServiceError,
    now,
)
from orchestration.local.repositories import Repositories
from orchestration.local.storage import Location

if TYPE_CHECKING:
    from orchestration.local.wiring import Account

# Simulated seconds until a new file system is AVAILABLE, and until a deleted one is gone.
CREATION_S = 300.0
DELETION_S = 120.0
_SCRATCH_1_MOUNT = "fsx"


class FileSystem:
    """One Lustre file system."""

    def __init__(self, account: Account, request: JsonObject) -> None:
        self.id = f"fs-{secrets.token_hex(8) + '0'}"
        self.arn = account.arn("fsx", f"file-system/{self.id}")
        self.request = request
        self.created = now()
        self.lifecycle = "CREATING"
        self.lustre: JsonObject = {
            "DeploymentType": "SCRATCH_1",
            "WeeklyMaintenanceStartTime": "1:00:00",
            **request.get("LustreConfiguration", {}),
        }
        is_old = self.lustre["DeploymentType"] == "SCRATCH_1"
        self.lustre["MountName"] = _SCRATCH_1_MOUNT if is_old else secrets.token_hex(4)
        self.directory = account.directory / "fsx" / self.id
        self.directory.mkdir(parents=True)
        self.dns_name = f"{self.id}.fsx.{account.region}.amazonaws.com"
        self.tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}

    def local(self, path: str) -> Path:
        """Where a path of the file system is here."""
        return self.directory / PurePosixPath(path).as_posix().strip("/")

    def description(self) -> JsonObject:
        """The file system as Describe tells it."""
        return {
            "OwnerId": ACCOUNT_ID,
            "CreationTime": self.created,
            "FileSystemId": self.id,
            "FileSystemType": "LUSTRE",
            "Lifecycle": self.lifecycle,
            "StorageCapacity": self.request.get("StorageCapacity", 1200),
            "StorageType": self.request.get("StorageType", "SSD"),
            "VpcId": "vpc-embedded",
            "SubnetIds": self.request["SubnetIds"],
            "NetworkInterfaceIds": [],
            "DNSName": self.dns_name,
            "ResourceARN": self.arn,
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
            "LustreConfiguration": self.lustre,
        }


class FileSystems(Service):
    """The file systems of an account."""

    name = "fsx"

    def __init__(self, account: Account) -> None:
        self._account = account
        self._systems: dict[str, FileSystem] = {}
        self._by_token: dict[str, tuple[str, FileSystem]] = {}
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
        """A file system; `FileSystemNotFound` where there is none."""
        if identifier not in self._systems:
            raise ServiceError("FileSystemNotFound", f"File system '{identifier}' does not exist.")
        return self._systems[identifier]

    def mounted(self, identifier: str, path: str) -> Path:
        """The directory that a training job mounts as `/MountName/...`."""
        system = self.get(identifier)
        if system.lifecycle != "AVAILABLE":
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
        directory = system.local(below)
        if not directory.is_dir():
            raise ServiceError(
                "BadRequest", f"the directory path '{path}' does not exist on {identifier}"
            )
        return directory

    def state(self) -> JsonObject:
        """The file systems, their associations and tasks, as Describe tells them."""
        return {
            "FileSystems": {
                identifier: system.description() for identifier, system in self._systems.items()
            },
            **self._repositories.state(),
        }

    def _create(self, request: JsonObject) -> JsonObject:
        if request["FileSystemType"] != "LUSTRE":
            raise ServiceError("BadRequest", "the embedded AWS simulates LUSTRE only")
        token = request.get("ClientRequestToken")
        fingerprint = _fingerprint(request)
        with self._lock:
            if token in self._by_token:
                known, system = self._by_token[token]
                if known != fingerprint:
                    raise ServiceError(
                        "IncompatibleParameterError",
                        "The request was made with the same client token and other parameters.",
                        Parameter="ClientRequestToken",
                    )
                return {"FileSystem": system.description()}
            self._check_import_path(request)
            system = FileSystem(self._account, request)
            self._systems[system.id] = system
            if token:
                self._by_token[token] = (fingerprint, system)
        created = system.description()
        self._later(CREATION_S, lambda: self._become_available(system))
        return {"FileSystem": created}

    def _check_import_path(self, request: JsonObject) -> None:
        path = request.get("LustreConfiguration", {}).get("ImportPath")
        if path and not storage.bucket_exists(Location.parse(path).bucket):
            raise ServiceError("InvalidImportPath", f"The import path {path} is not accessible.")

    def _become_available(self, system: FileSystem) -> None:
        if system.lifecycle != "CREATING":
            return
        reason = self._account.faults.for_job("CreateFileSystem", system.id)
        if reason:
            system.lifecycle = "FAILED"
            return
        path = system.lustre.get("ImportPath")
        if path:
            storage.download(Location.parse(path), system.directory)
        system.lifecycle = "AVAILABLE"

    def _describe(self, request: JsonObject) -> JsonObject:
        chosen = request.get("FileSystemIds") or list(self._systems)
        return {"FileSystems": [self.get(identifier).description() for identifier in chosen]}

    def _delete(self, request: JsonObject) -> JsonObject:
        with self._lock:
            system = self.get(request["FileSystemId"])
            system.lifecycle = "DELETING"
        self._later(DELETION_S, lambda: self._vanish(system))
        return {"FileSystemId": system.id, "Lifecycle": "DELETING"}

    def _vanish(self, system: FileSystem) -> None:
        self._repositories.forget(system.id)
        self._systems.pop(system.id, None)
        shutil.rmtree(system.directory, ignore_errors=True)

    def _later(self, simulated_s: float, action: Any) -> None:
        timer = threading.Timer(self._account.clock.pause(simulated_s), action)
        timer.daemon = True
        timer.start()

    def _tags_of(self, request: JsonObject) -> dict[str, str]:
        arn = request["ResourceARN"]
        for system in self._systems.values():
            if system.arn == arn:
                return system.tags
        found = self._repositories.tags_of(arn)
        if found is None:
            raise ServiceError("ResourceNotFound", f"{arn} does not exist", ResourceARN=arn)
        return found

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


def _fingerprint(request: JsonObject) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
