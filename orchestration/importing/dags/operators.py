"""Operators of the Amazon provider as steps.

The arguments are those of the provider 9.34 (read November 2026).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.importing.steps.calls import POLLS

_SAGEMAKER: Final = {
    "SageMakerTrainingOperator": "Training",
    "SageMakerProcessingOperator": "Processing",
    "SageMakerTuningOperator": "Tuning",
    "SageMakerTransformOperator": "Transform",
    "SageMakerModelOperator": "Model",
    "SageMakerEndpointConfigOperator": "EndpointConfig",
    "SageMakerEndpointOperator": "Endpoint",
}
_QUERY: Final = ("athena", "StartQueryExecution")
_PARTS: Final = ("Model", "EndpointConfig", "Transform", "Endpoint")
"""Requests that the configuration of a transform or of an endpoint may hold together."""
NOTHING: Final = ("EmptyOperator", "DummyOperator")
"""Operators that only stand in an order."""

Steps = Iterator[tuple[str, dict[str, Any]]]


def steps_of(operator: str, arguments: Mapping[str, Any]) -> Steps:
    """Yield the steps that an operator takes, each with what its name ends in.

    Nothing for an operator whose work no stage does.
    """
    if operator in _SAGEMAKER:
        yield from _sagemaker(_SAGEMAKER[operator], arguments.get("config"))
    elif operator == "LambdaInvokeFunctionOperator":
        payload = _parsed(arguments.get("payload", {}))
        if isinstance(payload, Mapping):
            function = arguments.get("function_name")
            yield "", {"Type": "Lambda", "FunctionArn": function, "Arguments": payload}
    elif operator == "SnsPublishOperator":
        fields = {"TopicArn": "target_arn", "Message": "message", "Subject": "subject"}
        yield "", _call("sns", "Publish", fields, arguments)
    elif operator == "GlueJobOperator":
        fields = {"JobName": "job_name", "Arguments": "script_args"}
        yield (
            "",
            {
                **_call("glue", "StartJobRun", fields, arguments),
                "Poll": POLLS["glue", "StartJobRun"],
            },
        )
    elif operator == "AthenaOperator":
        call = _call("athena", "StartQueryExecution", {"QueryString": "query"}, arguments)
        request = call["Arguments"]
        if "database" in arguments:
            request["QueryExecutionContext"] = {"Database": arguments["database"]}
        if "output_location" in arguments:
            request["ResultConfiguration"] = {"OutputLocation": arguments["output_location"]}
        yield "", {**call, "Poll": POLLS[_QUERY]}


def _sagemaker(kind: str, config: Any) -> Steps:
    if not isinstance(config, Mapping) or "Get" in config:
        return
    parts = [part for part in _PARTS if isinstance(config.get(part), Mapping)]
    if not parts or kind not in ("Transform", "Endpoint"):
        yield "", {"Type": kind, "Arguments": dict(config)}
        return
    for part in parts:
        ending = "" if part == kind else f" {part}"
        yield ending, {"Type": part, "Arguments": dict(config[part])}


def _parsed(payload: Any) -> Any:
    """Return a payload that is written as JSON, as an object."""
    if isinstance(payload, str):
        try:
            return json.loads(payload)
        except ValueError:
            return None
    return None if isinstance(payload, Mapping) and "Std:Join" in payload else payload


def _call(
    service: str, operation: str, fields: Mapping[str, str], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    request = {field: arguments[name] for field, name in fields.items() if name in arguments}
    return {"Type": "Call", "Service": service, "Operation": operation, "Arguments": request}
