"""A Lustre file system: a directory of this machine."""

from __future__ import annotations

import secrets
from pathlib import Path, PurePosixPath

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, now
from orchestration.local.fsx import creation

_SCRATCH_1_MOUNT = "fsx"


class FileSystem:
    """One Lustre file system."""

    def __init__(self, account: Account, request: JsonObject) -> None:
        self.id = f"fs-{secrets.token_hex(8) + '0'}"
        self.arn = account.arn("fsx", f"file-system/{self.id}")
        self.request = request
        self.created = now()
        self.lifecycle = "CREATING"
        self.version = creation.version(request)
        self.lustre: JsonObject = {
            "DeploymentType": creation.deployment(request),
            "WeeklyMaintenanceStartTime": "1:00:00",
            **request.get("LustreConfiguration", {}),
        }
        is_old = self.lustre["DeploymentType"] == "SCRATCH_1"
        self.lustre["MountName"] = _SCRATCH_1_MOUNT if is_old else secrets.token_hex(4)
        self.directory = account.directory / "fsx" / self.id
        self.directory.mkdir(parents=True)
        self.dns_name = f"{self.id}.fsx.{account.region}.amazonaws.com"
        self.tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", [])}

    def local_path(self, path: str) -> Path:
        """Return the path on this machine of a path in the file system."""
        return self.directory / PurePosixPath(path).as_posix().strip("/")

    def description(self) -> JsonObject:
        """Return the file system as in a Describe response."""
        description: JsonObject = {
            "OwnerId": ACCOUNT_ID,
            "CreationTime": self.created,
            "FileSystemId": self.id,
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": self.version,
            "Lifecycle": self.lifecycle,
            "StorageCapacity": self.request.get("StorageCapacity"),
            "StorageType": self.request.get("StorageType", "SSD"),
            "VpcId": "vpc-embedded",
            "SubnetIds": self.request["SubnetIds"],
            "NetworkInterfaceIds": [],
            "DNSName": self.dns_name,
            "ResourceARN": self.arn,
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
            "LustreConfiguration": self.lustre,
        }
        return {key: value for key, value in description.items() if value is not None}
