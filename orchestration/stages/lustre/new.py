"""A file system for the run: created, filled from S3, and always deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import Result
from orchestration.graph import Call, Operation, Output
from orchestration.stages.lustre.deleting import PERSISTENT, deletion
from orchestration.stages.lustre.linking import Linking
from orchestration.stages.lustre.waiting import available, outputs
from orchestration.stages.stage import SAMPLE, Context, Fragment, Guard
from orchestration.stages.values import Extra, ExtraRequest, Model, Text

LUSTRE_VERSION = "2.15"
"""Data repository associations need 2.12 or 2.15, and the service's default is mostly 2.10, which
Amazon Linux 2023 cannot mount either."""


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
    """The kind of storage; scratch is cheaper, and enough for data that only the run needs."""
    throughput_mbps_per_tib: Literal[125, 250, 500, 1000] | None = None
    """``PERSISTENT_2`` only: MB/s for each TiB of storage."""
    mount_path: str = Field(default="/data", pattern=r"^(/[A-Za-z0-9._-]+)+$", max_length=200)
    """The directory of the file system in which the S3 data appears."""
    timeout_s: int = Field(default=3600, ge=300)
    """The longest time that creation, linking with S3, and deletion may take, each."""
    import_timeout_s: int = Field(default=14_400, ge=300)
    """The longest time until all objects are visible as files."""
    extra_request: Extra = {}
    """Further fields of ``CreateFileSystem``."""

    def check(self) -> Iterator[Problem]:
        """Yield what FSx would refuse beyond single fields."""
        capacity, throughput = self.storage_capacity_gib, self.throughput_mbps_per_tib
        if capacity != 1200 and capacity % 2400:
            yield Problem(
                "storage_capacity_gib", f"expected 1200 or a multiple of 2400, got {capacity}"
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
        """Create, wait, link the S3 data, import it; and the deletion."""
        system = Result(f"{stage}.create", "file_system_id")
        ready = f"{stage}.available"
        linking = Linking(
            stage=stage,
            context=context,
            system=system,
            uri=source,
            path=self.mount_path,
            timeout_s=self.timeout_s,
            import_timeout_s=self.import_timeout_s,
            after=ready,
        )
        listed = linking.listing()
        return Fragment(
            steps=(
                listed,
                available(ready, system, self.timeout_s, after=(listed.name,)),
                *linking.steps(),
            ),
            guard=Guard(
                acquire=self._create(stage, context),
                cleanup=deletion(stage, system, context.resource_name(stage), self.timeout_s),
            ),
            outputs=outputs(system, Result(ready, "mount_name"), self.mount_path),
        )

    def _create(self, stage: str, context: Context) -> Call:
        lustre: dict[str, Any] = {"DeploymentType": self.deployment_type}
        if self.throughput_mbps_per_tib is not None:
            lustre["PerUnitStorageThroughput"] = self.throughput_mbps_per_tib
        request = {
            # The token makes a second attempt of the same run find the file system of the first.
            "ClientRequestToken": context.resource_name(stage),
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": LUSTRE_VERSION,
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
            retry=PERSISTENT,
        )
