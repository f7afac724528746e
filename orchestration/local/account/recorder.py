"""The recorder of AWS calls, in the order in which they arrived."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from typing import Any

from orchestration.local.account.protocol import Request
from orchestration.local.account.records import RecordedCall

ORIGIN_PREFIX = "orchestration-local-"
_MARK = re.compile(rf"{ORIGIN_PREFIX}(?P<origin>[a-z-]+)")
_JSON_CODE = re.compile(rb'"__type"\s*:\s*"(?:[^"#]*#)?([^"]+)"')
_XML_CODE = re.compile(rb"<Code>([^<]+)</Code>")


class Recorder:
    """The calls that an embedded AWS has received."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[int, RecordedCall] = {}
        self._next = 1

    def arrive(self) -> int:
        """Return the number of a call that has just arrived."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            return number

    def record(
        self, sequence: int, request: Request, status: int, error: str | None, user_agent: str
    ) -> None:
        """Record a call once it is answered."""
        call = RecordedCall(
            sequence=sequence,
            service=request.service,
            operation=request.operation,
            request=request.parameters,
            status=status,
            error_code=error,
            origin=origin(user_agent),
            region=request.region,
        )
        with self._lock:
            self._calls[sequence] = call

    def calls(self) -> list[RecordedCall]:
        """Return the answered calls, in the order in which they arrived."""
        with self._lock:
            return [call for _, call in sorted(self._calls.items())]


def origin(user_agent: str) -> str | None:
    """Return who made a call, by its user agent."""
    mark = _MARK.search(user_agent)
    if mark:
        return mark["origin"]
    marks = {"airflow": "airflow", "orchestration-direct": "direct"}
    return next((name for text, name in marks.items() if text in user_agent.lower()), None)


def error_code(status: int, headers: Mapping[str, str], body: bytes) -> str | None:
    """Return the error code of a response in any of AWS's formats."""
    if status < 400:
        return None
    kind = headers.get("x-amzn-errortype")
    if kind:
        return kind.split(":", 1)[0].rsplit("#", 1)[-1]
    match = _JSON_CODE.search(body) or _XML_CODE.search(body)
    return match[1].decode() if match else str(status)


def dumps(value: Any) -> bytes:
    """Encode a value as JSON."""
    return json.dumps(value, default=str).encode()
