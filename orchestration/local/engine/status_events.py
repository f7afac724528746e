"""Events of executions, delivered to the state machines and topics that rules of EventBridge name.

moto 5.2.5 keeps rules and their targets, but Step Functions tells it of no execution's end, and it
delivers to neither. `tests/local/engine/test_status_events.py` fails without this module.
<https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html>
"""

from __future__ import annotations

import json
import sys
import threading
import uuid
from collections.abc import Iterator
from typing import Any

from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication

from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.engine.deliveries import deliver
from orchestration.local.engine.seams import replace
from orchestration.local.engine.tasks.clients import client
from orchestration.local.engine.tasks.values import iso


def install() -> None:
    """Make every execution tell of its end."""
    terminated = BaseExecutionWorkerCommunication.terminated

    def tell(self: Any) -> None:
        terminated(self)
        # A target's execution starts by a request to this very server.
        threading.Thread(target=_deliver, args=(_event(self.execution),), daemon=True).start()

    replace(BaseExecutionWorkerCommunication, "terminated", tell)


def _event(execution: Any) -> JsonObject:
    # The input may be left out of an event; here it always is.
    detail = {
        "executionArn": execution.exec_arn,
        "stateMachineArn": execution.state_machine.arn,
        "name": execution.name,
        "status": execution.exec_status.value,
        "error": execution.error,
        "cause": execution.cause,
    }
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": ACCOUNT_ID,
        "time": iso(execution.stop_date),
        "region": execution.region_name,
        "resources": [execution.exec_arn],
        "detail": detail,
    }


def _deliver(event: JsonObject) -> None:
    states = client("stepfunctions", event["region"])
    for target in _targets(event):
        if ":sns:" in target["Arn"]:
            deliver(target, event)
        elif ":stateMachine:" in target["Arn"]:
            states.start_execution(
                stateMachineArn=target["Arn"], input=target.get("Input") or json.dumps(event)
            )


def _targets(event: JsonObject) -> Iterator[JsonObject]:
    models = sys.modules.get("moto.events.models")
    if models is None:
        # Loaded with the first request, so there is no rule.
        return
    backend = models.events_backends[ACCOUNT_ID][event["region"]]
    for rule in list(backend.describe_event_bus("default").rules.values()):
        if rule.state == "ENABLED" and rule.event_pattern.matches_event(event):
            yield from rule.targets
