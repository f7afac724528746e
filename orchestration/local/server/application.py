"""The application of the embedded AWS: recorder, faults, simulated services, and moto."""

from __future__ import annotations

import io
import traceback
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from orchestration.local.account import protocol
from orchestration.local.account.protocol import Answer, Request, ServiceError
from orchestration.local.account.recorder import error_code
from orchestration.local.iam.enforcing import Enforcement
from orchestration.local.server import control
from orchestration.local.server.decoding import decode
from orchestration.local.server.simulation import Simulation

StartResponse = Callable[..., Any]
Wsgi = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class Application:
    """The WSGI application: one account in front of moto."""

    def __init__(
        self,
        simulation: Simulation,
        moto: Wsgi,
        load_engine: Callable[[], None],
        load_rules: Callable[[], None],
        enforcement: Enforcement | None = None,
    ) -> None:
        self._enforcement = enforcement
        self._simulation = simulation
        self._account = simulation.account
        self._moto = moto
        self._load_engine = load_engine
        self._load_rules = load_rules

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        body = _read_body(environ)
        path = environ["PATH_INFO"]
        if path.startswith(control.PREFIX):
            if path.endswith(("/state", "/events")):
                self._load_engine()
            return _send(self._controlled(path, body), start_response)
        sequence = self._account.recorder.arrive()
        request = decode(environ, body)
        if request is None:
            return self._moto(environ, start_response)
        answer = self._answer_or_internal_failure(request, environ, body)
        self._account.recorder.record(
            sequence, request, answer.status, answer.error_code, environ.get("HTTP_USER_AGENT", "")
        )
        return _send(answer, start_response)

    def _controlled(self, path: str, body: bytes) -> Answer:
        try:
            return control.answer(self._simulation, path, body)
        except Exception as error:
            return Answer(500, _reported(error).encode(), (("Content-Type", "text/plain"),))

    def _answer_or_internal_failure(
        self, request: Request, environ: dict[str, Any], body: bytes
    ) -> Answer:
        try:
            return self._answer(request, environ, body)
        except Exception as error:
            failure = ServiceError("InternalFailure", _reported(error), status=500)
            return protocol.error_answer(request.service, failure)

    def _answer(self, request: Request, environ: dict[str, Any], body: bytes) -> Answer:
        refused = None if self._enforcement is None else self._enforcement.refusal(request)
        if refused is not None:
            return protocol.error_answer(request.service, refused)
        fault = self._account.faults.for_call(request)
        if fault is None:
            return self._effect(request, environ, body)
        if fault.after_effect:
            self._effect(request, environ, body)
        error = ServiceError(fault.error_code, fault.message, status=fault.status)
        return protocol.error_answer(request.service, error)

    def _effect(self, request: Request, environ: dict[str, Any], body: bytes) -> Answer:
        if request.service == "sagemaker-runtime":
            return self._simulation.sagemaker.invoke(request, environ, body)
        service = self._simulation.services.get(request.service)
        if request.service == "stepfunctions":
            self._load_engine()
        if request.service == "events":
            self._load_rules()
        if service is None:
            return _from_moto(self._moto, environ)
        if not service.handles(request):
            try:
                service.check(request)
            except ServiceError as error:
                return protocol.error_answer(request.service, error)
            return _from_moto(self._moto, environ)
        if request.operation not in service.operations:
            return protocol.error_answer(request.service, protocol.not_simulated(request))
        return service.respond(request)


def _reported(error: Exception) -> str:
    """Report a bug in the simulation in the server's log, and return what its caller is told."""
    traceback.print_exception(error)
    return f"the embedded AWS failed: {type(error).__name__}: {error}"


def _read_body(environ: dict[str, Any]) -> bytes:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body: bytes = environ["wsgi.input"].read(length) if length else b""
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def _from_moto(moto: Wsgi, environ: dict[str, Any]) -> Answer:
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
        started.append((status, headers))

    chunks = moto(environ, start_response)
    try:
        body = b"".join(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close:
            close()
    status_line, headers = started[-1]
    status = int(status_line.split(" ", 1)[0])
    lower = {name.lower(): value for name, value in headers}
    return Answer(status, body, tuple(headers), error_code(status, lower, body))


def _send(answer: Answer, start_response: StartResponse) -> list[bytes]:
    headers = [(name, value) for name, value in answer.headers]
    names = {name.lower() for name, _ in headers}
    if "content-length" not in names:
        headers.append(("Content-Length", str(len(answer.body))))
    if names.isdisjoint({"x-amzn-requestid", "x-amz-request-id"}):
        # AWS sends one with every response; moto leaves it out of some errors.
        headers.append(("x-amz-request-id", str(uuid.uuid4())))
    start_response(f"{answer.status} {'OK' if answer.status < 400 else 'Error'}", headers)
    return [answer.body]
