"""Checks of requests for models and endpoint configurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestration.catalog import instance
from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, ServiceError
from orchestration.local.account.storage import Caller, Location
from orchestration.local.sagemaker.checks.surroundings import (
    caller,
    check_image,
    check_network,
    check_role,
    not_simulated,
    repeated,
)
from orchestration.local.sagemaker.rules import refusal

_MEMORY_STEP = 1024


def check_model(account: Account, request: JsonObject) -> None:
    """Refuse a model whose image, data, role or network SageMaker would refuse."""
    if bool(request.get("PrimaryContainer")) == bool(request.get("Containers")):
        raise refusal("one or several containers")
    if request.get("InferenceExecutionConfig", {}).get("Mode") == "Direct":
        not_simulated(["containers that are called directly"])
    served = containers(request)
    names = [each["ContainerHostname"] for each in served if "ContainerHostname" in each]
    if len(served) > 1 and (len(names) not in (0, len(served)) or list(repeated(names))):
        raise refusal("names of containers")
    if "ExecutionRoleArn" in request:
        check_role(request["ExecutionRoleArn"])
    check_network(account, request)
    for container in served:
        check_image(account, container.get("Image", ""), "model image's region")
        _check_data(account, request, container)


def containers(model: JsonObject) -> list[JsonObject]:
    """Return the containers of a model, in the order in which a request passes them."""
    return list(model.get("Containers") or [model["PrimaryContainer"]])


def model_data(container: JsonObject, reader: Caller) -> Location | None:
    """Return the location of a container's model, or None."""
    if container.get("ModelDataUrl"):
        return Location.parse(container["ModelDataUrl"], reader)
    source: Any = container.get("ModelDataSource", {}).get("S3DataSource")
    return Location.parse(source["S3Uri"], reader) if source else None


def model_reader(account: Account, request: JsonObject) -> Caller:
    """Return who SageMaker is for S3 when it fetches a model, from the model's request."""
    return caller(account, request.get("ExecutionRoleArn", ACCOUNT_ID))


def check_variants(request: JsonObject) -> None:
    """Refuse production variants that break a rule of SageMaker, and what is not simulated."""
    variants = all_variants(request)
    for name in repeated(variant["VariantName"] for variant in variants):
        raise refusal("variants once", variant=name)
    not_simulated(_not_simulated(variants))
    _check_shadow(request)
    for variant in variants:
        if "ModelName" in variant and "ManagedInstanceScaling" in variant:
            raise refusal("managed instances of components")
        if "ModelName" not in variant and "ExecutionRoleArn" not in request:
            raise refusal("a role for components")
        if "ServerlessConfig" in variant:
            _check_serverless(variant)
        else:
            _check_instances(variant)


def all_variants(config: JsonObject) -> list[JsonObject]:
    """Return the variants of a configuration: those that answer, and behind them their shadows."""
    return [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]


def instance_types(variant: JsonObject) -> list[str]:
    """Return the instance types that a variant may have."""
    pools = [pool["InstanceType"] for pool in variant.get("InstancePools", [])]
    return [*([variant["InstanceType"]] if "InstanceType" in variant else []), *pools]


def check_shadowed_model(variant: JsonObject, model: JsonObject) -> None:
    """Refuse several containers in a variant that has a shadow, or is one."""
    if len(containers(model)) > 1:
        raise refusal("what has a shadow", variant=variant["VariantName"])


def check_served_model(variant: JsonObject, model: JsonObject) -> None:
    """Refuse a serverless variant of a model that needs a network of its own."""
    if "ServerlessConfig" not in variant:
        return
    if model.get("VpcConfig"):
        raise refusal("serverless in a VPC", variant=variant["VariantName"])
    if model.get("EnableNetworkIsolation"):
        raise refusal("serverless in isolation", variant=variant["VariantName"])
    if model.get("Containers"):
        raise refusal("serverless in sequence", variant=variant["VariantName"])


def _check_data(account: Account, request: JsonObject, container: JsonObject) -> None:
    source = container.get("ModelDataSource", {}).get("S3DataSource", {})
    if source.get("S3DataType") == "S3Prefix" and not source["S3Uri"].endswith("/"):
        raise refusal("prefixes of models", uri=source["S3Uri"])
    reader = model_reader(account, request)
    data = model_data(container, reader)
    if data is not None:
        is_prefix = source.get("S3DataType") == "S3Prefix"
        _check_there(account, request, data, is_prefix=is_prefix)
    for beside in container.get("AdditionalModelDataSources", []):
        source = beside["S3DataSource"]
        place, is_prefix = (
            Location.parse(source["S3Uri"], reader),
            source["S3DataType"] != "S3Object",
        )
        _check_there(account, request, place, is_prefix=is_prefix)


def _check_there(account: Account, request: JsonObject, data: Location, *, is_prefix: bool) -> None:
    try:
        there = storage.has_objects(data) if is_prefix else storage.exists(data)
    except ServiceError as error:
        if error.code == "NoSuchBucket":
            raise refusal("model data exists", uri=data) from None
        role = request.get("ExecutionRoleArn", "")
        raise refusal("model data's region", uri=data, role=role, region=account.region) from None
    if not there:
        raise refusal("model data exists", uri=data)


def _check_shadow(request: JsonObject) -> None:
    """Refuse a shadow beside others, or of what SageMaker makes no copies of requests for."""
    shadows = request.get("ShadowProductionVariants", [])
    if not shadows:
        return
    if len(all_variants(request)) > len(("one that answers", "its shadow")):
        raise refusal("one shadow")
    for variant in all_variants(request):
        is_inf1 = any(kind.startswith("ml.inf1.") for kind in instance_types(variant))
        if is_inf1 or "ServerlessConfig" in variant or "AsyncInferenceConfig" in request:
            raise refusal("what has a shadow", variant=variant["VariantName"])


def _not_simulated(variants: list[JsonObject]) -> Iterator[str]:
    if len(variants) > 1 and any("ModelName" not in variant for variant in variants):
        yield "several variants of which one has no ModelName"
    pools = (pool for variant in variants for pool in variant.get("InstancePools", []))
    if any("ModelNameOverride" in pool for pool in pools):
        yield "InstancePools with a ModelNameOverride"


def _check_instances(variant: JsonObject) -> None:
    kinds = instance_types(variant)
    if not kinds or "InitialInstanceCount" not in variant:
        raise refusal("instances or serverless", variant=variant["VariantName"])
    priorities = [pool["Priority"] for pool in variant.get("InstancePools", [])]
    if priorities and ("InstanceType" in variant or [*repeated(kinds), *repeated(priorities)]):
        raise refusal("pools of instances", variant=variant["VariantName"])
    for kind in kinds:
        known = instance(kind)
        if "VolumeSizeInGB" in variant and known and known.local_storage_gb:
            raise refusal("volumes of local storage", type=kind)


def _check_serverless(variant: JsonObject) -> None:
    if variant.keys() & {"InstanceType", "InstancePools", "InitialInstanceCount"}:
        raise refusal("instances or serverless", variant=variant["VariantName"])
    config = variant["ServerlessConfig"]
    if config["MemorySizeInMB"] % _MEMORY_STEP:
        raise refusal("memory in steps", memory=config["MemorySizeInMB"])
    provisioned = config.get("ProvisionedConcurrency", 0)
    if provisioned > config["MaxConcurrency"]:
        raise refusal(
            "provisioned concurrency",
            provisioned=provisioned,
            concurrency=config["MaxConcurrency"],
        )
