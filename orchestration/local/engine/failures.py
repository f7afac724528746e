"""Failures of states, as the engine represents them."""

from __future__ import annotations

from typing import Any

from moto.stepfunctions.parser.api import EvaluationFailedEventDetails, HistoryEventType
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


def query_failure(env: Any, expression: str, why: str) -> FailureEventException:
    """Return the failure of an expression that could not be evaluated."""
    name = StatesErrorName(typ=StatesErrorNameType.StatesQueryEvaluationError)
    details: Any = {
        "evaluationFailedEventDetails": EvaluationFailedEventDetails(
            error=name.error_name, cause=f"The JSONata expression '{expression}' {why}"
        )
    }
    return FailureEventException(
        failure_event=FailureEvent(
            env=env,
            error_name=name,
            event_type=HistoryEventType.EvaluationFailed,
            event_details=details,
        )
    )
