"""Staging of data: S3 to S3, or onto FSx for Lustre."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, ClassVar, Literal, TypeAlias, cast

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import Run, walk
from orchestration.refs import Ref
from orchestration.stages import unchanged
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


def _is_by_manifest(stage: DataStaging) -> bool:
    destination = stage.destination
    return isinstance(destination, S3Destination) and destination.copy_by == "batch"


def _is_counted(stage: DataStaging) -> bool:
    destination = stage.destination
    if isinstance(destination, ExistingFileSystem):
        return stage.source is not None
    counting = isinstance(destination, S3Destination) and destination.copy_by != "automatic"
    return counting and stage.unless_unchanged != "skip"


def _has_fingerprint(stage: DataStaging) -> bool:
    return stage.fingerprint or stage.unless_unchanged is not None


def _may_skip(stage: DataStaging) -> bool:
    return stage.unless_unchanged == "skip"


def _is_on_lustre(stage: DataStaging) -> bool:
    return not _is_copy(stage)


def _exports(stage: DataStaging) -> bool:
    return isinstance(stage.destination, NewFileSystem) and bool(stage.destination.export)


_USE_LOCATION = "its destination is S3, so use location"
_NOT_COUNTED = (
    "only copy_by: objects, datasync and batch of a destination in S3 give it, without "
    "unless_unchanged: skip, and an existing file system with a source"
)
_USE_FILE_SYSTEM = "its destination is a file system, so use file_system"


@dataclass(frozen=True, slots=True)
class DataStagingOutputs:
    """References to what a :class:`DataStaging` gives."""

    location: Ref[str] = output(
        exists=_is_copy, otherwise=_USE_FILE_SYSTEM, shown=True, written=True
    )
    """S3 URI of the staged data (S3 destinations)."""
    object_count: Ref[int] = output(exists=_is_counted, otherwise=_NOT_COUNTED, shown=True)
    """Objects copied (S3 destinations, but for ``copy_by: automatic`` and for stages that may be
    skipped; existing file systems with a source)."""
    total_bytes: Ref[int] = output(exists=_is_counted, otherwise=_NOT_COUNTED, shown=True)
    """Bytes copied, where objects are counted."""
    fingerprint: Ref[str] = output(
        exists=_has_fingerprint, otherwise="add fingerprint: true", shown=True
    )
    """SHA-256 over size, ETag and key of every object of the source, taken before it is staged."""
    unchanged: Ref[bool] = output(
        exists=_may_skip, otherwise="it has no unless_unchanged: skip", shown=True
    )
    """True if nothing was copied, since source and destination are as the last copy left them."""
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
    """S3 URI of the data, a prefix without a slash at its end: ``s3://bucket/digits``. An
    ``existing_fsx_lustre`` that holds its data already needs none."""
    destination: Destination = S3Destination()
    """The place to stage to: ``s3``, ``fsx_lustre`` (created, and always deleted) or
    ``existing_fsx_lustre`` (mounted as it is or, with a ``source``, copied to)."""

    fingerprint: bool = False
    """Take a fingerprint of the source, an output: of at most 500,000 objects (500 with
    ``copy_by: objects``)."""
    unless_unchanged: Literal["end_run", "skip"] | None = None
    """``end_run``: the run ends at once, and well, if the last successful run of this very pipeline
    saw the same source with the same parameters; where several stages say so, if all are unchanged.
    ``skip``: nothing is copied if source and destination are as the last copy left them; for a
    destination with a ``uri``, of at most 150,000 objects."""

    outputs: ClassVar[Outputs[DataStagingOutputs]] = Outputs(DataStagingOutputs)

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        existing = isinstance(self.destination, ExistingFileSystem)
        if self.source is None and not existing:
            yield Problem("source", "is required; write s3://bucket/prefix")
        yield from s3_problem("source", self.source)
        yield from self._check_unchanged()
        match self.destination:
            case S3Destination():
                for problem in self.destination.check():
                    yield problem.within("destination")
            case NewFileSystem():
                for problem in self.destination.check(self.source):
                    yield problem.within("destination")
            case ExistingFileSystem():
                for problem in self.destination.check(self.source, context.region):
                    yield problem.within("destination")

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

    def _check_unchanged(self) -> Iterator[Problem]:
        field = "fingerprint" if self.unless_unchanged is None else "unless_unchanged"
        attached = isinstance(self.destination, ExistingFileSystem) and self.source is None
        if attached and _has_fingerprint(self):
            yield Problem(field, "a file system without a source is attached as it is; remove this")
        elif _is_by_manifest(self) and _has_fingerprint(self):
            yield Problem(
                field,
                "copy_by: batch copies what its manifest lists, not all of source; remove this",
            )
        elif self.unless_unchanged == "skip":
            target = self.destination.uri if isinstance(self.destination, S3Destination) else None
            if target is None or any(isinstance(node, Run) for node in walk(target)):
                yield Problem(
                    "unless_unchanged",
                    "skip needs a copy that outlives the run: a destination {kind: s3, uri: "
                    "s3://bucket/prefix}; or end the run instead (end_run)",
                )
        elif self.unless_unchanged == "end_run":
            for node in walk(self.source):
                if isinstance(node, Ref):
                    yield Problem(
                        "unless_unchanged",
                        f"end_run looks at the source before any stage runs, and {node.stage} has "
                        "to run first; say skip, or give source as text or a parameter",
                    )

    @override
    def lower(self, context: Context) -> Fragment:
        source = self.source if self.source is not None else ""
        fragment, uri = self._staged(source, context), unchanged.record_uri(context, self.name)
        listed = unchanged.Source(stage=self.name, uri=source, most=self._most_pages)
        if self.unless_unchanged == "skip" and isinstance(self.destination, S3Destination):
            written = self.model_dump_json(include={"source", "destination"})
            record = unchanged.Record(uri=uri, digest=sha256(written.encode()).hexdigest())
            return unchanged.skipping(listed, cast(Text, self.destination.uri), fragment, record)
        if self.unless_unchanged == "end_run":
            return unchanged.ending(listed, fragment, uri)
        return unchanged.told(listed, fragment) if self.fingerprint else fragment

    @property
    def _most_pages(self) -> int:
        """The pages of the listing that a fingerprint is taken of, at the most."""
        if isinstance(self.destination, S3Destination) and self.destination.copy_by == "objects":
            return 1
        three = self.unless_unchanged == "skip"
        return unchanged.MOST_PAGES_OF_THREE if three else unchanged.MOST_PAGES

    def _staged(self, source: Text, context: Context) -> Fragment:
        match self.destination:
            case S3Destination():
                return self.destination.lower(self.name, source, context)
            case NewFileSystem():
                return self.destination.lower(self.name, source, context)
            case ExistingFileSystem():
                return self.destination.lower(self.name, self.source, context)
