"""Staging of data: S3 to S3, or onto FSx for Lustre."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.refs import Ref
from orchestration.stages.copying import S3Destination
from orchestration.stages.lustre import ExistingFileSystem, NewFileSystem
from orchestration.stages.lustre.exporting import within
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.training.channels import writable
from orchestration.stages.values import Text, s3_problem

Destination: TypeAlias = Annotated[
    S3Destination | NewFileSystem | ExistingFileSystem, Field(discriminator="kind")
]


def _is_copy(stage: DataStaging) -> bool:
    return isinstance(stage.destination, S3Destination)


def _is_counted(stage: DataStaging) -> bool:
    destination = stage.destination
    return isinstance(destination, S3Destination) and destination.copy_by != "automatic"


def _is_on_lustre(stage: DataStaging) -> bool:
    return not _is_copy(stage)


def _exports(stage: DataStaging) -> bool:
    return isinstance(stage.destination, NewFileSystem) and bool(stage.destination.export)


_USE_LOCATION = "its destination is S3, so use location"
_NOT_COUNTED = "only copy_by: objects and copy_by: datasync of a destination in S3 give it"
_USE_FILE_SYSTEM = "its destination is a file system, so use file_system"


@dataclass(frozen=True, slots=True)
class DataStagingOutputs:
    """References to what a :class:`DataStaging` gives."""

    location: Ref[str] = output(
        exists=_is_copy, otherwise=_USE_FILE_SYSTEM, shown=True, written=True
    )
    """S3 URI of the staged data (S3 destinations)."""
    object_count: Ref[int] = output(exists=_is_counted, otherwise=_NOT_COUNTED, shown=True)
    """Objects copied (S3 destinations, but for ``copy_by: automatic``)."""
    total_bytes: Ref[int] = output(exists=_is_counted, otherwise=_NOT_COUNTED, shown=True)
    """Bytes copied (S3 destinations, but for ``copy_by: automatic``)."""
    file_system: Ref[dict[str, str]] = output(exists=_is_on_lustre, otherwise=_USE_LOCATION)
    """The file system, for a channel of a :class:`TrainingJob` (Lustre destinations)."""
    file_system_root: Ref[dict[str, str]] = output(exists=_is_on_lustre, otherwise=_USE_LOCATION)
    """The same with all its directories, for a channel of a further link: ``path: /vocabulary``."""
    file_system_id: Ref[str] = output(
        exists=_is_on_lustre,
        otherwise=_USE_LOCATION,
        # One that was made for the run is deleted by its end.
        shown=lambda stage: isinstance(stage.destination, ExistingFileSystem),
    )
    """``fs-0123456789abcdef0`` (Lustre destinations)."""

    exported_files: Ref[int] = output(
        exists=_exports,
        otherwise="its destination exports nothing; give it export",
        shown=True,
        unreadable="it is known after the last reader of the file system only",
    )
    """Files written back to S3 (new Lustre file systems with ``export``)."""


class DataStaging(Stage):
    """Brings data to where training reads it, and verifies that all of it came."""

    kind: Literal["data_staging"] = "data_staging"
    source: Text | None = None
    """S3 URI of the data, a prefix without a slash at its end: ``s3://bucket/digits``. Not for
    ``existing_fsx_lustre``, which holds its data already."""
    destination: Destination = S3Destination()
    """The place to stage to: ``s3``, ``fsx_lustre`` (created, and always deleted) or
    ``existing_fsx_lustre``."""

    outputs: ClassVar[Outputs[DataStagingOutputs]] = Outputs(DataStagingOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        existing = isinstance(self.destination, ExistingFileSystem)
        if self.source is None and not existing:
            yield Problem("source", "is required; write s3://bucket/prefix")
        if self.source is not None and existing:
            yield Problem(
                "source",
                "an existing file system is attached as it is; leave source out, or stage "
                "onto a new one (kind: fsx_lustre)",
            )
        yield from s3_problem("source", self.source)
        match self.destination:
            case S3Destination():
                for problem in self.destination.check():
                    yield problem.within("destination")
            case NewFileSystem():
                for problem in self.destination.check(self.source):
                    yield problem.within("destination")
            case ExistingFileSystem():
                pass

    @override
    def check_readers(self, readers: Sequence[Stage]) -> Iterator[Problem]:
        system = self.destination
        if not isinstance(system, NewFileSystem):
            return
        written = [
            directory
            for reader in readers
            for directory in writable(reader, self.name, system.mount_path)
        ]
        for number, path in enumerate(system.export):
            if not any(within(path, other) or within(other, path) for other in written):
                message = (
                    f"no job can write to {path}: no channel with access: rw mounts it; add one, "
                    f"for example {{kind: fsx_lustre, file_system: {{ref: "
                    f"{self.name}.file_system_root}}, path: {path}, access: rw}}"
                )
                yield Problem(f"destination.export[{number}]", message)

    @override
    def lower(self, context: Context) -> Fragment:
        source = self.source if self.source is not None else ""
        match self.destination:
            case S3Destination():
                return self.destination.lower(self.name, source, context)
            case NewFileSystem():
                return self.destination.lower(self.name, source, context)
            case ExistingFileSystem():
                return self.destination.lower(self.name)
