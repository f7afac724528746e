"""A page that this process serves on the loopback address, to whoever knows its path."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from orchestration.cli.commands.deployed.page import page, policy
from orchestration.errors import StartError

if TYPE_CHECKING:
    from orchestration.runs import Snapshot

_LOOPBACK: Final = "127.0.0.1"
_MOST_S: Final = 5.0
"""Seconds after which a page asks again at the latest: what it shows costs no request to AWS."""


class Page:
    """The page about a run, as it is now."""

    def __init__(self, every_s: float) -> None:
        self._every_s = min(every_s, _MOST_S)
        self._path = f"/{secrets.token_urlsafe(16)}/"
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._seen = threading.Event()
        self._asked_at = -math.inf
        self.url = ""
        """Its address; the path is a secret, since other users of this machine reach the port."""

    def change(self, snapshot: Snapshot) -> None:
        """Show another state of the run."""
        with self._lock:
            self._snapshot = snapshot
            self._seen.clear()

    def answer(self, path: str, host: str) -> tuple[HTTPStatus, str, str]:
        """Return status, text and the policy of its contents."""
        # A page of elsewhere may have its own name resolve to this machine.
        if path != self._path or host != self.url.split("/")[2]:
            return HTTPStatus.NOT_FOUND, "there is nothing here\n", "default-src 'none'"
        with self._lock:
            self._asked_at = time.monotonic()
            text = page(self._snapshot, every_s=self._every_s)
            if self._snapshot is not None and self._snapshot.state != "running":
                self._seen.set()
        return HTTPStatus.OK, text, policy(self._every_s)

    def wait_until_seen(self) -> None:
        """Wait until an open page has asked for the end of the run; one that is closed does not."""
        left = self._asked_at + 2 * self._every_s - time.monotonic()
        if left > 0:
            self._seen.wait(left)

    def located(self, port: int) -> None:
        """Take the port that it is served at."""
        self.url = f"http://{_LOOPBACK}:{port}{self._path}"


@contextmanager
def served(port: int, *, every_s: float) -> Iterator[Page]:
    """Serve a page on the loopback address while the block runs, and until its end was seen."""
    shown = Page(every_s)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text, allowed = shown.answer(self.path, self.headers.get("Host", ""))
            content = text.encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "text/html; charset=utf-8",
                "Content-Length": str(len(content)),
                "Content-Security-Policy": allowed,
                "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing: standard error is for the run."""

    try:
        bound = ThreadingHTTPServer((_LOOPBACK, port), Answer)
    except OSError as error:
        raise StartError(f"port {port} of this machine can't be served: {error}") from error
    with bound as server:
        shown.located(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield shown
            shown.wait_until_seen()
        finally:
            server.shutdown()
