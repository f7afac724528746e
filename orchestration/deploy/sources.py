"""The folders of code that a pipeline's containers run, in S3 under their own digests.

``<workspace>/source/<sha256>/sourcedir.tar.gz`` is for the training toolkit, ``…/files/`` the same
files one by one for processing jobs. These objects never change, so they are sent once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.deploy.account import in_its_region, refusal
from orchestration.deploy.parameters import read, with_defaults
from orchestration.errors import DeployError
from orchestration.execution.parameters import names_bucket
from orchestration.expressions import Json, Parameter, evaluate, walk
from orchestration.expressions.evaluate import Values

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline
    from orchestration.stages import Source

ARCHIVE = "sourcedir.tar.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFolder:
    """A folder of code (or an archive of one), and its place in S3."""

    used_by: tuple[str, ...]
    """Stages and their fields: ``train.source``."""
    directory: Path | None
    """``None`` if only the digest is known; then the code must be in S3 already."""
    runtime: bool
    """True if the runtime is added to the folder."""
    include: tuple[str, ...] = ()
    """Paths that are sent although they look like secrets or lead out of the folder."""
    dependencies: tuple[str, ...] = ()
    """Further folders and files that are packed with it."""
    sha256: str
    bucket: str
    prefix: str
    """Ends with a slash."""

    @property
    def uri(self) -> str:
        """The URI of its prefix."""
        return f"s3://{self.bucket}/{self.prefix}"

    def contents(self) -> dict[str, bytes]:
        """Return the objects to send, by key; the archive comes last, so it marks completeness."""
        from orchestration.stages.packing import archive, digest, files

        directory = self.directory
        if directory is None or not directory.exists():
            raise DeployError(
                f"{self.uri}{ARCHIVE} is missing, and so is the code of "
                f"{', '.join(self.used_by)} ({directory}); deploy once where the folder is"
            )
        how: Any = {
            "runtime": self.runtime,
            "include": self.include,
            "dependencies": self.dependencies,
        }
        if digest(directory, **how) != self.sha256:
            added = ", or the runtime that this version of orchestration adds to it,"
            raise DeployError(
                f"the code in {directory} ({', '.join(self.used_by)}){added * self.runtime} is not "
                "what the pipeline was locked with; run `orchestrate lock` to take it as it is now"
            )
        objects = {
            f"{self.prefix}files/{name}": path.read_bytes()
            for name, path in files(directory, **how)
        }
        return {**objects, f"{self.prefix}{ARCHIVE}": archive(directory, **how)}


@dataclass(frozen=True, slots=True)
class Uploaded:
    """An object that was sent to S3."""

    uri: str
    size: int
    """Bytes."""


def folders(pipeline: Pipeline, parameters: Mapping[str, Json]) -> tuple[SourceFolder, ...]:
    """List the folders of a pipeline, each once, except code that a stage names by ``uri``."""
    by_digest: dict[str, list[tuple[str, Source]]] = {}
    for stage in pipeline.every_stage:
        for name, source in stage.sources():
            if source.uri is None and source.sha256 is not None:
                by_digest.setdefault(source.sha256, []).append((f"{stage.name}.{name}", source))
    if not by_digest:
        return ()
    bucket, prefix = workspace(pipeline, parameters)
    return tuple(
        _folder(sha256, users, bucket, f"{prefix}source/{sha256}/")
        for sha256, users in by_digest.items()
    )


def _folder(
    sha256: str, users: Sequence[tuple[str, Source]], bucket: str, prefix: str
) -> SourceFolder:
    present = [source for _, source in users if source.directory or source.archive]
    source = present[-1] if present else users[-1][1]
    place = source.directory or source.archive
    return SourceFolder(
        used_by=tuple(name for name, _ in users),
        directory=None if place is None else Path(place),
        runtime=source.runtime,
        include=source.include,
        dependencies=source.dependencies,
        sha256=sha256,
        bucket=bucket,
        prefix=prefix,
    )


def workspace(pipeline: Pipeline, parameters: Mapping[str, Json]) -> tuple[str, str]:
    """Return bucket and key prefix of the workspace; the prefix is empty or ends with a slash."""
    specs = pipeline.parameter_specs()
    values = with_defaults(specs, read(specs, parameters))
    used = {node.name for node in walk(pipeline.workspace) if isinstance(node, Parameter)}
    if missing := sorted(used - values.keys()):
        raise refusal(
            "the workspace depends on missing values",
            (f"parameter {name!r} has no value" for name in missing),
        )
    uri = evaluate(pipeline.workspace, Values({}, values))
    if not isinstance(uri, str) or not names_bucket(uri):
        given = ", ".join(f"{name}={values[name]!r}" for name in sorted(used))
        raise DeployError(
            f"the workspace must be s3://bucket/prefix, got {uri!r}"
            f"{f'; change {given}' if given else ''}"
        )
    bucket, _, prefix = uri.removeprefix("s3://").rstrip("/").partition("/")
    return bucket, f"{prefix}/" if prefix else ""


def present(folder: SourceFolder, s3: Any) -> bool:
    """Return whether a folder is in S3 already."""
    from botocore.exceptions import ClientError

    key = folder.prefix + ARCHIVE
    try:
        listing = s3.list_objects_v2(Bucket=folder.bucket, Prefix=key, MaxKeys=1)
    except ClientError as error:
        raise DeployError(
            f"the workspace's bucket {folder.bucket} can't be read: {error}; create it, or give "
            "the parameter that names it another value"
        ) from error
    return any(item["Key"] == key for item in listing.get("Contents", ()))


def send(folder: SourceFolder, s3: Any) -> list[Uploaded]:
    """Put a folder into S3."""
    sent = []
    for key, content in folder.contents().items():
        s3.put_object(Bucket=folder.bucket, Key=key, Body=content)
        sent.append(Uploaded(f"s3://{folder.bucket}/{key}", len(content)))
    return sent


def upload(pipeline: Pipeline, parameters: Mapping[str, Json], s3_client: Any) -> list[Uploaded]:
    """Put the folders of code that a pipeline needs into S3, except those that are there."""
    in_its_region(pipeline, s3_client.meta.region_name)
    return [
        uploaded
        for folder in folders(pipeline, parameters)
        if not present(folder, s3_client)
        for uploaded in send(folder, s3_client)
    ]
