"""Invocations of functions in Python: each really runs, in a process of its own.

moto would run them in Docker containers; it keeps the functions. Other runtimes and images are not
simulated. A function's time-out is counted in time in which a process can run, unscaled.
"""

from __future__ import annotations

import io
import json
import sys
import threading
import uuid
import zipfile
from pathlib import Path
from typing import Any

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import (
    ACCOUNT_ID,
    Answer,
    JsonObject,
    Request,
    Service,
    ServiceError,
    error_answer,
)
from orchestration.local.processes.children import read_log, remove
from orchestration.local.processes.working_time import WorkingTime

_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_POLL_S = 0.02
_STATUS = {"RequestResponse": 200, "Event": 202, "DryRun": 204}


class Functions(Service):
    """Lambda: moto answers all but invocations."""

    name = "lambda"

    def __init__(self, account: Account) -> None:
        super().__init__({"Invoke": dict})
        self._account = account

    def handles(self, request: Request) -> bool:
        """Return whether a call is an invocation."""
        return request.operation == "Invoke"

    def answer(self, operation: str, request: JsonObject) -> Answer:
        """Run a function; answer at once where nobody waits for it."""
        kind = request.get("InvocationType", "RequestResponse")
        try:
            function = self._function(request)
            event = _event(request)
        except ServiceError as error:
            return error_answer(self.name, error)
        if kind == "RequestResponse":
            return _answered(self._run(function, event))
        if kind == "Event":
            threading.Thread(target=self._run, args=(function, event), daemon=True).start()
        return Answer(_STATUS[kind], b"", _headers())

    def _function(self, request: JsonObject) -> Any:
        from moto.awslambda.exceptions import UnknownFunctionException
        from moto.awslambda.models import lambda_backends

        backend = lambda_backends[ACCOUNT_ID][self._account.region]
        try:
            function = backend.get_function(request["FunctionName"], request.get("Qualifier"))
        except UnknownFunctionException as error:
            text = str(error.description)
            raise ServiceError("ResourceNotFoundException", text, status=404) from error
        if not str(function.run_time).startswith("python") or function.package_type != "Zip":
            text = (
                f"the embedded AWS runs functions in Python from zip archives, not "
                f"{function.run_time or function.package_type}"
            )
            raise ServiceError("NotSimulated", text)
        return function

    def _run(self, function: Any, event: Any) -> JsonObject:
        """Return the result of a run, or its error in Lambda's form."""
        identity = str(uuid.uuid4())
        folder = self._account.directory / "functions" / identity
        code = folder / "code"
        code.mkdir(parents=True)
        try:
            with zipfile.ZipFile(io.BytesIO(function.code_bytes)) as archive:
                archive.extractall(code)
            (folder / "event.json").write_text(json.dumps(event), "utf-8")
            return self._ended(function, identity, folder)
        finally:
            remove(folder)

    def _ended(self, function: Any, identity: str, folder: Path) -> JsonObject:
        log = folder / "log"
        child = self._account.children.start(
            [sys.executable, str(_BOOTSTRAP), function.handler, str(folder / "code"), str(folder)],
            environment={
                **self._account.environment,
                **function.environment_vars,
                "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
                "AWS_LAMBDA_REQUEST_ID": identity,
            },
            directory=folder / "code",
            log=log,
        )
        working = WorkingTime()
        while child.wait(_POLL_S) is None and working.elapsed_s() < function.timeout:
            continue
        status = child.exit_status
        child.stop(grace_s=0)
        if status is None:
            text = f"{identity} Task timed out after {function.timeout:.2f} seconds"
            return {"error": {"errorType": "Sandbox.Timedout", "errorMessage": text}}
        result = folder / "result.json"
        if not result.exists():
            text = f"RequestId: {identity} Error: Runtime exited with error: exit status {status}"
            sys.stderr.write(read_log(log))
            return {"error": {"errorType": "Runtime.ExitError", "errorMessage": text}}
        outcome: JsonObject = json.loads(result.read_text("utf-8"))
        return outcome


def _event(request: JsonObject) -> Any:
    payload = request.get("Payload") or "{}"
    if not isinstance(payload, str):
        raise ServiceError(
            "NotSimulated", f"the embedded AWS takes events of 64 KiB, not {payload['bytes']} bytes"
        )
    try:
        return json.loads(payload)
    except ValueError as error:
        text = f"Could not parse request body into json: {error}"
        raise ServiceError("InvalidRequestContentException", text) from error


def _answered(outcome: JsonObject) -> Answer:
    failed = "error" in outcome
    body = json.dumps(outcome["error"] if failed else outcome["result"]).encode()
    error = (("X-Amz-Function-Error", "Unhandled"),) if failed else ()
    return Answer(200, body, (*_headers(), *error))


def _headers() -> tuple[tuple[str, str], ...]:
    return (
        ("Content-Type", "application/json"),
        ("X-Amz-Executed-Version", "$LATEST"),
        ("x-amzn-RequestId", str(uuid.uuid4())),
    )
