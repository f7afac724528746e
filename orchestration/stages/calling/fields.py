"""The fields of a call: its requests, the errors that answer it, and its permissions."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field

from orchestration.expressions import Function, apply, join
from orchestration.stages.values import Extra, Model, Name, Seconds, Text


class Request(Model):
    """One request to the stage's service."""

    operation: str
    """``GetJobRun``."""
    request: Extra = {}
    """Its fields, as AWS names them; ``{ref: <this stage>.<output>}`` is an output of the call.
    What it needs and you leave out is taken from the call's request or response, if that has a
    field of the same name."""


class Answer(Model):
    """An error that answers a request."""

    code: str
    """``ResourceInUse``, as botocore gives it; it may end in ``Exception`` or not."""
    message: str = ""
    """A text that the error's message holds."""


def _named(value: object) -> object:
    return {"operation": value} if isinstance(value, str) else value


class Poll(Request):
    """The way to wait for what the call started: a question, asked until its status is final."""

    status: str
    """The place of the status in the response: ``JobRun.JobRunState``."""
    success: tuple[str, ...] = Field(min_length=1)
    """Statuses that end the stage well. Any status in neither list is waited on."""
    failure: tuple[str, ...] = ()
    """Statuses that fail it."""
    reason: str | None = None
    """The place of a failure's reason: ``JobRun.ErrorMessage``."""
    outputs: dict[Name, str] = {}
    """Further outputs of the stage, by their places in the last response."""
    gone: Answer | None = None
    """The error of the question that ends the stage well: what was deleted no longer exists."""
    stop: Annotated[
        Request | None, BeforeValidator(_named, json_schema_input_type=str | Request | None)
    ] = None
    """The request that stops it when the run is aborted or out of time; its operation alone, if the
    rest is the call's."""
    interval_s: Seconds = 30
    """Seconds between two questions."""
    timeout_s: Seconds = 86_400
    """Seconds after which the stage fails as ``TimedOut``."""


class Needs(Model):
    """Permissions that the call needs beside its operations: what it does in its caller's name."""

    actions: tuple[str, ...] = Field(min_length=1)
    """``s3:PutObject``."""
    resources: tuple[Text, ...] = Field(min_length=1)
    """ARNs, with ``*`` for any text; ``{partition}``, ``{region}`` and ``{account}`` stand for
    those of the deployment."""

    @classmethod
    def of_files(cls, place: Text) -> Self:
        """Return the needs of a service that reads and writes S3 in the caller's name."""
        bucket = join("arn:{partition}:s3:::", apply(Function.S3_BUCKET, place))
        actions = ("GetBucketLocation", "GetObject", "ListBucket", "PutObject")
        return cls(
            actions=tuple(f"s3:{a}" for a in actions), resources=(bucket, join(bucket, "/*"))
        )
