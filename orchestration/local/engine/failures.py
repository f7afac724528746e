"""Failures of states: their names, their causes, and the events that tell of them.

Recordings of Step Functions differ from moto 5.2.5 in that

* an error keeps its own name, `States.*` included, when it leaves a Map or a Parallel state (moto
  turns it into an uncatchable `States.Runtime`);
* every expression that fails writes an `EvaluationFailed` event, which names the state and the
  field, and its cause says where the state was entered;
* a Fail state without an error name is matched by no catcher.

`tests/local/engine/test_failures.py` fails without this module.
"""

from __future__ import annotations

from typing import Any

from moto.stepfunctions.parser.api import EvaluationFailedEventDetails, HistoryEventType
from moto.stepfunctions.parser.asl.component.common.error_name.error_name import ErrorName
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
from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration import iteration_worker
from moto.stepfunctions.parser.asl.component.state.exec.state_parallel import branches_decl
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventManager

from orchestration.local.engine.seams import replace

_QUERY = "States.QueryEvaluationError"
_LOCATED = ("States.Runtime", _QUERY)
_EVALUATION = "evaluationFailedEventDetails"


class _Written(dict[str, Any]):
    """Details of an `EvaluationFailed` event that the history already holds."""


def query_failure(env: Any, cause: str, field: str | None) -> FailureEventException:
    """Return the failure of an expression that could not be evaluated; the history tells of it."""
    name = StatesErrorName(typ=StatesErrorNameType.StatesQueryEvaluationError)
    details: Any = EvaluationFailedEventDetails(
        error=_QUERY, cause=_located(cause, env.next_state_name, _entered(env))
    )
    if field is not None:
        details["location"] = field
    details["state"] = env.next_state_name
    env.event_manager.add_event(
        context=env.event_history_context,
        event_type=HistoryEventType.EvaluationFailed,
        event_details={_EVALUATION: details},
    )
    written: Any = {_EVALUATION: _Written(details)}
    return FailureEventException(
        FailureEvent(
            env=env,
            error_name=name,
            event_type=HistoryEventType.EvaluationFailed,
            event_details=written,
        )
    )


def _located(cause: str, state: str, event: int) -> str:
    """Say in which state an error occurred, once."""
    start = "An error occurred while executing the state '"
    if cause.startswith(start):
        return cause
    return f"{start}{state}' (entered at the event id #{event}). {cause}"


def _entered(env: Any) -> int:
    """Return the number of the event with which the current state was entered."""
    events = {event["id"]: event for event in list(env.event_manager._history_event_list)}
    number: int = env.event_history_context.source_event_id
    at = number
    while event := events.get(at):
        if "stateEnteredEventDetails" in event:
            return at
        at = event["previousEventId"]
    return number


def _kept(error_name: str | None) -> ErrorName:
    return ErrorName(error_name=error_name)


def _end(self: Any) -> Any:
    """Return the error and the cause of an execution that ends with a failure."""
    pair = self.extract_error_cause_pair()
    if pair is None:
        return None
    error, cause = pair
    if cause and error in _LOCATED:
        failure = self.failure_event
        cause = _located(cause, failure.state_name, failure.source_event_id)
    return {key: value for key, value in (("error", error), ("cause", cause)) if value}


def _evaluation_details(self: Any) -> Any:
    return self.failure_event.event_details[_EVALUATION]


def _add_event_once(add_event: Any) -> Any:
    def add(
        self: Any, context: Any, event_type: Any, event_details: Any = None, **options: Any
    ) -> int:
        if isinstance((event_details or {}).get(_EVALUATION), _Written):
            return int(context.last_published_event_id)
        number: int = add_event(self, context, event_type, event_details, **options)
        return number

    return add


def _remember_entry(init: Any) -> Any:
    def remember(self: Any, env: Any, *args: Any, **kwargs: Any) -> None:
        init(self, env, *args, **kwargs)
        self.source_event_id = _entered(env)

    return remember


def install() -> None:
    """Make the engine name and describe failures as AWS does."""
    replace(iteration_worker, "CustomErrorName", _kept)
    replace(branches_decl, "CustomErrorName", _kept)
    replace(FailureEventException, "get_execution_failed_event_details", _end)
    replace(FailureEventException, "get_evaluation_failed_event_details", _evaluation_details)
    replace(FailureEvent, "__init__", _remember_entry(FailureEvent.__init__))
    replace(EventManager, "add_event", _add_event_once(EventManager.add_event))
