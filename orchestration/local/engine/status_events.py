"""Events of executions, delivered to what rules of EventBridge name.

moto 5.2.5 keeps rules and their targets, but Step Functions tells it of no execution's end, and it
delivers to neither. `tests/local/engine/test_status_events.py` fails without this module.
<https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html>
"""

from __future__ import annotations

import json
import uuid
from typing import Any, Final

from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication

from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.engine.deliveries import dispatch
from orchestration.local.engine.machines.versions import started_by
from orchestration.local.engine.seams import replace
from orchestration.local.engine.tasks.values import iso

_LONGEST_BYTES: Final = 248 * 1024
"""Of input and output together, says the page above."""


def install() -> None:
    """Make every execution tell of its end."""
    terminated = BaseExecutionWorkerCommunication.terminated

    def tell(self: Any) -> None:
        terminated(self)
        dispatch(_event(self.execution))

    replace(BaseExecutionWorkerCommunication, "terminated", tell)


def _event(execution: Any) -> JsonObject:
    # The input may be left out of an event; here it always is.
    detail = {
        "stateMachineVersionArn": None,
        "stateMachineAliasArn": None,
        **started_by(execution),
        "executionArn": execution.exec_arn,
        "stateMachineArn": execution.state_machine.arn,
        "name": execution.name,
        "status": execution.exec_status.value,
        "output": _output(execution),
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


def _output(execution: Any) -> str | None:
    """Return the text of an output, which a long one is not told in."""
    if execution.exec_status.value != "SUCCEEDED":
        return None
    text = json.dumps(execution.output, separators=(",", ":"), ensure_ascii=False)
    return text if len(text.encode()) <= _LONGEST_BYTES else None
