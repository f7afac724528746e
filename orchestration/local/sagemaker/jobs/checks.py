"""What SageMaker asks of requests beyond their shapes, and what the simulation can't do."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.local.account.protocol import JsonObject, ServiceError


def check_training_request(request: JsonObject) -> None:
    """What SageMaker asks for beyond the shapes of the request."""
    problems = []
    for member in ("ResourceConfig", "StoppingCondition"):
        if member not in request:
            problems.append(f"{member} is required")
    stopping = request.get("StoppingCondition", {})
    longest = stopping.get("MaxWaitTimeInSeconds")
    is_spot = request.get("EnableManagedSpotTraining", False)
    if is_spot and longest is None:
        problems.append("MaxWaitTimeInSeconds is required for managed spot training")
    if longest is not None and not is_spot:
        problems.append("MaxWaitTimeInSeconds needs EnableManagedSpotTraining")
    if longest is not None and longest < stopping.get("MaxRuntimeInSeconds", 0):
        problems.append("MaxWaitTimeInSeconds must be at least MaxRuntimeInSeconds")
    if _mounts(request) and not request.get("VpcConfig"):
        problems.append("VpcConfig is required for a FileSystemDataSource")
    if problems:
        raise ServiceError("ValidationException", "; ".join(problems))
    if unable := [*_not_simulated(request)]:
        raise ServiceError(
            "ValidationException", "the embedded AWS can't run this: " + "; ".join(unable)
        )


def _not_simulated(request: JsonObject) -> Iterator[str]:
    """What would be done otherwise than on SageMaker, and so is not done at all."""
    specification = request["AlgorithmSpecification"]
    if "TrainingImage" not in specification:
        yield "AlgorithmName: nobody knows what it runs"


def _mounts(request: JsonObject) -> bool:
    channels = request.get("InputDataConfig", [])
    return any("FileSystemDataSource" in channel["DataSource"] for channel in channels)


def check_processing_request(request: JsonObject) -> None:
    """What the simulation can't do is refused, not left out."""
    problems = []
    if not request["AppSpecification"].get("ContainerEntrypoint"):
        problems.append("AppSpecification.ContainerEntrypoint is needed: an image's own is unknown")
    for put in request.get("ProcessingInputs", []):
        if "S3Input" not in put:
            problems.append(f"input '{put['InputName']}' is no S3Input")
        elif "LocalPath" not in put["S3Input"]:
            problems.append(f"input '{put['InputName']}' has no LocalPath")
    for put in request.get("ProcessingOutputConfig", {}).get("Outputs", []):
        if "S3Output" not in put:
            problems.append(f"output '{put['OutputName']}' is no S3Output")
    if problems:
        raise ServiceError(
            "ValidationException", "the embedded AWS can't run this: " + "; ".join(problems)
        )
