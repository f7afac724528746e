"""The calls that tasks make, and how long they wait for what they call about."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import Any

from botocore import xform_name

from orchestration.local.account.activity import Activity, Key
from orchestration.local.engine.clients import client

# A state machine counts its polls, and so its polls are its limit on what it polls: 120 of them,
# 30 s apart, are an hour. Waits are scaled, work is not, so that a poll of what really runs is
# answered at its end, or after this time.
LONGEST_POLL_S = 10.0
# How soon the end of an execution is noticed meanwhile.
_NOTICES_STOP_S = 0.25
ACTIVITY: list[Activity] = []
"""What is at work in the account, once the engine is installed."""


@dataclass(frozen=True)
class Call:
    """An API operation in a region, called over HTTP."""

    service: str
    operation: str
    region: str

    def send(self, request: dict[str, Any]) -> dict[str, Any]:
        """The response, without what is about HTTP."""
        made = client(self.service, self.region)
        response: dict[str, Any] = getattr(made, xform_name(self.operation))(**request)
        response.pop("ResponseMetadata", None)
        return response

    @property
    def model(self) -> Any:
        """Botocore's model of the operation."""
        return client(self.service, self.region).meta.service_model.operation_model(self.operation)


def await_end(env: Any, resource: Key, longest_s: float = math.inf) -> None:
    """Wait while a resource really runs, and the execution that asks for it does."""
    end = time.monotonic() + longest_s
    while env.is_running() and time.monotonic() < end:
        if not ACTIVITY[0].wait(resource, _NOTICES_STOP_S):
            return


def with_blobs(request: dict[str, Any], shape: Any) -> dict[str, Any]:
    """Bytes where the API takes bytes: a state can only write a string or JSON there."""
    members = shape.members if shape else {}
    return {
        key: _bytes(value) if key in members and members[key].type_name == "blob" else value
        for key, value in request.items()
    }


def _bytes(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text.encode()
