"""Models, and endpoints that serve them, as fields of stages; ``KeyError`` where none says them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_CONTAINER: Final = {"Image": "image", "Environment": "environment"}
_PLACES: Final = {("S3Prefix", "None"): False, ("S3Object", "Gzip"): True}
"""True where data is one archive, by its type and compression."""
_SOURCE: Final = ("S3Uri", "S3DataType", "CompressionType")
"""Fields of a model's data that a stage says; it says no accepted license, hub or version."""
_VARIANT: Final = {
    "InstanceType": "instance_type",
    "InitialInstanceCount": "instance_count",
    "ModelDataDownloadTimeoutInSeconds": "download_timeout_s",
    "ContainerStartupHealthCheckTimeoutInSeconds": "startup_timeout_s",
}
_SERVERLESS: Final = {
    "MemorySizeInMB": "memory_mb",
    "MaxConcurrency": "max_concurrency",
    "ProvisionedConcurrency": "provisioned_concurrency",
}
_OURS: Final = ("VariantName", "InitialVariantWeight")
"""Fields of the only variant of an endpoint that a deployment gives itself."""


def model(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a stage that makes a model as a request does."""
    rest = {key: item for key, item in request.items() if key != "ExecutionRoleArn"}
    fields = _container(_only(rest))
    if network := rest.pop("VpcConfig", None):
        fields["vpc"] = {
            "subnets": network["Subnets"],
            "security_groups": network["SecurityGroupIds"],
        }
    if "EnableNetworkIsolation" in rest:
        fields["enable_network_isolation"] = rest.pop("EnableNetworkIsolation")
    if rest:
        raise KeyError(next(iter(rest)))
    return fields


def _only(request: dict[str, Any]) -> Mapping[str, Any]:
    """Take the only container out of a request."""
    if "PrimaryContainer" in request:
        container: Mapping[str, Any] = request.pop("PrimaryContainer")
        return container
    [container] = request.pop("Containers")
    return container


def _container(given: Mapping[str, Any]) -> dict[str, Any]:
    rest = dict(given)
    fields = {own: rest.pop(theirs) for theirs, own in _CONTAINER.items() if rest.get(theirs)}
    rest.pop("Environment", None)
    if "ModelPackageName" in rest:
        fields["model_package"] = rest.pop("ModelPackageName")
    elif "ModelDataUrl" in rest:
        fields |= {"model_data": rest.pop("ModelDataUrl"), "model_archive": True}
    else:
        source = rest.pop("ModelDataSource")["S3DataSource"]
        if more := source.keys() - set(_SOURCE):
            raise KeyError(min(more))
        is_archive = _PLACES[source["S3DataType"], source["CompressionType"]]
        fields |= {"model_data": source["S3Uri"], **({"model_archive": True} if is_archive else {})}
    if rest:
        raise KeyError(next(iter(rest)))
    return fields


def deployment(
    served: Mapping[str, Any], config: Mapping[str, Any], endpoint: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the deployment that makes a model, its configuration and its endpoint."""
    [variant] = config["ProductionVariants"]
    further = {
        "CreateEndpointConfig": {
            key: item
            for key, item in config.items()
            if key not in ("ProductionVariants", "KmsKeyId")
        },
        "CreateEndpoint": {key: item for key, item in endpoint.items() if key != "EndpointName"},
    }
    extra = {operation: fields for operation, fields in further.items() if fields}
    if any("Tags" in fields for fields in extra.values()):
        raise KeyError("Tags")
    return {
        "kind": "deployment",
        **model(served),
        "endpoint_name": endpoint["EndpointName"],
        **_variant(variant),
        **({"volume_kms_key": config["KmsKeyId"]} if "KmsKeyId" in config else {}),
        **({"extra_request": extra} if extra else {}),
    }


def _variant(given: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: item for key, item in given.items() if key not in _OURS}
    fields = {own: rest.pop(theirs) for theirs, own in _VARIANT.items() if theirs in rest}
    if "ServerlessConfig" in rest:
        fields["serverless"] = {_SERVERLESS[k]: v for k, v in rest.pop("ServerlessConfig").items()}
    if "RoutingConfig" in rest:
        fields["routing"] = rest.pop("RoutingConfig")["RoutingStrategy"].lower()
    if rest:
        raise KeyError(next(iter(rest)))
    return fields


def compared(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request as a definition and a stage say it alike."""
    if "Containers" in request and "InferenceExecutionConfig" not in request:
        [container] = request["Containers"]
        rest = {key: item for key, item in request.items() if key != "Containers"}
        request = {**rest, "PrimaryContainer": container}
    if "PrimaryContainer" not in request:
        return request
    return {**request, "PrimaryContainer": with_url(request["PrimaryContainer"])}


def with_url(container: Mapping[str, Any]) -> dict[str, Any]:
    """Return a container with its data as the older of two fields names it."""
    source = container.get("ModelDataSource", {}).get("S3DataSource")
    if source is None:
        return dict(container)
    rest = {key: value for key, value in container.items() if key != "ModelDataSource"}
    more = {key: value for key, value in source.items() if key not in _SOURCE}
    kept = {"ModelDataSource": {"S3DataSource": more}} if more else {}
    return {**rest, **kept, "ModelDataUrl": source["S3Uri"]}
