"""An application that holds back one response, so that somebody can be killed at that moment."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

from orchestration.local.account.records import Fault
from orchestration.local.server.decoding import decode
from tests.patience import PATIENCE_S

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
PREFIX = "/_holding/"


class Holding:
    """The first call that matches takes effect; its response waits until it is released.

    `POST /_holding/lay` names the call, `GET /_holding/held` waits until it has come, and
    `POST /_holding/release` lets the response go.
    """

    def __init__(self, application: Wsgi) -> None:
        self._application = application
        self._wanted: Fault | None = None
        self._lock = threading.Lock()
        self._held = threading.Event()
        self._released = threading.Event()

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer one request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        path = str(environ["PATH_INFO"])
        if path.startswith(PREFIX):
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(self._control(path.removeprefix(PREFIX), body)).encode()]
        environ["wsgi.input"] = io.BytesIO(body)
        waits = self._takes(environ, body)
        answer = self._application(environ, start_response)
        if waits:
            self._held.set()
            self._released.wait(PATIENCE_S)
        return answer

    def _control(self, what: str, body: bytes) -> bool:
        if what == "lay":
            self._wanted = Fault.from_json(json.loads(body))
        elif what == "release":
            self._released.set()
        elif what == "held":
            return self._held.wait(0.2)
        return True

    def _takes(self, environ: dict[str, Any], body: bytes) -> bool:
        request = decode(environ, body)
        if request is None or "orchestration-local-client" in environ.get("HTTP_USER_AGENT", ""):
            return False
        with self._lock:
            wanted = self._wanted
            if wanted is not None and wanted.matches(
                request.service, request.operation, request.parameters
            ):
                self._wanted = None
                return True
        return False
