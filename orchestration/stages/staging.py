"""Staging of data: S3 to S3, or onto FSx for Lustre."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.expressions import (
    All,
    Compare,
    Function,
    Item,
    Result,
    apply,
    field,
    join,
)
from orchestration.graph import Call, ForEach, Graph, Operation, Require
from orchestration.refs import Ref
from orchestration.stages.listing import MOST_OBJECTS, listing, prefix_of
from orchestration.stages.lustre import ExistingFileSystem, NewFileSystem
from orchestration.stages.lustre.exporting import within
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.training.channels import writable
from orchestration.stages.values import Model, Text, s3_problem


class S3Destination(Model):
    """A copy in S3, made and verified object by object, each at most 5 GiB, at most 500 of them.

    For more, put the data on FSx for Lustre, or give the training job's channel the source itself.
    """

    kind: Literal["s3"] = "s3"
    uri: Text | None = None
    """Prefix to copy to; by default the run's own place in the workspace. Objects there that
    are not in the source fail the verification."""
    max_concurrency: int = Field(default=8, ge=1, le=40)
    """Copies at a time."""


Destination: TypeAlias = Annotated[
    S3Destination | NewFileSystem | ExistingFileSystem, Field(discriminator="kind")
]


def _is_copy(stage: DataStaging) -> bool:
    return isinstance(stage.destination, S3Destination)


def _is_on_lustre(stage: DataStaging) -> bool:
    return not _is_copy(stage)


def _exports(stage: DataStaging) -> bool:
    return isinstance(stage.destination, NewFileSystem) and bool(stage.destination.export)


_USE_LOCATION = "its destination is S3, so use location"
_USE_FILE_SYSTEM = "its destination is a file system, so use file_system"


@dataclass(frozen=True, slots=True)
class DataStagingOutputs:
    """References to what a :class:`DataStaging` gives."""

    location: Ref[str] = output(
        exists=_is_copy, otherwise=_USE_FILE_SYSTEM, shown=True, written=True
    )
    """S3 URI of the staged data (S3 destinations)."""
    object_count: Ref[int] = output(exists=_is_copy, otherwise=_USE_FILE_SYSTEM, shown=True)
    """Objects copied (S3 destinations)."""
    total_bytes: Ref[int] = output(exists=_is_copy, otherwise=_USE_FILE_SYSTEM, shown=True)
    """Bytes copied (S3 destinations)."""
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
            case S3Destination(uri=uri):
                yield from s3_problem("destination.uri", uri)
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
                return _copied(self.name, source, self.destination, context)
            case NewFileSystem():
                return self.destination.lower(self.name, source, context)
            case ExistingFileSystem():
                return self.destination.lower(self.name)


def _copied(name: str, source: Text, destination: S3Destination, context: Context) -> Fragment:
    target = destination.uri if destination.uri is not None else context.location(name)
    objects = Result(f"{name}.list", "objects")
    staged = Result(f"{name}.verify", "objects")
    steps = (
        listing(f"{name}.list", source),
        _some(name, objects),
        _copying(name, source, target, destination.max_concurrency),
        listing(f"{name}.verify", target, after=(f"{name}.copy",)),
        _equal(name, objects, staged),
    )
    return Fragment(
        steps=steps,
        outputs={
            "location": target,
            "object_count": apply(Function.COUNT, staged),
            "total_bytes": apply(Function.SUM, staged, "Size"),
        },
    )


def _some(name: str, objects: Result) -> Require:
    countable = All(
        (
            Compare("gt", apply(Function.COUNT, objects), 0),
            Compare("eq", Result(f"{name}.list", "truncated"), False),
        )
    )
    cause = join(
        f"the source of stage {name} holds no object, or more than {MOST_OBJECTS}; objects seen: ",
        apply(Function.COUNT, objects),
    )
    return Require(name=f"{name}.usable", condition=countable, error="SourceNotUsable", cause=cause)


def _copying(name: str, source: Text, target: Text, max_concurrency: int) -> ForEach:
    key = field(Item(), "Key")
    relative = apply(Function.REMOVE_PREFIX, key, prefix_of(source))
    target_prefix = prefix_of(target)
    copy = Call(
        name=f"{name}.copy.object",
        operation=Operation(
            "s3",
            "CopyObject",
            {
                "Bucket": apply(Function.S3_BUCKET, target),
                "Key": join(target_prefix, relative),
                "CopySource": join(
                    apply(Function.S3_BUCKET, source),
                    "/",
                    apply(Function.URL_PATH, key),
                ),
            },
        ),
    )
    return ForEach(
        name=f"{name}.copy",
        items=Result(f"{name}.list", "objects"),
        body=Graph((copy,)),
        collect={"Key": key},
        max_concurrency=max_concurrency,
        after=(f"{name}.usable",),
    )


def _equal(name: str, objects: Result, staged: Result) -> Require:
    count, size = Function.COUNT, Function.SUM
    same = All(
        (
            Compare("eq", apply(count, objects), apply(count, staged)),
            Compare("eq", apply(size, objects, "Size"), apply(size, staged, "Size")),
        )
    )
    cause = join(
        "source: ",
        apply(count, objects),
        " objects, ",
        apply(size, objects, "Size"),
        " bytes; staged: ",
        apply(count, staged),
        " objects, ",
        apply(size, staged, "Size"),
        " bytes",
    )
    return Require(name=f"{name}.verified", condition=same, error="StagedDataDiffers", cause=cause)
