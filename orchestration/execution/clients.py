"""Clients of AWS: their region and roles, and how each sends a request once, as the step says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from orchestration.catalog.partitions import partition_of
from orchestration.execution import wording
from orchestration.execution.effects import Request

if TYPE_CHECKING:
    from botocore.config import Config


_SESSION: Final = "orchestration"
"""The name of the sessions of roles: CloudTrail of the role's account shows it."""
_METHOD: Final = "assume-role"


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


def refresher(sts: Any, role: str) -> Callable[[], Mapping[str, str]]:
    """Return botocore's function that assumes a role, for credentials that renew themselves."""
    from botocore.credentials import create_assume_role_refresher

    made = create_assume_role_refresher(sts, {"RoleArn": role, "RoleSessionName": _SESSION})
    return cast("Callable[[], Mapping[str, str]]", made)


def assumed(sts: Any, role: str) -> Any:
    """Return credentials of a role, which is assumed when a request is first signed with them.

    They are renewed before they expire, so that a wait may last longer than they do.
    """
    from botocore.credentials import DeferredRefreshableCredentials

    return DeferredRefreshableCredentials(refresher(sts, role), method=_METHOD)


def sign_with(client: Any, credentials: Any) -> None:
    """Make a client sign its requests with other credentials than its session's."""

    def before_sign(request: Any, **_: object) -> None:
        signing = request.context.get("signing") or {}
        request.context["signing"] = {**signing, "request_credentials": credentials}

    client.meta.events.register("before-sign", before_sign)


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

    A pipeline without a region runs wherever ARNs begin with ``arn:aws:``, as those that it sends
    do, and a place may leave the region open.

    >>> mismatch("digits", "us-west-2", place="the session", other="us-east-1")
    'pipeline digits runs in us-west-2, and the session is for us-east-1; use one for us-west-2, \
or change the region of the pipeline'
    """
    if other is None or region == other:
        return None
    if region is None:
        partition = partition_of(other)
        if partition == partition_of(None):
            return None
        return wording.filled(
            wording.NO_REGION, pipeline=pipeline, place=place, other=other, partition=partition
        )
    return wording.filled(
        wording.OTHER_REGION, pipeline=pipeline, region=region, place=place, other=other
    )
