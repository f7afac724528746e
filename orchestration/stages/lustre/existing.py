"""A file system of somebody else's: mounted as it is, or with data copied onto it before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, Literal

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import Result
from orchestration.graph import Output
from orchestration.stages.lustre.filling import Filling
from orchestration.stages.lustre.waiting import available, outputs
from orchestration.stages.stage import Context, Fragment
from orchestration.stages.values import Model, Text

_FOR_COPIES: Final = "is for copying a source onto the file system; give a source, or remove it"


class ExistingFileSystem(Model):
    """A file system that someone else keeps; it is mounted, and never deleted.

    With a ``source``, DataSync copies that onto it first: any number of objects of any size.
    """

    kind: Literal["existing_fsx_lustre"] = "existing_fsx_lustre"
    file_system_id: Text
    """Id of the FSx for Lustre file system: ``fs-0123456789abcdef0``."""
    mount_path: str = Field(default="/", pattern=r"^/[A-Za-z0-9._/-]*$", max_length=200)
    """The directory of the file system in which the data lies, or to which it is copied."""
    security_groups: tuple[Text, ...] = Field(default=(), max_length=5)
    """Security groups in the file system's network by which DataSync reaches it, ``sg-0123abcd``;
    needed with a ``source``."""
    datasync_role: Text | None = None
    """ARN of the role in this account by which DataSync reads the ``source``; it trusts
    ``datasync.amazonaws.com``. By default the pipeline's role. ``orchestrate deploy`` makes the one
    that is named ``<pipeline>-<region>-datasync``."""
    source_kms_key: Text | None = None
    """KMS key that the ``source`` is encrypted with: ``orchestrate deploy`` lets the role that it
    makes for DataSync decrypt by it."""
    timeout_s: int = Field(default=600, ge=60)
    """The longest time until the file system is available."""
    copy_timeout_s: int = Field(default=86_400, ge=300)
    """The longest time that DataSync may take."""

    def check(self, source: Text | None, region: str | None) -> Iterator[Problem]:
        """Yield what DataSync would not take, and what a mere mount has no use for."""
        if source is None:
            if self.security_groups:
                yield Problem("security_groups", _FOR_COPIES)
            for name in ("datasync_role", "source_kms_key"):
                if getattr(self, name) is not None:
                    yield Problem(name, _FOR_COPIES)
            return
        if not self.security_groups:
            message = "DataSync reaches the file system by them; write [sg-0123abcd]"
            yield Problem("security_groups", message)
        if region is None:
            message = "DataSync asks for their ARNs, which name the region; give the pipeline's"
            yield Problem("security_groups", message)
        for number, group in enumerate(self.security_groups):
            if isinstance(group, str) and not group.startswith("sg-"):
                message = f"expected the id of a security group, sg-0123abcd, got {group!r}"
                yield Problem(f"security_groups[{number}]", message)
        if "//" in self.mount_path or ".." in PurePosixPath(self.mount_path).parts:
            message = f"{self.mount_path!r} is no directory that DataSync copies to; write /data"
            yield Problem("mount_path", message)

    def lower(self, stage: str, source: Text | None, context: Context) -> Fragment:
        """Wait until it is available, learn its mount name, and copy the source onto it."""
        name = f"{stage}.available"
        attached = outputs(self.file_system_id, Result(name, "mount_name"), self.mount_path)
        if source is None:
            ready = available(name, self.file_system_id, self.timeout_s)
            return Fragment(steps=(ready,), outputs=attached)
        further = {
            "arn": Output(("FileSystems", 0, "ResourceARN"), kind="string"),
            "owner": Output(("FileSystems", 0, "OwnerId"), kind="string"),
        }
        filling = Filling(
            stage=stage,
            context=context,
            source=source,
            source_kms_key=self.source_kms_key,
            role=context.role if self.datasync_role is None else self.datasync_role,
            available=available(name, self.file_system_id, self.timeout_s, outputs=further),
            path=self.mount_path,
            security_groups=self.security_groups,
            timeout_s=self.copy_timeout_s,
        )
        return Fragment(steps=filling.steps(), outputs={**attached, **filling.outputs()})
