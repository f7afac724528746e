"""Stands between Airflow and what it calls, so that a moment can be hit exactly.

One wire leads to the embedded AWS, one to Airflow's own execution API. Each request is handed on as
it is; at the moment that is waited for, an act (a kill) comes before the request, between its
effect and its response, or right after its response.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Phase = Literal["before", "lost", "after"]
"""Before it has arrived; after its effect, with the response lost; after its response."""
_HOP = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request on a wire."""

    method: str
    path: str
    operation: str
    """Of AWS's JSON protocols; for others, empty."""
    body: bytes
    port: int
    """Of the caller."""

    def says(self, text: str) -> bool:
        """Return whether the address or the body has a text."""
        return text in self.path or text.encode() in self.body


@dataclass(slots=True)
class Ambush:
    """An act at the next request that matches."""

    matches: Callable[[Request], bool]
    phase: Phase
    act: Callable[[Request], None]
    skip: int = 0
    """Requests that match and are let through first."""
    done: threading.Event = field(default_factory=threading.Event)


class Wire:
    """A server on the loopback that hands requests on to another."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self._ambushes: list[Ambush] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"wire": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()

    def lay(self, ambush: Ambush) -> Ambush:
        """Wait for a moment."""
        with self._lock:
            self._ambushes.append(ambush)
        return ambush

    def clear(self, *ambushes: Ambush) -> None:
        """Wait for them no more."""
        gone = {id(ambush) for ambush in ambushes}
        with self._lock:
            self._ambushes = [other for other in self._ambushes if id(other) not in gone]

    def caught(self, request: Request) -> Ambush | None:
        """Return the ambush that a request has run into, once."""
        with self._lock:
            for ambush in self._ambushes:
                if not ambush.matches(request):
                    continue
                if ambush.skip:
                    ambush.skip -= 1
                    continue
                self._ambushes.remove(ambush)
                return ambush
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wire: Wire

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = _chunks(self.rfile)
        operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        request = Request(self.command, self.path, operation, body, self.client_address[1])
        ambush = self.wire.caught(request)
        if ambush is not None and ambush.phase == "before":
            self._sprung(ambush, request)
            return
        status, headers, answer = self._asked(body)
        if ambush is not None and ambush.phase == "lost":
            self._sprung(ambush, request)
            return
        # Who has asked may be gone.
        with contextlib.suppress(ConnectionError):
            self._answer(status, headers, answer)
        if ambush is not None:
            ambush.act(request)
            ambush.done.set()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = hand_on

    def _sprung(self, ambush: Ambush, request: Request) -> None:
        """Act, and leave the request without a response."""
        ambush.act(request)
        ambush.done.set()
        self.close_connection = True

    def _asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        target = http.client.HTTPConnection("127.0.0.1", self.wire.target_port, timeout=600)
        kept = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
        kept["Content-Length"] = str(len(body))
        target.request(self.command, self.path, body=body, headers=kept)
        response = target.getresponse()
        answer = response.read()
        headers = [(k, v) for k, v in response.getheaders() if k.lower() not in _HOP]
        # That of a HEAD is of the object, which is not sent.
        length = response.getheader("Content-Length") if self.command == "HEAD" else None
        target.close()
        headers.append(("Content-Length", length or str(len(answer))))
        return response.status, headers, answer

    def _answer(self, status: int, headers: list[tuple[str, str]], answer: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)
        self.wfile.flush()


def _chunks(stream: Any) -> bytes:
    parts = []
    while size := int(stream.readline().split(b";")[0], 16):
        parts.append(stream.read(size))
        stream.readline()
    stream.readline()
    return b"".join(parts)


def document(request: Request) -> dict[str, Any]:
    """Return a request's body as JSON; empty where it is none."""
    try:
        read = json.loads(request.body or b"{}")
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
