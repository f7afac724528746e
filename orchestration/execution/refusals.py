"""The names that refusals of AWS have in a run, on every backend.

An error that the service's model declares has its name there, without ``Exception``:
``NoSuchBucket``, ``ResourceLimitExceeded``. Of any other one Step Functions keeps the message and
the HTTP status only, ``message (Service: S3, Status Code: 404, Request ID: …)``: its name is that
of the first row of :data:`REFUSALS` whose words are in that text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from orchestration.execution.effects import ServiceError
from orchestration.execution.sending import PASSING

SDK_CLIENT: Final = "SdkClient"
"""The name that Step Functions has for a request without a response."""
SILENT: Final = next(row for row in PASSING if SDK_CLIENT in row.codes)
"""The kind of error that such a request is."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kind of refusal that services' models do not declare."""

    error: str
    codes: frozenset[str]
    """Codes without ``Exception``, which Step Functions does not tell."""
    words: tuple[str, ...]
    """Regular expressions for the message with the service and the status behind it."""


REFUSALS: Final = (
    Refusal(
        "AccessDenied",
        frozenset({"AccessDenied"}),
        ("not authorized to perform", "Status Code: 403"),
    ),
    *(
        Refusal(row.error, row.codes, (*row.words, *(f"Status Code: {s}" for s in row.statuses)))
        for row in PASSING
        if row.statuses
    ),
    # What asks for an object's head gets no body, and so no code.
    Refusal("NoSuchKey", frozenset(), ("Service: S3, Status Code: 404",)),
    Refusal("NotFound", frozenset(), ("Status Code: 404",)),
    # What AWS, or botocore before it was sent, found not valid.
    Refusal("RequestRefused", frozenset(), ("",)),
)


def error_name(service: str, error: ServiceError) -> str:
    """Return the name of a refusal in a run.

    >>> error_name("s3", ServiceError("NoSuchBucket", "The specified bucket does not exist"))
    'NoSuchBucket'
    >>> error_name("sns", ServiceError("NotFound", "Topic does not exist"))
    'NotFound'
    >>> error_name("sagemaker", ServiceError("ValidationException", "Could not find model"))
    'RequestRefused'
    """
    if not error.lasting:
        return SILENT.error if error.passing else error.code
    code = error.code.removesuffix("Exception")
    if code in _declared(service):
        return _declared(service)[code]
    text = f"{error.message} (Service: {service.upper()}, Status Code: {error.status}"
    return next(
        row.error
        for row in REFUSALS
        if code in row.codes or any(re.search(words, text) for words in row.words)
    )


@cache
def _declared(service: str) -> Mapping[str, str]:
    """Return the names of the errors of a service's model, by their codes and by themselves."""
    # A DAG file is parsed all the time, and refuses nothing.
    from orchestration.checks.shapes import service_model

    model = service_model(service)
    known: dict[str, str] = {}
    for shape in () if model is None else model.errors:
        name = shape.name.removesuffix("Exception").removesuffix("Fault")
        code = str(shape.metadata.get("error", {}).get("code", shape.name))
        known |= {code.removesuffix("Exception"): name, shape.name.removesuffix("Exception"): name}
    return MappingProxyType(known)
