"""Sending requests: which errors pass, and what botocore's errors and responses mean."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, cast

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


@dataclass(frozen=True, slots=True)
class Passing:
    """A kind of error that is likely to be gone when an equal request is sent later."""

    kind: str
    error: str
    """The name of one that does not pass, where the service's model declares none."""
    codes: frozenset[str]
    """Codes without ``Exception``, as botocore gives them. Step Functions names an error by its
    code, ``Sns.ThrottledException``, only where the service's model declares it."""
    statuses: tuple[str, ...]
    """The beginnings of the HTTP statuses that mean it."""
    words: tuple[str, ...]
    """Regular expressions for the cause, by which, and by the status in it, Step Functions tells
    the kind from refusals where its name is that of the service, ``SageMaker.SageMakerException``.
    """
    source: str


PASSING: Final = (
    Passing(
        "throttled",
        "Throttling",
        frozenset(
            {
                *("BandwidthLimitExceeded", "EC2Throttled", "LimitExceeded"),
                *("PriorRequestNotComplete", "ProvisionedThroughputExceeded"),
                *(
                    "ReplicatedWriteConflict",
                    "RequestLimitExceeded",
                    "RequestThrottled",
                    "SlowDown",
                    "Throttled",
                ),
                *("Throttling", "TooManyRequests", "TransactionInProgress"),
            }
        ),
        ("429",),
        ("Rate exceeded", "[Tt]hrottl"),
        "codes: botocore's standard retry mode, "
        "https://boto3.amazonaws.com/v1/documentation/api/latest/guide/retries.html (November "
        "2026); the service's name for them on Step Functions: "
        "https://github.com/aws/aws-step-functions-data-science-sdk-python/pull/162 (2021) and "
        "https://github.com/CloudSnorkel/cdk-github-runners/issues/946 (June 2026)",
    ),
    Passing(
        "failed service",
        "ServiceFailed",
        frozenset(
            {
                *("Internal", "InternalError", "InternalFailure", "InternalServer"),
                *("InternalServerError", "InternalService", "InternalServiceError"),
                *("Server", "Service", "ServiceFailure", "ServiceUnavailable"),
            }
        ),
        ("5",),
        (),
        "statuses from 500 on: botocore's standard retry mode; codes: the models of SageMaker "
        "Runtime, FSx, SNS, ECS, Lambda and others in botocore 1.43 (November 2026)",
    ),
    Passing(
        "no response",
        "NoResponse",
        frozenset({"RequestTimeout", "SdkClient"}),
        (),
        (),
        "SdkClientException: https://docs.aws.amazon.com/step-functions/latest/dg/"
        "supported-services-awssdk.html (November 2026)",
    ),
)
"""All that is sent again, on every backend; any other error is an answer and is sent once.

One thing differs. ``Retry`` of Step Functions sees names only, and every error that a service's
model does not declare, refusals included, has the service's own name. A call whose outcome is
looked at by its cause (whatever can be adopted or recovers, every poll of a job) is told apart as
elsewhere. The others (listings, copies, tags, jobs of S3 Batch Operations) would need two states
each for it: they are sent again :data:`UNCLEAR` instead, so a refusal of them is sent three times
within half a minute, and a throttled one may give up earlier than elsewhere.
"""
UNCLEAR: Final = Retry(attempts=3, interval_s=5.0, backoff_rate=4.0)
"""Retrying an error that may as well be a refusal."""
_STATUSES = tuple(status for row in PASSING for status in row.statuses)
_CODES = frozenset().union(*(row.codes for row in PASSING))
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
                again = early or passes(error, retry)
                seconds = next(waits if early else pauses, None) if again else None
                error.unsure = asked or (again and not early)
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
        passing=str(status).startswith(_STATUSES) or code.removesuffix("Exception") in _CODES,
        expired=code in _EXPIRED,
        status=status,
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
