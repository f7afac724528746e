"""What an execution has done so far, told as it happens.

moto 5.2.5 answers GetExecutionHistory with a deep copy of all events, whatever page is asked for,
and takes a quarter of a millisecond to write each: whoever followed a run by it made the server
spend half of its time on answers. `events` has the new events only, and waits for them.
`tests/local/engine/test_history.py` compares it with GetExecutionHistory.
"""

from __future__ import annotations

import threading
from typing import Any

from moto.stepfunctions.parser.asl.eval.event.event_manager import EventManager
from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication
from moto.stepfunctions.parser.models import stepfunctions_parser_backends

from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject
from orchestration.local.engine.seams import replace

_CHANGED = threading.Condition()


def events(arn: str, region: str, after: int, timeout_s: float) -> list[JsonObject]:
    """The events of an execution after the first `after`: type, time, and the state's name.

    Waits for one for some time where there is none yet.
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
        "type": event["type"].value,
        "timestamp": event["timestamp"],
        "state": details.get("name"),
    }


def install() -> None:
    """Make the engine tell of every event, and of the end."""
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

    replace(EventManager, "_publish_history_event", publish_history_event)
    replace(BaseExecutionWorkerCommunication, "terminated", terminate)
