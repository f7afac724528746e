"""Fields of requests that integrations do not know.

Whatever an integration does not know ends the execution with `States.Runtime`, which nothing
catches, before the request is sent:
<https://github.com/aws/aws-step-functions-data-science-sdk-python/issues/15>.
Fields of which nobody knows whether an integration takes them are let through.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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

from orchestration.backends.stepfunctions.integrations.choosing import unsure
from orchestration.graph import Integration, Operation
from orchestration.local.engine.tasks.calls import Call
from orchestration.local.engine.tasks.values import names_of_fields


def check(env: Any, call: Call, request: dict[str, Any], integration: Integration) -> None:
    """Fail the execution if a request has a field that the integration does not know."""
    names = dict.fromkeys(unsupported(call, request, integration))
    if not names:
        return
    written = json.dumps(request, separators=(",", ":"), ensure_ascii=False)
    reasons = ", ".join(f'The field "{name}" is not supported by Step Functions' for name in names)
    details: Any = {
        "taskFailedEventDetails": TaskFailedEventDetails(
            error="States.Runtime",
            cause=f"The Parameters '{written}' could not be used to start the Task: [{reasons}]",
            resource=call.operation,
            resourceType=call.service,
        )
    }
    raise FailureEventException(
        FailureEvent(
            env=env,
            error_name=StatesErrorName(typ=StatesErrorNameType.StatesRuntime),
            event_type=HistoryEventType.TaskFailed,
            event_details=details,
        )
    )


def unsupported(call: Call, request: dict[str, Any], integration: Integration) -> Iterator[str]:
    """Yield the names of the fields that an integration is sure not to know."""
    yield from unknown(request, call.model.input_shape)
    for field in unsure(Operation(call.service, call.operation, request), integration):
        if field.certainty(integration) == "refused":
            yield field.path.rpartition(".")[2]


def unknown(value: Any, shape: Any) -> Iterator[str]:
    """Yield the names of fields that the API does not have; those of a document are free."""
    if shape is None or getattr(shape, "is_document_type", False):
        return
    if shape.type_name == "structure" and isinstance(value, Mapping):
        members = {here: shape.members[api] for api, here in names_of_fields(shape).items()}
        for key, item in value.items():
            if key in members:
                yield from unknown(item, members[key])
            else:
                yield key
    elif shape.type_name == "list" and isinstance(value, list):
        for item in value:
            yield from unknown(item, shape.member)
    elif shape.type_name == "map" and isinstance(value, Mapping):
        for item in value.values():
            yield from unknown(item, shape.value)
