"""Copies of requests for the shadow of a variant, which answers nobody.

https://docs.aws.amazon.com/sagemaker/latest/dg/shadow-tests-create.html
"""

from __future__ import annotations

import threading
import time

from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.serving.endpoint import Endpoint
from orchestration.local.sagemaker.serving.model_host import ModelAnswer
from orchestration.local.sagemaker.serving.traffic import Fleet, Member

_REFUSED = 400


def answered(
    endpoint: Endpoint, fleet: Fleet, member: Member, body: bytes, headers: dict[str, str]
) -> ModelAnswer:
    """Send a request to a variant, count it, and return the answer."""
    began = time.monotonic()
    answer = member.host.invoke(body, headers)
    latency_s = time.monotonic() - began
    endpoint.requests.add(fleet.config_name, member.name, answer.status, latency_s)
    return answer


def copy(
    endpoint: Endpoint,
    fleet: Fleet,
    body: bytes,
    headers: dict[str, str],
    captures: JsonObject | None,
) -> None:
    """Let the shadow answer a copy of a request, if it is its turn; nobody waits for it."""
    shadow = endpoint.traffic.shadow(fleet)
    if shadow is None:
        return

    def answer() -> None:
        try:
            given = answered(endpoint, fleet, shadow, body, headers)
            if given.status < _REFUSED:
                kind = headers.get("Content-Type", "application/octet-stream")
                place = (endpoint.name, shadow.name)
                endpoint.capture.write(captures, place, (body, kind), given)
        finally:
            endpoint.traffic.release(fleet)

    threading.Thread(target=answer, daemon=True).start()
