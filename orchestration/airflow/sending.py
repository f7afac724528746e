"""Sending requests: what is retried, what an error means, what a response holds."""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from botocore import xform_name
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    ResponseStreamingError,
)

from orchestration.airflow.timing import backoff
from orchestration.execution.clients import keep_copy_source, one_attempt
from orchestration.expressions import Json
from orchestration.graph import Retry

if TYPE_CHECKING:
    from airflow.providers.amazon.aws.hooks.base_aws import AwsGenericHook

# Codes with a status below 500 that pass, from botocore's standard retry mode:
# https://boto3.amazonaws.com/v1/documentation/api/latest/guide/retries.html
_PASSING = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request with all its values."""

    service: str
    operation: str
    parameters: Mapping[str, Json]

    def to_json(self) -> dict[str, Json]:
        """As the argument of a trigger."""
        return {
            "service": self.service,
            "operation": self.operation,
            "parameters": self.parameters,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Request:
        """The request that ``to_json`` wrote down."""
        return cls(document["service"], document["operation"], document["parameters"])


def client(hook: AwsGenericHook[Any], *, asynchronous: bool = False) -> Any:
    """A hook's client, with the settings of its connection, that does not retry by itself."""
    config = hook.config.merge(one_attempt())
    connection = hook.get_client_type(hook.region_name, config, deferrable=asynchronous)
    if not asynchronous:
        keep_copy_source(connection)
    return connection


def send(connection: Any, request: Request, retry: Retry) -> Json:
    """Send a request; equal ones again while the error is one that passes."""
    for seconds in backoff(retry):
        try:
            return _native(_method(connection, request)(**request.parameters))
        except (ClientError, BotoCoreError) as error:
            if not passes(error, retry):
                raise
        time.sleep(seconds)
    return _native(_method(connection, request)(**request.parameters))


async def send_async(connection: Any, request: Request, retry: Retry) -> Json:
    """Send a request without blocking; equal ones again while the error is one that passes."""
    for seconds in backoff(retry):
        try:
            return _native(await _method(connection, request)(**request.parameters))
        except (ClientError, BotoCoreError) as error:
            if not passes(error, retry):
                raise
        await asyncio.sleep(seconds)
    return _native(await _method(connection, request)(**request.parameters))


def passes(error: ClientError | BotoCoreError, retry: Retry) -> bool:
    """Whether an error is likely to be gone when the same request is sent again."""
    if not isinstance(error, ClientError):
        return isinstance(error, HTTPClientError | IncompleteReadError | ResponseStreamingError)
    code, message = told(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return (
        status >= 500
        or status == 429
        or code in _PASSING
        or any(pattern.matches(code, message) for pattern in retry.errors)
    )


def expired(error: ClientError | BotoCoreError) -> bool:
    """Whether the credentials that signed the request are no longer valid."""
    return told(error)[0] in _EXPIRED


def told(error: ClientError | BotoCoreError) -> tuple[str, str]:
    """The code and the message of an error."""
    if isinstance(error, ClientError):
        details = error.response.get("Error", {})
        return details.get("Code", ""), details.get("Message", "")
    return type(error).__name__, str(error)


def _method(connection: Any, request: Request) -> Any:
    return getattr(connection, xform_name(request.operation))


def _native(value: Any) -> Json:
    """A response as JSON: times in ISO 8601, bodies as text."""
    if isinstance(value, Mapping):
        return {str(key): _native(item) for key, item in value.items() if key != _METADATA}
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.UTC)
        return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bytes | bytearray):
        return value.decode()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_native(item) for item in value]
    if hasattr(value, "read"):
        return cast(bytes, value.read()).decode()
    return cast(Json, value)


_METADATA = "ResponseMetadata"
