"""Checks of a request for a training job."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.catalog import instance
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, ServiceError
from orchestration.local.sagemaker.checks.channels import SubnetsOf, check_channels
from orchestration.local.sagemaker.checks.surroundings import (
    check_image,
    check_network,
    check_role,
    repeated,
)
from orchestration.local.sagemaker.hosts.programs import NAME_ONE
from orchestration.local.sagemaker.rules import refusal

_WAYS = ("InstanceType", "InstanceGroups", "InstancePreferences")
_LONGEST_RUN_S = 28 * 24 * 3600
_LONGEST_POOL_S = 3600


def check_training_request(account: Account, request: JsonObject, subnets_of: SubnetsOf) -> None:
    """Refuse a request that SageMaker would refuse despite its correct shape."""
    if "ResourceConfig" not in request:
        raise refusal("cluster is required")
    if "StoppingCondition" not in request:
        raise refusal("time is required")
    _check_time(request)
    _check_cluster(request["ResourceConfig"])
    _check_pool(request)
    image = request["AlgorithmSpecification"].get("TrainingImage", "")
    check_image(account, image, "training image's region")
    check_role(request["RoleArn"])
    check_network(account, request)
    check_channels(account, request, subnets_of)
    if refused := [*_not_simulated(account, request)]:
        raise ServiceError(
            "ValidationException", "the embedded AWS cannot run this: " + "; ".join(refused)
        )


def _check_time(request: JsonObject) -> None:
    stopping = request["StoppingCondition"]
    runtime = stopping.get("MaxRuntimeInSeconds", 24 * 3600)
    wait = stopping.get("MaxWaitTimeInSeconds")
    is_spot = request.get("EnableManagedSpotTraining", False)
    if wait is not None and not is_spot:
        raise refusal("wait needs spot")
    if is_spot and (wait is None or wait < runtime):
        raise refusal("spot needs wait")
    if runtime > _LONGEST_RUN_S:
        raise refusal("28 days", runtime=runtime)


def _check_cluster(resources: JsonObject) -> None:
    ways = [way for way in _WAYS if resources.get(way)]
    if len(ways) != 1:
        raise refusal("type or groups", ways=" and ".join(ways) or "none of them")
    groups = resources.get("InstanceGroups", [])
    if not groups and resources.get("InstanceCount", 0) < 1 and not _counted(resources):
        raise refusal("count of a type")
    for name in repeated(group["InstanceGroupName"] for group in groups):
        raise refusal("groups have names", name=name)
    if resources.get("VolumeKmsKeyId"):
        for kind in [resources.get("InstanceType"), *(each["InstanceType"] for each in groups)]:
            known = instance(kind) if kind else None
            if known and known.local_storage_gb:
                raise refusal("keys of local storage", type=kind)


def _counted(resources: JsonObject) -> bool:
    """Return whether every preferred instance type has a count of its own."""
    preferences = resources.get("InstancePreferences", [])
    return bool(preferences) and all(each.get("InstanceCount") for each in preferences)


def _check_pool(request: JsonObject) -> None:
    resources = request["ResourceConfig"]
    period = resources.get("KeepAlivePeriodInSeconds", 0)
    if period > _LONGEST_POOL_S:
        raise refusal("an hour of pool", period=period)
    if period and request.get("EnableManagedSpotTraining"):
        raise refusal("pools and spot")
    if period and resources.get("InstanceGroups"):
        raise refusal("pools and groups")


def _not_simulated(account: Account, request: JsonObject) -> Iterator[str]:
    """Yield what the simulation would do differently from SageMaker and so refuses."""
    specification = request["AlgorithmSpecification"]
    if "TrainingImage" not in specification and account.stand_ins.of(request) is None:
        yield f"the code of AlgorithmName is unknown, and {NAME_ONE}"
    for member in ("ServerlessJobConfig", "ModelPackageConfig", "DebugRuleConfigurations"):
        if request.get(member):
            yield f"{member} is not simulated"
