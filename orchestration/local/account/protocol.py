"""The wire formats of simulated services: AWS JSON 1.1, and errors in every format."""

from __future__ import annotations

import datetime
import functools
import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from orchestration.errors import Problem

ACCOUNT_ID = "123456789012"
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_MOST_SHOWN = 200
"""Characters of a value in an error's message; a definition has up to a million."""
_IN_XML = ("query", "ec2", "rest-xml")
"""The protocols whose errors are XML."""

JsonObject = dict[str, Any]
Operation = Callable[[JsonObject], JsonObject]


class ServiceError(Exception):
    """An error response of a simulated service."""

    def __init__(self, code: str, message: str, *, status: int = 400, **members: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.members = members


@dataclass(frozen=True)
class Request:
    """A decoded AWS API call."""

    service: str
    operation: str
    parameters: dict[str, Any]
    region: str
    account: str = ACCOUNT_ID
    """The account of whoever calls."""
    access_key: str = ""
    """The access key that signed it."""


@dataclass(frozen=True)
class Answer:
    """A complete HTTP response."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    error_code: str | None = None


def now() -> datetime.datetime:
    """Return the current time in UTC."""
    return datetime.datetime.now(tz=datetime.UTC)


def json_answer(result: Mapping[str, Any], *, status: int = 200) -> Answer:
    """Encode a result as AWS JSON 1.1; times become epoch seconds."""
    body = json.dumps(result, default=_wire).encode()
    return Answer(status, body, _headers("application/x-amz-json-1.1"))


def xml_answer(service: str, operation: str, result: Mapping[str, Any]) -> Answer:
    """Encode a result as XML, as the service's model says."""
    from orchestration.local.account import documents

    return Answer(200, documents.encoded(service, operation, result), _headers("text/xml"))


def error_answer(service: str, error: ServiceError) -> Answer:
    """Encode an error in the format of the service."""
    if answers_in_xml(service):
        return _xml_error(service, error)
    body = json.dumps(
        {
            "__type": error.code,
            "Message": error.message,
            "message": error.message,
            **error.members,
        },
        default=_wire,
    ).encode()
    headers = (*_headers("application/x-amz-json-1.1"), ("x-amzn-ErrorType", error.code))
    return Answer(error.status, body, headers, error.code)


def not_simulated(request: Request) -> ServiceError:
    """Return the error for an operation that is not simulated."""
    return ServiceError(
        "NotSimulated",
        f"the embedded AWS does not simulate {request.service}:{request.operation}",
        status=400,
    )


@functools.cache
def answers_in_xml(service: str) -> bool:
    """Return whether the installed botocore takes a service's errors as XML; some send either."""
    from orchestration.local.account import documents

    model = documents.model(service)
    return model is not None and model.resolved_protocol in _IN_XML


def _xml_error(service: str, error: ServiceError) -> Answer:
    inner = f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
    request_id = f"<RequestId>{uuid.uuid4()}</RequestId>"
    if service == "s3":
        text = f"<Error>{inner}{request_id}</Error>"
    else:
        text = f"<ErrorResponse><Error><Type>Sender</Type>{inner}</Error>{request_id}"
        text += "</ErrorResponse>"
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()
    return Answer(error.status, body, _headers("text/xml"), error.code)


def _headers(content_type: str) -> tuple[tuple[str, str], ...]:
    return (("Content-Type", content_type), ("x-amzn-RequestId", str(uuid.uuid4())))


def _wire(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.timestamp()
    raise TypeError(f"{type(value).__name__} cannot be encoded as JSON")


class Service:
    """A simulated service: operations by name, requests checked against botocore's model."""

    name = ""
    malformed = "BadRequest"
    """The error of a request that does not have the form of the service's model."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self.operations = dict(operations)

    def handles(self, request: Request) -> bool:
        """Return whether this service simulates a call; moto answers the others."""
        return True

    def check(self, request: Request) -> None:
        """Raise `ServiceError` for a call that moto would accept and the service refuses."""

    def respond(self, request: Request) -> Answer:
        """Answer one call of whoever calls."""
        return self.answer(request.operation, request.parameters)

    def answer(self, operation: str, request: JsonObject) -> Answer:
        """Answer one call."""
        try:
            self._check_shape(operation, request)
            return self.encoded(operation, self.operations[operation](request))
        except ServiceError as error:
            return error_answer(self.name, error)

    def encoded(self, operation: str, response: JsonObject) -> Answer:
        """Encode a response in the format of the service."""
        return json_answer(response)

    def _check_shape(self, operation: str, request: JsonObject) -> None:
        problems = violations(self.name, operation, request)
        if problems:
            word = "validation error" if len(problems) == 1 else "validation errors"
            raise ServiceError(
                self.malformed,
                f"{len(problems)} {word} detected: {'; '.join(problems)}",
            )


class Checked(Service):
    """A service that moto answers, for requests of the form that botocore's model says.

    moto 5.2.5 leaves most lengths and patterns of the models out.
    """

    def __init__(self, name: str = "", malformed: str = "ValidationException") -> None:
        super().__init__({})
        self.name, self.malformed = name or self.name, malformed

    def handles(self, request: Request) -> bool:
        """Return False: moto answers every call."""
        return False

    def check(self, request: Request) -> None:
        """Raise the service's error for a request that moto would accept."""
        from orchestration.checks.requests import has_types

        if has_types(self.name, request.operation, request.parameters):
            self.check_values(request)
        self._check_shape(request.operation, request.parameters)

    def check_values(self, request: Request) -> None:
        """Raise the service's error for what the model's rules would refuse with another."""


def violations(service: str, operation: str, request: JsonObject) -> list[str]:
    """Return what botocore's model of the service finds wrong with a request."""
    from orchestration.checks import requests

    problems = requests.violations(service, operation, request)
    return [_worded(problem, request) for problem in problems]


def _worded(problem: Problem, request: JsonObject) -> str:
    """Return a problem in AWS's form, which has the value that is wrong.

    `Value 'x' at 'targets.1.member.id' failed to satisfy constraint: Member must have length …`:
    https://github.com/serverless/examples/issues/405, and LocalStack's recordings of EventBridge
    """
    if not problem.rule:
        return str(problem)
    value: Any = request
    place = ""
    for number, name in _STEP.findall(problem.field):
        if number:
            place, value = f"{place}.{int(number) + 1}.member", value[int(number)]
        elif isinstance(value, Mapping):
            place, value = f"{place}.{name[0].lower()}{name[1:]}", value.get(name)
        else:
            return str(problem)  # A key of a map has dots in it.
    shown = "null" if value is None else f"'{_cut(str(value))}'"
    rule = f"failed to satisfy constraint: Member must {problem.rule}"
    return f"Value {shown} at '{place.removeprefix('.')}' {rule}"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
