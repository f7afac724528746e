"""Types that several stages share."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
    field_validator,
)

from orchestration.errors import Problem
from orchestration.expressions.conditions import (
    condition_schema,
    parse_condition,
    written_condition,
)
from orchestration.graph import ErrorPattern
from orchestration.refs import STAGE_NAME, Expression, parse, written
from orchestration.stages.relative import absolute, beside_caller

# Buckets of before March 2018 have capitals and underscores; an access point is named by its ARN.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_NO_BUCKET = re.compile(r"s3://(?!arn:)[^/]*[^/A-Za-z0-9._-]")
ABSENT = (
    ErrorPattern("ResourceNotFound"),
    ErrorPattern("ValidationException", "not found"),
    ErrorPattern("ValidationException", "Could not find"),
)
"""Errors by which SageMaker says that no job has a name."""

# The validators below decide before a union is tried, member by member, with a message for each.


def _text(value: object) -> object:
    if isinstance(value, str | Expression):
        return value
    if isinstance(value, Mapping):
        return parse(value)
    quotes = "; put it in quotes" if isinstance(value, int | float) else ""
    raise ValueError(f"expected text or a reference, got {value!r}{quotes}")


def _count(value: object) -> object:
    if isinstance(value, Mapping):
        return parse(value)
    if isinstance(value, Expression) or (type(value) is int and value >= 1):
        return value
    raise ValueError(f"expected a whole number from 1 on, or a reference, got {value!r}")


def _scalar(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"is {value!r}, which JSON has no number for")
    if isinstance(value, str | int | float):
        return value
    raise ValueError(f"expected text, a number, true or false, got {value!r}")


def _value(value: object) -> object:
    if isinstance(value, Expression):
        return value
    if isinstance(value, Mapping):
        return parse(value)
    if isinstance(value, list | tuple):
        raise ValueError(f"is {value!r}; write a list as the text that the script parses")
    return _scalar(value)


Condition: TypeAlias = Annotated[
    Expression[Any],
    PlainValidator(parse_condition),
    PlainSerializer(written_condition),
    WithJsonSchema(condition_schema()),
]
"""True or false, known only during a run; a mapping such as ``{"equal": [<reference>, 1]}``."""
Text: TypeAlias = Annotated[str | Expression[Any], BeforeValidator(_text)]
"""Text, or a reference to one."""
Count: TypeAlias = Annotated[
    Annotated[int, Field(ge=1, strict=True)] | Expression[Any], BeforeValidator(_count)
]
"""A whole number from 1 on, or a reference to one."""
Name: TypeAlias = Annotated[
    str, StringConstraints(pattern=rf"^{STAGE_NAME.pattern}$", max_length=40)
]
"""Snake case: ``train``, ``train_large``."""
StageName: TypeAlias = Annotated[
    str, StringConstraints(pattern=rf"^{STAGE_NAME.pattern}$", max_length=30)
]
"""Snake case, short enough for two of them in the 80 characters of a state's name."""
Scalar: TypeAlias = Annotated[bool | int | float | str, BeforeValidator(_scalar)]
Element: TypeAlias = Scalar | dict[Name, Scalar]
"""An element of a list: a scalar, or an object of scalars."""
Value: TypeAlias = Annotated[bool | int | float | str | Expression[Any], BeforeValidator(_value)]
"""A scalar, or a reference to one."""
Seconds: TypeAlias = Annotated[int, Field(ge=1, strict=True)]
Gibibytes: TypeAlias = Annotated[int, Field(ge=1, strict=True)]


class Model(BaseModel):
    """A model that users write: frozen, without unknown keys, its documentation in the schema."""

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=False,
        strict=False,
        allow_inf_nan=False,
    )


class Vpc(Model):
    """The network a job runs in.

    For EFA the security groups need a rule to themselves, inbound and outbound; an open egress rule
    does not cover it.
    """

    subnets: tuple[Text, ...] = Field(min_length=1, max_length=16)
    """Ids of the subnets: ``subnet-0123456789abcdef0``."""
    security_groups: tuple[Text, ...] = Field(min_length=1, max_length=5)
    """Ids of the security groups: ``sg-0123456789abcdef0``."""

    def request(self) -> dict[str, Any]:
        """``VpcConfig`` of a SageMaker request."""
        return {"Subnets": list(self.subnets), "SecurityGroupIds": list(self.security_groups)}


class Source(Model):
    """A folder of code for a container, packed reproducibly, uploaded by run and deploy.

    It lies in S3 under its own digest, so what a definition names can't change under it.
    """

    entry_point: str = Field(min_length=1, max_length=256)
    """The script to start, relative to the folder: ``train.py``."""
    directory: str | None = None
    """The folder, relative to the file that describes the pipeline."""
    runtime: bool = Field(default=False, strict=True)
    """Add ``orchestration.runtime`` to the folder while packing, for scripts to import as
    ``orchestration_runtime``. Only with ``directory``."""
    include: tuple[str, ...] = ()
    """Files and links of the folder to send although they look like secrets (``.env``, ``*.pem``)
    or lead out of it: their paths in the folder. Only with ``directory``."""
    dependencies: tuple[str, ...] = ()
    """Further folders and files to pack beside the scripts, each under its own name, relative like
    ``directory``: ``shared`` for ``from shared import data``. Only with ``directory``."""
    archive: str | None = Field(default=None, pattern=r"\.(tar\.gz|tgz)$")
    """Instead of a folder: a ``.tar.gz`` of it, sent as it is; for training only."""
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """Digest of the folder (with the runtime, if it is added) or archive. Computed when a YAML file
    is loaded or ``Pipeline(…)`` called, or taken from its lock file."""
    uri: Text | None = None
    """Instead of a folder: where the code lies in S3, as a prefix that holds ``sourcedir.tar.gz``
    and ``files/``; or, for training only, as the archive itself: ``s3://bucket/code.tar.gz``."""

    @property
    def archive_only(self) -> bool:
        """Return whether there is only an archive, and no prefix with the files one by one."""
        in_s3 = isinstance(self.uri, str) and self.uri.endswith((".tar.gz", ".tgz"))
        return self.archive is not None or in_s3

    if TYPE_CHECKING:

        def __init__(
            self,
            folder: str | Path | None = None,
            /,
            *,
            entry_point: str,
            directory: str | None = None,
            runtime: bool = False,
            include: Collection[str] = (),
            dependencies: Collection[str | Path] = (),
            archive: str | None = None,
            sha256: str | None = None,
            uri: str | Expression[Any] | None = None,
        ) -> None: ...

    else:

        def __init__(self, folder=None, /, **data):
            """Describe code; a folder given by position is relative to the caller's file.

            In a notebook or at a prompt it is relative to the current folder. ``Pipeline(…)`` reads
            the folder, or the lock file that knows its digest.
            """
            if folder is not None:
                beside = [str(beside_caller(each)) for each in data.get("dependencies", ())]
                data = {**data, "directory": _directory(folder, data), "dependencies": beside}
            super().__init__(**data)

    @classmethod
    def at(
        cls,
        directory: str | Path,
        entry_point: str,
        *,
        runtime: bool = False,
        include: Collection[str] = (),
        dependencies: Collection[str | Path] = (),
    ) -> Self:
        """Describe the code in a folder as it is now, relative to the current one; unpinned."""
        from orchestration.stages.packing import absent, contents, digest

        folder = Path(directory).resolve()
        if not folder.is_dir():
            raise ValueError(f"there is no folder {directory}")
        further = [str(absolute(Path(each))) for each in dependencies]
        names = contents(folder, runtime=runtime, include=include, dependencies=further)
        if (hint := absent(entry_point, names)) is not None:
            raise ValueError(f"{directory} holds no {entry_point}{hint}")
        return cls(
            directory=str(folder),
            entry_point=entry_point,
            runtime=runtime,
            include=include,
            dependencies=further,
            sha256=digest(folder, runtime=runtime, include=include, dependencies=further),
        )


def _directory(folder: str | Path, data: Mapping[str, Any]) -> str:
    """Return the path of a folder of code; ``ValueError`` for what does not go with it."""
    if further := [name for name in ("directory", "archive", "uri", "sha256") if name in data]:
        raise ValueError(f"has a folder, {folder}, and {' and '.join(further)}; give one of them")
    return str(beside_caller(folder))


class StandIn(Model):
    """A program of this machine that runs on the embedded AWS in the place of an image's own.

    The embedded AWS runs no containers, and AWS itself never hears of it.
    """

    command: tuple[str, ...] = Field(min_length=1)
    """The program and its arguments; paths below ``/opt/ml`` are those of the job."""
    directory: str | None = None
    """The folder it is started in, relative to the file that describes the pipeline; by default the
    job's own ``/opt/ml``."""

    @field_validator("directory")
    @classmethod
    def _beside_its_file(cls, given: str | None) -> str | None:
        """Return the folder, of a call in Python relative to the file with that call."""
        return None if given is None else str(beside_caller(given))


class ExtraRequest:
    """Merging of the ``extra_request`` mapping: adds, never overrides."""

    @staticmethod
    def merged(request: dict[str, Any], extra: dict[str, Any], path: str = "") -> dict[str, Any]:
        """The request with further fields; ``ValueError`` for one that is set already."""
        result = dict(request)
        for key, value in extra.items():
            where = f"{path}.{key}" if path else key
            if key not in result:
                result[key] = value
            elif isinstance(result[key], dict) and isinstance(value, dict):
                result[key] = ExtraRequest.merged(result[key], value, where)
            else:
                raise ValueError(f"extra_request.{where} is already set by the stage's own fields")
        return result


def _with_references(value: Any) -> Any:
    if isinstance(value, Mapping):
        try:
            return parse(value)
        except ValueError:
            return {key: _with_references(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_references(item) for item in value]
    return value


def _written(value: Any) -> Any:
    if isinstance(value, Expression):
        return written(value)
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    return [_written(item) for item in value] if isinstance(value, list) else value


Extra: TypeAlias = Annotated[
    dict[str, Any], BeforeValidator(_with_references), PlainSerializer(_written)
]
"""Fields of an AWS request, as AWS names them; references may stand anywhere in it."""


def s3_problem(path: str, value: object) -> Iterator[Problem]:
    """Yield the error of a place in S3, as far as the place is known."""
    if isinstance(value, str) and not re.match(r"s3://[^/]", value):
        way = ", or a reference: {ref: staging.location}" if re.match(r"[${<]", value) else ""
        yield Problem(path, f"expected an S3 URI, got {value!r}; write s3://bucket/prefix{way}")
    elif isinstance(value, str) and _NO_BUCKET.match(value):
        yield Problem(
            path,
            f"{value!r} is taken as it is, and no bucket can be called so; write "
            "{join: ['s3://', {parameter: bucket}, /prefix]}",
        )
