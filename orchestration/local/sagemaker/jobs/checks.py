"""Checks of requests beyond their shapes: rules of SageMaker, limits of the simulation."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.local.account.protocol import JsonObject, ServiceError


def check_training_request(request: JsonObject) -> None:
    """Refuse a request that SageMaker would refuse despite its correct shape."""
    problems = []
    for member in ("ResourceConfig", "StoppingCondition"):
        if member not in request:
            problems.append(f"{member} is required")
    stopping = request.get("StoppingCondition", {})
    longest_wait = stopping.get("MaxWaitTimeInSeconds")
    is_spot = request.get("EnableManagedSpotTraining", False)
    if is_spot and longest_wait is None:
        problems.append("MaxWaitTimeInSeconds is required for managed spot training")
    if longest_wait is not None and not is_spot:
        problems.append("MaxWaitTimeInSeconds needs EnableManagedSpotTraining")
    if longest_wait is not None and longest_wait < stopping.get("MaxRuntimeInSeconds", 0):
        problems.append("MaxWaitTimeInSeconds must be at least MaxRuntimeInSeconds")
    if _mounts(request) and not request.get("VpcConfig"):
        problems.append("VpcConfig is required for a FileSystemDataSource")
    if problems:
        raise ServiceError("ValidationException", "; ".join(problems))
    if refused := [*_not_simulated(request)]:
        raise ServiceError(
            "ValidationException", "the embedded AWS cannot run this: " + "; ".join(refused)
        )


def _not_simulated(request: JsonObject) -> Iterator[str]:
    """Yield what the simulation would do differently from SageMaker and so refuses."""
    specification = request["AlgorithmSpecification"]
    if "TrainingImage" not in specification:
        yield "AlgorithmName: the code of an algorithm is unknown"


def _mounts(request: JsonObject) -> bool:
    channels = request.get("InputDataConfig", [])
    return any("FileSystemDataSource" in channel["DataSource"] for channel in channels)


def check_processing_request(request: JsonObject) -> None:
    """Refuse what the simulation cannot do, instead of leaving it out."""
    problems = []
    if not request["AppSpecification"].get("ContainerEntrypoint"):
        problems.append(
            "AppSpecification.ContainerEntrypoint is required: that of the image is unknown"
        )
    for source in request.get("ProcessingInputs", []):
        if "S3Input" not in source:
            problems.append(f"input '{source['InputName']}' has no S3Input")
        elif "LocalPath" not in source["S3Input"]:
            problems.append(f"input '{source['InputName']}' has no LocalPath")
    for target in request.get("ProcessingOutputConfig", {}).get("Outputs", []):
        if "S3Output" not in target:
            problems.append(f"output '{target['OutputName']}' has no S3Output")
    if problems:
        raise ServiceError(
            "ValidationException", "the embedded AWS cannot run this: " + "; ".join(problems)
        )
