"""Sending requests: which errors pass, and what botocore's errors and responses mean."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

from orchestration.execution.effects import (
    Aborted,
    Note,
    Pause,
    Performance,
    Request,
    Send,
    ServiceError,
)
from orchestration.expressions import Json
from orchestration.graph import Retry

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError

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
_METADATA = "ResponseMetadata"
LONGEST_PAUSE_S = 60.0
"""The longest pause between two attempts of a call, on every backend."""
READING = ("BatchGet", "Describe", "Get", "Head", "List", "Search")
"""The beginnings of the names of operations that change nothing."""


def sent(request: Request, retry: Retry) -> Performance[Json]:
    """Send a request; equal ones again while the error is one that passes, or says too early."""
    asked, pauses = False, backoff(retry)
    waits = repeat(retry.busy_interval_s, retry.busy_attempts)
    try:
        while True:
            try:
                return cast(Json, (yield Send(request)))
            except ServiceError as error:
                early = any(p.matches(error.code, error.message) for p in retry.busy)
                if not early and not passes(error, retry):
                    raise
                seconds = next(waits if early else pauses, None)
                if seconds is None:
                    raise
                yield Note(f"{request.operation}: {error}; trying again")
            asked = asked or not early
            yield Pause(seconds, jitter=not early)
    except Aborted as error:
        raise Aborted(unsure=asked) from error


def backoff(retry: Retry) -> Iterator[float]:
    """Yield the longest pause before each further attempt, in seconds."""
    for attempt in range(retry.attempts - 1):
        yield min(retry.interval_s * retry.backoff_rate**attempt, LONGEST_PAUSE_S)


def passes(error: ServiceError, retry: Retry) -> bool:
    """Return whether an error is likely to be gone when the same request is sent again."""
    return error.passing or any(p.matches(error.code, error.message) for p in retry.errors)


def reads(operation: str) -> bool:
    """Return whether an operation changes nothing, by its name."""
    return operation.startswith(READING)


def service_error(error: ClientError | BotoCoreError) -> ServiceError:
    """Return what botocore's error means."""
    from botocore.exceptions import (
        ClientError,
        HTTPClientError,
        IncompleteReadError,
        ParamValidationError,
        ResponseStreamingError,
    )

    if not isinstance(error, ClientError):
        return ServiceError(
            type(error).__name__,
            str(error),
            passing=isinstance(
                error, HTTPClientError | IncompleteReadError | ResponseStreamingError
            ),
            lasting=isinstance(error, ParamValidationError),
        )
    details = error.response.get("Error", {})
    code, message = details.get("Code", ""), details.get("Message", "")
    status = error.response.get(_METADATA, {}).get("HTTPStatusCode", 0)
    return ServiceError(
        code,
        message,
        passing=status >= 500 or status == 429 or code in _PASSING,
        expired=code in _EXPIRED,
    )


def native(value: Any) -> Json:
    """Return a response as JSON: times in ISO 8601, bodies as text."""
    if isinstance(value, Mapping):
        return {str(key): native(item) for key, item in value.items() if key != _METADATA}
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.UTC)
        return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [native(item) for item in value]
    if hasattr(value, "read"):
        return cast(bytes, value.read()).decode(errors="replace")
    return cast(Json, value)
