"""Operators of the Amazon provider as steps.

The arguments are those of the provider 9.39 (read November 2026).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.importing.dags.calls import REQUESTS, copied

SAGEMAKER: Final = {
    "SageMakerTrainingOperator": "Training",
    "SageMakerProcessingOperator": "Processing",
    "SageMakerTuningOperator": "Tuning",
    "SageMakerTransformOperator": "Transform",
    "SageMakerModelOperator": "Model",
    "SageMakerEndpointConfigOperator": "EndpointConfig",
    "SageMakerEndpointOperator": "Endpoint",
}
_APPROVALS: Final = {
    "APPROVED": "Approved",
    "REJECTED": "Rejected",
    "PENDING_MANUAL_APPROVAL": "PendingManualApproval",
}
_PARTS: Final = ("Model", "EndpointConfig", "Transform", "Endpoint")
"""Requests that the configuration of a transform or of an endpoint may hold together."""
REGISTERED: Final = (
    *("image_uri", "model_url", "package_group_name", "package_desc", "model_approval", "extras"),
)
"""Arguments that the registration of a model says."""
_NEEDED: Final = ("job_name", "s3_input", "target_attribute", "s3_output", "role_arn")
AUTO_ML: Final = (
    *(*_NEEDED, "compressed_input", "time_limit", "autodeploy_endpoint_name", "extras"),
)
"""Arguments that a job which finds a model says."""
NOTHING: Final = ("EmptyOperator", "DummyOperator")
"""Operators that only stand in an order."""

Steps = Iterator[tuple[str, dict[str, Any]]]


def steps_of(operator: str, arguments: Mapping[str, Any]) -> Steps:
    """Yield the steps that an operator takes, each with what its name ends in.

    Nothing for an operator whose work no stage does.
    """
    if operator in SAGEMAKER:
        yield from _sagemaker(SAGEMAKER[operator], arguments.get("config"))
    elif operator == "LambdaInvokeFunctionOperator":
        payload = _parsed(arguments.get("payload", {}))
        if isinstance(payload, Mapping):
            function = arguments.get("function_name")
            yield "", {"Type": "Lambda", "FunctionArn": function, "Arguments": payload}
    elif operator == "SageMakerRegisterModelVersionOperator":
        yield from _registration(arguments)
    elif operator == "SageMakerAutoMLOperator":
        yield from _auto_ml(arguments)
    elif operator in REQUESTS:
        if operator == "S3CopyObjectOperator":
            arguments = copied(arguments)
        step = REQUESTS[operator].step(arguments)
        if step is not None:
            yield "", step


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


def _registration(arguments: Mapping[str, Any]) -> Steps:
    """Yield the version of a model that is registered, for inference on texts of CSV."""
    csv = ["text/csv"]
    container = {"Image": arguments.get("image_uri"), "ModelDataUrl": arguments.get("model_url")}
    fields = {
        "ModelPackageGroupName": arguments.get("package_group_name"),
        "ModelPackageDescription": arguments.get("package_desc"),
        "ModelApprovalStatus": _approval(arguments.get("model_approval")),
    }
    extras = arguments.get("extras") or {}
    if not isinstance(extras, Mapping) or "Get" in extras or None in container.values():
        return
    request = {
        "InferenceSpecification": {
            "Containers": [container],
            "SupportedContentTypes": csv,
            "SupportedResponseMIMETypes": csv,
        },
        **{name: value for name, value in fields.items() if value is not None},
        **extras,
    }
    yield "", {"Type": "RegisterModel", "Arguments": request}


def _approval(status: Any) -> Any:
    """Return the status that a member of the provider's ApprovalStatus names."""
    named = status["Get"] if isinstance(status, Mapping) and "Get" in status else ""
    return _APPROVALS.get(str(named).rpartition(".")[2], status or "PendingManualApproval")


def _auto_ml(arguments: Mapping[str, Any]) -> Steps:
    """Yield a job that finds a model; where it also deploys one, no stage does so."""
    extras, compressed = arguments.get("extras") or {}, arguments.get("compressed_input") or False
    is_known = isinstance(extras, Mapping) and "Get" not in extras and isinstance(compressed, bool)
    if not is_known or any(name not in arguments for name in _NEEDED):
        return
    if arguments.get("autodeploy_endpoint_name"):
        return
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": arguments["s3_input"]}}
    data = {"DataSource": source, "TargetAttributeName": arguments["target_attribute"]}
    if compressed:
        data["CompressionType"] = "Gzip"
    request = {
        "AutoMLJobName": arguments["job_name"],
        "InputDataConfig": [data],
        "OutputDataConfig": {"S3OutputPath": arguments["s3_output"]},
        "RoleArn": arguments["role_arn"],
    }
    if arguments.get("time_limit"):
        limit = {"MaxAutoMLJobRuntimeInSeconds": arguments["time_limit"]}
        request["AutoMLJobConfig"] = {"CompletionCriteria": limit}
    yield "", {"Type": "AutoML", "Arguments": {**request, **extras}}
