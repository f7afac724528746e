"""The events of an execution, as they happen.

moto 5.2.5 answers GetExecutionHistory with a deep copy of all events, whatever page is requested,
and spends a quarter of a millisecond on writing each event: following a run by polling took more
than half of the server's CPU time. `events` waits for new events and returns those only.
`tests/local/engine/test_history.py` compares it with GetExecutionHistory.
"""

from __future__ import annotations

import threading
from typing import Any

from moto.stepfunctions.parser.asl.eval.event.event_manager import EventManager
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication
from moto.stepfunctions.parser.models import stepfunctions_parser_backends
from moto.stepfunctions.responses import StepFunctionResponse

from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.engine.seams import replace

_CHANGED = threading.Condition()


def events(arn: str, region: str, after: int, timeout_s: float) -> list[JsonObject]:
    """Return the events after the first `after`: their ids, types, times and states.

    Waits for up to `timeout_s` if there is none yet.
    """
    backend = stepfunctions_parser_backends[ACCOUNT_ID][region]
    execution = backend.describe_execution(execution_arn=arn)
    with _CHANGED:
        _CHANGED.wait_for(
            lambda: len(_history(execution)) > after or execution.stop_date, timeout_s
        )
        return [_summary(event) for event in _history(execution)[after:]]


def _history(execution: Any) -> list[Any]:
    environment = execution.exec_worker and execution.exec_worker.env
    history: list[Any] = environment.event_manager._history_event_list if environment else []
    return history


def _summary(event: Any) -> JsonObject:
    details = event.get("stateEnteredEventDetails") or event.get("stateExitedEventDetails") or {}
    return {
        "id": event["id"],
        "previous_id": event["previousEventId"],
        "type": event["type"].value,
        "timestamp": event["timestamp"],
        "state": details.get("name"),
    }


def install() -> None:
    """Make the engine announce every event and the end of an execution.

    And make GetExecutionHistory begin with the latest event if it is told to.
    """
    publish = EventManager._publish_history_event

    def publish_history_event(self: Any, *args: Any, **kwargs: Any) -> None:
        publish(self, *args, **kwargs)
        with _CHANGED:
            _CHANGED.notify_all()

    terminated = BaseExecutionWorkerCommunication.terminated

    def terminate(self: Any) -> None:
        terminated(self)
        with _CHANGED:
            _CHANGED.notify_all()

    answer = StepFunctionResponse.get_execution_history

    def get_execution_history(self: Any) -> Any:
        answered: Any = answer(self)
        if self._get_param("reverseOrder"):
            answered.result["events"].reverse()
        return answered

    replace(StepFunctionResponse, "get_execution_history", get_execution_history)
    replace(EventManager, "_publish_history_event", publish_history_event)
    replace(BaseExecutionWorkerCommunication, "terminated", terminate)
