"""A file system of somebody else's."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orchestration.expressions import Result
from orchestration.stages.lustre.waiting import available, outputs
from orchestration.stages.stage import Fragment
from orchestration.stages.values import Model, Text


class ExistingFileSystem(Model):
    """A file system that someone else keeps; it is mounted and left as it is."""

    kind: Literal["existing_fsx_lustre"] = "existing_fsx_lustre"
    file_system_id: Text
    mount_path: str = Field(default="/", pattern=r"^/[A-Za-z0-9._/-]*$", max_length=200)
    """The directory of the file system in which the data lies."""
    timeout_s: int = Field(default=600, ge=60)

    def lower(self, stage: str) -> Fragment:
        """Wait until it is available, and learn its mount name."""
        name = f"{stage}.available"
        return Fragment(
            steps=(available(name, self.file_system_id, self.timeout_s),),
            outputs=outputs(self.file_system_id, Result(name, "mount_name"), self.mount_path),
        )
