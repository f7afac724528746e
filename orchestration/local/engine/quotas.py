"""The limit of 256 KiB on what states pass on: results, inputs and variables.

<https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html>. moto 5.2.5 counts the
spaces of Python's JSON, and not at all what is assigned to variables.
`tests/local/engine/test_payloads.py` fails without this module.
"""

from __future__ import annotations

import json
from typing import Any

from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.state import state as state_module
from moto.stepfunctions.parser.asl.component.state.exec.state_task import state_task_lambda
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import state_task_service

from orchestration.local.engine.seams import replace

LARGEST_BYTES = 256 * 1024


def fits(value: Any) -> bool:
    """Return whether a payload is within the limit."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return len(text.encode(errors="surrogatepass")) <= LARGEST_BYTES


def check_variables(env: Any, values: dict[str, Any]) -> None:
    """Fail a state that assigns more than the limit at once.

    The limit is documented; that this error tells of it has not been recorded.
    """
    if fits(values):
        return
    name = StatesErrorName(typ=StatesErrorNameType.StatesStatesDataLimitExceeded)
    cause = (
        f"The state/task '{env.next_state_name}' assigned variables with a size exceeding "
        "the maximum number of bytes service limit."
    )
    details: Any = {
        "taskFailedEventDetails": TaskFailedEventDetails(error=name.error_name, cause=cause)
    }
    raise FailureEventException(
        FailureEvent(
            env=env,
            error_name=name,
            event_type=HistoryEventType.TaskFailed,
            event_details=details,
        )
    )


def install() -> None:
    """Make the engine count as AWS does."""
    for module in (state_module, state_task_service, state_task_lambda):
        replace(module, "is_within_size_quota", fits)
