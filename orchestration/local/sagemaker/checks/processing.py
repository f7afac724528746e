"""Checks of a request for a processing job."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, ServiceError
from orchestration.local.sagemaker.checks.surroundings import (
    check_image,
    check_network,
    check_role,
    repeated,
)
from orchestration.local.sagemaker.hosts.programs import NAME_ONE
from orchestration.local.sagemaker.rules import refusal


def check_processing_request(account: Account, request: JsonObject) -> None:
    """Refuse what SageMaker refuses, and what the simulation cannot do."""
    inputs = request.get("ProcessingInputs", [])
    outputs = request.get("ProcessingOutputConfig", {}).get("Outputs", [])
    for name in repeated(each["InputName"] for each in inputs):
        raise refusal("inputs once", name=name)
    for name in repeated(each["OutputName"] for each in outputs):
        raise refusal("outputs once", name=name)
    paths = [each.get("S3Input", {}).get("LocalPath") for each in inputs]
    for path in repeated(path for path in paths if path):
        raise refusal("local paths once", path=path)
    for each in inputs:
        _check_input(each["InputName"], each.get("S3Input", {}))
    check_image(account, request["AppSpecification"]["ImageUri"], "processing image's region")
    check_role(request["RoleArn"])
    check_network(account, request)
    if refused := [*_not_simulated(account, request)]:
        raise ServiceError(
            "ValidationException", "the embedded AWS cannot run this: " + "; ".join(refused)
        )


def _check_input(name: str, source: JsonObject) -> None:
    path = source.get("LocalPath")
    if path is not None and not path.startswith("/opt/ml/processing/"):
        raise refusal("inputs below /opt/ml/processing", name=name, path=path)
    is_piped = source.get("S3InputMode") == "Pipe"
    if source.get("S3CompressionType") == "Gzip" and not is_piped:
        raise refusal("compressed inputs are piped", name=name)


def _not_simulated(account: Account, request: JsonObject) -> Iterator[str]:
    has_program = request["AppSpecification"].get("ContainerEntrypoint")
    if not has_program and account.stand_ins.of(request) is None:
        yield f"the image has a program of its own, and {NAME_ONE}"
    for each in request.get("ProcessingInputs", []):
        name, source = each["InputName"], each.get("S3Input")
        if source is None:
            yield f"input '{name}' has no S3Input"
        elif "LocalPath" not in source:
            yield f"input '{name}' has no LocalPath"
        elif source.get("S3InputMode") == "Pipe":
            yield f"input '{name}' has the S3InputMode Pipe"
    for each in request.get("ProcessingOutputConfig", {}).get("Outputs", []):
        if "S3Output" not in each:
            yield f"output '{each['OutputName']}' has no S3Output"
