"""Steps that register a model, as stages that do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestration.importing.steps.serving import with_url

_STATUS: Final = {"Approved": "approved", "PendingManualApproval": "pending"}
_SPECIFICATION: Final = {
    "SupportedContentTypes": "content_types",
    "SupportedResponseMIMETypes": "response_types",
    "SupportedRealtimeInferenceInstanceTypes": "instance_types",
    "SupportedTransformInstanceTypes": "transform_instance_types",
}
_REQUEST: Final = {
    "ModelPackageGroupName": "package_group",
    "ModelPackageDescription": "description",
    "CustomerMetadataProperties": "metadata",
}
_USUAL: Final = ("SkipModelValidation", "None")
"""A field that the SDK writes with what AWS takes by default."""
_MARKS: Final = ("ClientToken", "ModelPackageDescription")
"""Fields by which a run finds the version that it has made."""
OPERATION: Final = "CreateModelPackage"


def registration(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the stage that registers a model as a request does; none where no stage does."""
    specification = request["InferenceSpecification"]
    [container] = specification["Containers"]
    if container.keys() - {"Image", "ModelDataUrl", "Environment"}:
        return None
    if specification.keys() - {"Containers", *_SPECIFICATION}:
        return None
    stage: dict[str, Any] = {
        "kind": "model_registration",
        **_named(request, _REQUEST),
        "model_data": container["ModelDataUrl"],
        "model_archive": True,  # https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ModelPackageContainerDefinition.html
        "image": container["Image"],
        "environment": container.get("Environment", {}),
        **_named(specification, _SPECIFICATION),
        **_approval(request.get("ModelApprovalStatus", "PendingManualApproval")),
    }
    known = {*_REQUEST, "InferenceSpecification", "ModelApprovalStatus"}
    rest = {key: request[key] for key in request if key not in known}
    rest = {key: value for key, value in rest.items() if (key, value) != _USUAL}
    extra = {"extra_request": {OPERATION: rest}} if rest else {}
    return {**{key: value for key, value in stage.items() if value not in ({}, [])}, **extra}


def _named(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {own: given[theirs] for theirs, own in names.items() if theirs in given}


def _approval(status: Any) -> dict[str, Any]:
    """Return how a version is approved: as its status says, also where that is known by a run."""
    if isinstance(status, str):
        return {"approval": _STATUS[status]}
    return {"approve_when": {"equal": [status, "Approved"]}}


def compared(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request without what a registration says in other words, or marks as its own."""
    if "InferenceSpecification" not in request:
        return request
    specification = request["InferenceSpecification"]
    containers = [with_url(each) for each in specification.get("Containers", [])]
    metadata = request.get("CustomerMetadataProperties") or {}
    own = {
        **{key: request[key] for key in request if key not in _MARKS},
        "InferenceSpecification": {**specification, "Containers": containers},
        "CustomerMetadataProperties": {
            key: value for key, value in metadata.items() if not key.startswith("orchestration:")
        },
    }
    if not isinstance(own.get("ModelApprovalStatus"), str):
        own.pop("ModelApprovalStatus", None)
    return own
