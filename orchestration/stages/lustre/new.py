"""A file system for the run: created, filled from S3, and always deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import Result, Tree
from orchestration.graph import Call, Graph, Operation, Output, Step
from orchestration.stages.lustre import asking, exporting, keeping
from orchestration.stages.lustre.asking import DeploymentType, LustreLink, Throughput
from orchestration.stages.lustre.deleting import PERSISTENT, deletion
from orchestration.stages.lustre.exporting import Exporting
from orchestration.stages.lustre.keeping import Keeping
from orchestration.stages.lustre.linking import Linking
from orchestration.stages.lustre.waiting import available, outputs
from orchestration.stages.stage import SAMPLE, Context, Fragment, Guard
from orchestration.stages.values import Extra, ExtraRequest, Model, Text

LUSTRE_VERSION = "2.15"
"""Data repository associations need 2.12 or 2.15, and the service's default is mostly 2.10, which
Amazon Linux 2023 cannot mount either."""
_ARN = Output(("FileSystem", "ResourceARN"), kind="string")


class NewFileSystem(Model):
    """A file system that lives as long as its readers need it, and is always deleted."""

    kind: Literal["fsx_lustre"] = "fsx_lustre"
    subnet: Text
    """The subnet of the training job: one Availability Zone."""
    security_groups: tuple[Text, ...] = Field(min_length=1, max_length=50)
    """They let Lustre traffic (TCP 988, 1018-1023) through from the training job's."""
    storage_capacity_gib: int = Field(default=1200, ge=1200, multiple_of=1200)
    """1,200, or a multiple of 2,400."""
    deployment_type: DeploymentType = "SCRATCH_2"
    """The kind of storage; scratch is cheaper, and enough for data that only the run needs."""
    throughput_mbps_per_tib: Throughput | None = None
    """MB/s for each TiB of storage: 50, 100 or 200 for ``PERSISTENT_1``, 125, 250, 500 or 1,000 for
    ``PERSISTENT_2``; both need it."""
    compression: Literal["LZ4"] | None = None
    """Compression of files as they are written."""
    metadata_iops: int | Literal["automatic"] | None = None
    """``PERSISTENT_2`` only: 1,500, 3,000, 6,000, a multiple of 12,000 up to 192,000, or as many as
    FSx finds right for the capacity."""
    efa: bool = False
    """EFA and GPUDirect Storage; for ``PERSISTENT_2`` with ``metadata_iops`` only. The security
    groups must let all traffic from and to themselves through."""
    links: tuple[LustreLink, ...] = Field(default=(), max_length=7)
    """Further S3 prefixes, each in a directory of its own; channels mount them by
    ``file_system_root``."""
    mount_path: str = Field(default="/data", pattern=r"^(/[A-Za-z0-9._-]+)+$", max_length=200)
    """The directory of the file system in which the S3 data appears."""
    export: tuple[str, ...] = Field(default=(), max_length=100)
    """Directories that are written back to S3, to where they are linked, once all readers have
    succeeded: ``/results``, ``/data/checkpoints``. Of a run that fails before, nothing is exported:
    half of its results would replace those of the last good one."""
    keep_for_h: int | None = Field(default=None, ge=1, le=720)
    """Keep the file system for the next runs of the pipeline, until so many hours have passed since
    the end of the last one that used it: the next one imports what is new. Only on Step Functions,
    where a sweep deletes it."""
    keep_unexported_h: int = Field(default=24, ge=1, le=720)
    """Hours after the end of the run for which the file system is kept if the export fails."""
    timeout_s: int = Field(default=3600, ge=300)
    """The longest time that creation, linking with S3, and deletion may take, each."""
    import_timeout_s: int = Field(default=14_400, ge=300)
    """The longest time until all objects are visible as files."""
    export_timeout_s: int = Field(default=14_400, ge=300)
    """The longest time that the export may take."""
    extra_request: Extra = {}
    """Further fields of ``CreateFileSystem``."""

    def check(self, source: Text | None = None) -> Iterator[Problem]:
        """Yield what FSx would refuse beyond single fields."""
        yield from asking.capacity(self.storage_capacity_gib)
        yield from asking.throughput(self.deployment_type, self.throughput_mbps_per_tib)
        yield from asking.metadata(self.deployment_type, self.metadata_iops, efa=self.efa)
        yield from asking.further(self.extra_request)
        yield from asking.links(self.mount_path, source, self.links)
        linked = (self.mount_path, *(link.path for link in self.links))
        yield from exporting.problems(self.export, linked)
        if self.keep_for_h is not None:
            yield from keeping.problems(self.links)
        try:
            self._create("stage", SAMPLE)
        except ValueError as error:
            yield Problem("extra_request", str(error))

    def lower(self, stage: str, source: Text, context: Context) -> Fragment:
        """Create, wait, link the S3 data, import it; the export, and the deletion."""
        system = Result(f"{stage}.create", "file_system_id")
        ready = f"{stage}.available"
        kept = self.keep_for_h is not None
        deleting = deletion(stage, system, self.timeout_s)
        saving, exported = Graph(), dict[str, Tree]()
        if self.export:
            export = self._exporting(stage, context)
            saving, exported["exported_files"] = export.steps(), export.files
        if self.export or kept:
            deleting = exporting.unless_kept(stage, deleting, shared=kept)
        return Fragment(
            steps=self._filled(stage, source, context, ready),
            guard=Guard(
                acquire=self._create(stage, context, source),
                cleanup=deleting,
                swept=kept,
                saving=saving,
            ),
            outputs={
                **outputs(system, Result(ready, "mount_name"), self.mount_path),
                **exported,
            },
        )

    def _filled(self, stage: str, source: Text, context: Context, ready: str) -> tuple[Step, ...]:
        """List the sources, wait for the file system, link them one by one, and import them."""
        system = Result(f"{stage}.create", "file_system_id")
        linkings = [
            Linking(
                stage=stage,
                context=context,
                system=system,
                link=link,
                number=number,
                timeout_s=self.timeout_s,
                import_timeout_s=self.import_timeout_s,
                kept=self.keep_for_h is not None,
            )
            for number, link in enumerate(
                (LustreLink(path=self.mount_path, uri=source), *self.links), 1
            )
        ]
        steps, before = list[Step](), tuple[str, ...]()
        keep = self._keeping(stage)
        if keep is not None:
            steps.append(taken := keep.take())
            before = (taken.name,)
        for linking in linkings:
            if linking.link.is_filled:
                steps.append(listed := linking.listing(before))
                before = (listed.name,)
        steps.append(available(ready, system, self.timeout_s, after=before))
        before = (ready,)
        for linking in linkings:
            # FSx works on one request for a file system at a time.
            steps += linking.steps(before)
            before = (linking.last,)
        if keep is not None:
            steps.append(keep.keep(before))
        return tuple(steps)

    def _keeping(self, stage: str) -> Keeping | None:
        return None if self.keep_for_h is None else Keeping(stage=stage, hours=self.keep_for_h)

    def _exporting(self, stage: str, context: Context) -> Exporting:
        return Exporting(
            stage=stage,
            context=context,
            paths=self.export,
            keep_h=self.keep_unexported_h,
            kept_h=self.keep_for_h or 0,
            timeout_s=self.export_timeout_s,
        )

    def _create(self, stage: str, context: Context, source: Text = "") -> Call:
        asked: dict[str, Tree] = {
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": LUSTRE_VERSION,
            "StorageCapacity": self.storage_capacity_gib,
            "SubnetIds": [self.subnet],
            "SecurityGroupIds": list(self.security_groups),
            "LustreConfiguration": self._configuration(),
        }
        keep = self._keeping(stage)
        if keep is None:
            # The token makes a retry find the file system. So does a rerun where results may be
            # left on it; any other acquires one anew.
            named = context.resource_name if self.export else context.attempt_name
            token, tags = named(stage), context.tag_list(stage)
        else:
            links: list[Tree] = [[link.path, link.uri] for link in self.links]
            data: Tree = [self.mount_path, source, links, self.extra_request]
            token = keeping.name(context.name_prefix(stage), asked, keep.tags(context), data)
            tags = keep.tags(context)
        request = {"ClientRequestToken": token, **asked, "Tags": tags}
        return Call(
            name=f"{stage}.create",
            operation=Operation(
                "fsx", "CreateFileSystem", ExtraRequest.merged(request, self.extra_request)
            ),
            outputs={
                "file_system_id": Output(("FileSystem", "FileSystemId"), kind="string"),
                **({"arn": _ARN} if self.export or keep is not None else {}),
            },
            retry=PERSISTENT,
        )

    def _configuration(self) -> dict[str, Any]:
        lustre: dict[str, Any] = {"DeploymentType": self.deployment_type}
        if self.throughput_mbps_per_tib is not None:
            lustre["PerUnitStorageThroughput"] = self.throughput_mbps_per_tib
        if self.compression is not None:
            lustre["DataCompressionType"] = self.compression
        if self.metadata_iops == "automatic":
            lustre["MetadataConfiguration"] = {"Mode": "AUTOMATIC"}
        elif self.metadata_iops is not None:
            iops = {"Mode": "USER_PROVISIONED", "Iops": self.metadata_iops}
            lustre["MetadataConfiguration"] = iops
        if self.efa:
            lustre["EfaEnabled"] = True
        return lustre
