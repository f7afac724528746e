"""Clients of AWS: their region, and how each sends a request once and as its step says it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestration.execution import wording
from orchestration.execution.effects import Request

if TYPE_CHECKING:
    from botocore.config import Config


def one_attempt(**options: Any) -> Config:
    """Return a configuration under which botocore does not retry.

    Steps have rules of their own for that; botocore's on top would multiply the attempts.
    """
    from botocore.config import Config

    return Config(retries={"mode": "standard", "total_max_attempts": 1}, **options)


def patience(service: str) -> dict[str, Any]:
    """Return the options of a service whose responses may take long: a function runs 15 minutes.

    A client that gives up sends the request again, and the function would run twice.
    https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
    """
    return {"read_timeout": 910, "tcp_keepalive": True} if service == "lambda" else {}


def keep_copy_source(client: Any) -> None:
    """Make a client send ``CopySource`` as it is given.

    A step says what S3 wants in the header, encoded; botocore would encode it once more.
    """
    from botocore.handlers import handle_copy_source_param

    event = "before-parameter-build.s3.CopyObject"
    client.meta.events.unregister(event, handle_copy_source_param)


def send(client: Any, request: Request) -> Any:
    """Send a request with a client; returns the response, or what an async client awaits.

    Where the API takes bytes, a request holds text, or the JSON of any other value: Step Functions
    sends the same for all but text.
    """
    from botocore import xform_name

    shape = client.meta.service_model.operation_model(request.operation).input_shape
    parameters = {} if shape is None else _encoded(request.parameters, shape)
    return getattr(client, xform_name(request.operation))(**parameters)


def _encoded(value: Any, shape: Any) -> Any:
    kind = shape.type_name
    if kind == "structure" and isinstance(value, Mapping):
        members = shape.members
        return {
            key: _encoded(item, members[key]) if key in members else item
            for key, item in value.items()
        }
    if kind == "map" and isinstance(value, Mapping):
        return {key: _encoded(item, shape.value) for key, item in value.items()}
    if kind == "list" and isinstance(value, list):
        return [_encoded(item, shape.member) for item in value]
    if kind == "blob" and not isinstance(value, str | bytes):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return value


def mismatch(pipeline: str, region: str | None, *, place: str, other: str | None) -> str | None:
    """Return why a pipeline can't run in a place of another region; ``None`` where it can.

    A pipeline without a region runs wherever it is started, and a place may leave the region open.

    >>> mismatch("digits", "us-west-2", place="the session", other="us-east-1")
    'pipeline digits runs in us-west-2, and the session is for us-east-1; use one for us-west-2, \
or change the region of the pipeline'
    """
    if region is None or other is None or region == other:
        return None
    return wording.filled(
        wording.OTHER_REGION, pipeline=pipeline, region=region, place=place, other=other
    )
