"""The AWS calls of tasks, and how long a poll waits for its answer."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from botocore import xform_name

from orchestration.local.account.activity import Activity, Key
from orchestration.local.engine.tasks.clients import Assumed, assuming, client

# A state machine limits what it polls by counting its polls: 120 polls, 30 s apart, are an hour.
# Waits are scaled and work is not, so a poll of a resource that is at work is answered when the
# work ends, or after this time (tests/local/engine/test_polls.py).
LONGEST_POLL_S = 10.0
# How soon a stopped execution is noticed meanwhile.
_NOTICES_STOP_S = 0.25
ACTIVITY: list[Activity] = []
"""The work that runs in the account, set when the engine is installed."""


@dataclass(frozen=True)
class Call:
    """An API operation in a region, called over HTTP."""

    service: str
    operation: str
    region: str
    role: str = ""
    """The ARN of the role of the execution."""
    assumed: Assumed | None = None
    """The role that it assumes for this call."""

    def send(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the response without its HTTP metadata."""
        if self.assumed is None:
            made = client(self.service, self.region, self.role)
        else:
            made = assuming(self.service, self.region, self.role, self.assumed)
        response: dict[str, Any] = getattr(made, xform_name(self.operation))(**request)
        response.pop("ResponseMetadata", None)
        return response

    @property
    def model(self) -> Any:
        """Botocore's model of the operation."""
        return client(self.service, self.region).meta.service_model.operation_model(self.operation)


def await_end(env: Any, resource: Key, longest_s: float = math.inf) -> None:
    """Wait while a resource is at work and the execution goes on."""
    end = time.monotonic() + longest_s
    while env.is_running() and time.monotonic() < end:
        if not ACTIVITY[0].wait(resource, _NOTICES_STOP_S):
            return
