"""Requests to Step Functions that break its rules, each of them once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

from botocore.config import Config

from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE

_PASSING = json.dumps({"StartAt": "End", "States": {"End": {"Type": "Pass", "End": True}}})


def _made(aws: EmbeddedAws, **more: Any) -> str:
    name = f"machine-{uuid.uuid4().hex[:8]}"
    states = aws.client("stepfunctions")
    made = states.create_state_machine(
        **{"name": name, "definition": _PASSING, "roleArn": ROLE, **more}
    )
    return str(made["stateMachineArn"])


def _started(**more: Any) -> Callable[[EmbeddedAws], None]:
    return lambda aws: aws.client("stepfunctions").start_execution(
        stateMachineArn=_made(aws), **more
    )


def _synchronous(aws: EmbeddedAws) -> None:
    # Else botocore asks another host.
    states = aws.client("stepfunctions", config=Config(inject_host_prefix=False))
    states.start_sync_execution(stateMachineArn=_made(aws, type="EXPRESS"), name="6:00")


def _tags(first: int, last: int) -> list[dict[str, str]]:
    return [{"key": f"key{number}", "value": "x"} for number in range(first, last)]


def _one_by_one(aws: EmbeddedAws) -> None:
    machine, states = _made(aws, tags=_tags(0, 30)), aws.client("stepfunctions")
    states.tag_resource(resourceArn=machine, tags=_tags(10, 50))
    states.tag_resource(resourceArn=machine, tags=_tags(50, 51))


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "names": _started(name="2027-01-01T06:00:00"),
    "inputs are JSON": _started(input="not some json"),
    "tags at most": lambda aws: _made(aws, tags=_tags(0, 51)),
}
ALSO: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "names of state machines": ("names", lambda aws: _made(aws, name="night ly")),
    "names of synchronous executions": ("names", _synchronous),
    "no input at all": ("inputs are JSON", _started(input="")),
    "tags one by one": ("tags at most", _one_by_one),
}
