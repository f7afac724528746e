"""FSx for Lustre: a file system for the run, created and always deleted, or an existing one.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import Function, Result, Tree, apply, join
from orchestration.graph import (
    Call,
    ErrorPattern,
    Graph,
    Operation,
    Output,
    Path,
    Recovery,
    Retry,
    Until,
)
from orchestration.stages.stage import SAMPLE, Context, Fragment, Guard
from orchestration.stages.values import Extra, ExtraRequest, Model, Text

_LIFECYCLE: Path = ("FileSystems", 0, "Lifecycle")
_FAILED = frozenset(["FAILED", "MISCONFIGURED", "MISCONFIGURED_UNAVAILABLE", "DELETING"])
_NOT_FOUND = ErrorPattern("FileSystemNotFound")
# About 15 minutes: giving up on either call may leave a file system behind, and it costs.
_PERSISTENT = Retry(attempts=10)


class NewFileSystem(Model):
    """A file system that lives as long as its readers need it, and is always deleted."""

    kind: Literal["fsx_lustre"] = "fsx_lustre"
    subnet: Text
    """The subnet of the training job: one Availability Zone."""
    security_groups: tuple[Text, ...] = Field(min_length=1, max_length=50)
    """They let Lustre traffic (TCP 988, 1018-1023) through from the training job's."""
    storage_capacity_gib: int = Field(default=1200, ge=1200, multiple_of=1200)
    """1,200, or a multiple of 2,400."""
    deployment_type: Literal["SCRATCH_2", "PERSISTENT_2"] = "SCRATCH_2"
    """What a run needs is gone after it: scratch is the cheaper."""
    throughput_mbps_per_tib: Literal[125, 250, 500, 1000] | None = None
    """``PERSISTENT_2`` only: MB/s for each TiB of storage."""
    mount_path: str = Field(default="/data", pattern=r"^(/[A-Za-z0-9._-]+)+$", max_length=200)
    """Where in the file system the S3 data appears."""
    timeout_s: int = Field(default=3600, ge=300)
    extra_request: Extra = {}
    """Further fields of ``CreateFileSystem``."""

    def check(self) -> Iterator[Problem]:
        """What FSx would refuse beyond single fields."""
        capacity, throughput = self.storage_capacity_gib, self.throughput_mbps_per_tib
        if capacity != 1200 and capacity % 2400:
            yield Problem(
                "storage_capacity_gib", f"is {capacity}; it has to be 1200 or a multiple of 2400"
            )
        if self.deployment_type == "PERSISTENT_2" and throughput is None:
            yield Problem("throughput_mbps_per_tib", "is required for PERSISTENT_2: 125 to 1000")
        if self.deployment_type == "SCRATCH_2" and throughput is not None:
            yield Problem("throughput_mbps_per_tib", "is for PERSISTENT_2 only; leave it out")
        try:
            self._create("stage", SAMPLE)
        except ValueError as error:
            yield Problem("extra_request", str(error))

    def lower(self, stage: str, source: Text, context: Context) -> Fragment:
        """Create, wait, associate the S3 data, wait; and the deletion."""
        system = Result(f"{stage}.create", "file_system_id")
        mount_name = Result(f"{stage}.available", "mount_name")
        return Fragment(
            steps=(
                _available(f"{stage}.available", system, self.timeout_s),
                self._associate(stage, system, source, context),
            ),
            guard=Guard(
                acquire=self._create(stage, context), cleanup=self._delete(stage, system, context)
            ),
            outputs=_outputs(system, mount_name, self.mount_path),
        )

    def _create(self, stage: str, context: Context) -> Call:
        lustre: dict[str, Any] = {"DeploymentType": self.deployment_type}
        if self.throughput_mbps_per_tib is not None:
            lustre["PerUnitStorageThroughput"] = self.throughput_mbps_per_tib
        request = {
            # The token makes a second attempt of the same run find the file system of the first.
            "ClientRequestToken": context.resource_name(stage),
            "FileSystemType": "LUSTRE",
            "StorageCapacity": self.storage_capacity_gib,
            "SubnetIds": [self.subnet],
            "SecurityGroupIds": list(self.security_groups),
            "LustreConfiguration": lustre,
            "Tags": context.tag_list(stage),
        }
        return Call(
            name=f"{stage}.create",
            operation=Operation(
                "fsx", "CreateFileSystem", ExtraRequest.merged(request, self.extra_request)
            ),
            outputs={"file_system_id": Output(("FileSystem", "FileSystemId"), kind="string")},
            retry=_PERSISTENT,
        )

    def _associate(self, stage: str, system: Result, source: Text, context: Context) -> Call:
        name = f"{stage}.associate"
        association = Result(name, "association_id")
        return Call(
            name=name,
            operation=Operation(
                "fsx",
                "CreateDataRepositoryAssociation",
                {
                    "ClientRequestToken": context.resource_name(stage),
                    "FileSystemId": system,
                    "FileSystemPath": self.mount_path,
                    "DataRepositoryPath": apply(Function.DIRECTORY, source),
                    "BatchImportMetaDataOnCreate": True,
                    "Tags": context.tag_list(stage),
                },
            ),
            outputs={"association_id": Output(("Association", "AssociationId"), kind="string")},
            until=Until(
                poll=Operation(
                    "fsx",
                    "DescribeDataRepositoryAssociations",
                    {"AssociationIds": [association]},
                ),
                status=("Associations", 0, "Lifecycle"),
                success=frozenset(["AVAILABLE"]),
                failure=frozenset(["FAILED", "MISCONFIGURED", "DELETING"]),
                reason=("Associations", 0, "FailureDetails", "Message"),
                timeout_s=self.timeout_s,
            ),
            after=(f"{stage}.available",),
        )

    def _delete(self, stage: str, system: Result, context: Context) -> Graph:
        described = Operation("fsx", "DescribeFileSystems", {"FileSystemIds": [system]})
        return Graph(
            (
                Call(
                    name=f"{stage}.delete",
                    operation=Operation(
                        "fsx",
                        "DeleteFileSystem",
                        {
                            "FileSystemId": system,
                            # Without one every attempt would be given another.
                            "ClientRequestToken": context.resource_name(stage),
                        },
                    ),
                    recoveries=(Recovery(_NOT_FOUND, {}),),
                    retry=_PERSISTENT,
                    until=Until(
                        poll=described,
                        status=_LIFECYCLE,
                        success=frozenset(),
                        failure=frozenset(["FAILED"]),
                        reason=("FileSystems", 0, "FailureDetails", "Message"),
                        gone=_NOT_FOUND,
                        timeout_s=self.timeout_s,
                    ),
                ),
            )
        )


class ExistingFileSystem(Model):
    """A file system that someone else keeps; it is mounted and left as it is."""

    kind: Literal["existing_fsx_lustre"] = "existing_fsx_lustre"
    file_system_id: Text
    mount_path: str = Field(default="/", pattern=r"^/[A-Za-z0-9._/-]*$", max_length=200)
    """Where in the file system the data lies."""
    timeout_s: int = Field(default=600, ge=60)

    def lower(self, stage: str) -> Fragment:
        """Wait until it is available, and learn its mount name."""
        name = f"{stage}.available"
        return Fragment(
            steps=(_available(name, self.file_system_id, self.timeout_s),),
            outputs=_outputs(self.file_system_id, Result(name, "mount_name"), self.mount_path),
        )


def _available(name: str, system: Tree, timeout_s: int) -> Call:
    described = Operation("fsx", "DescribeFileSystems", {"FileSystemIds": [system]})
    return Call(
        name=name,
        operation=described,
        until=Until(
            poll=described,
            status=_LIFECYCLE,
            success=frozenset(["AVAILABLE"]),
            failure=_FAILED,
            reason=("FileSystems", 0, "FailureDetails", "Message"),
            timeout_s=timeout_s,
            outputs={
                "mount_name": Output(
                    ("FileSystems", 0, "LustreConfiguration", "MountName"), kind="string"
                ),
            },
        ),
    )


def _outputs(system: Tree, mount_name: Result, mount_path: str) -> dict[str, Tree]:
    path = mount_path.rstrip("/")
    return {
        "file_system": {"id": system, "directory": join("/", mount_name, path)},
        "file_system_id": system,
    }
