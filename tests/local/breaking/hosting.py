"""Requests for models and endpoints that break SageMaker's rules, each of them once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws
from tests.local.breaking.jobs import ELSEWHERE, FOREIGN, NETWORK, THEIRS
from tests.local.conftest import BUCKET, IMAGE, ROLE, put, tar_gz, wait

NOT_A_MODEL = "raise SystemExit('this model does not load')"
_numbers = itertools.count()


def model(aws: EmbeddedAws, container: dict[str, Any] | None = None, /, **more: Any) -> str:
    name = f"breaking-{next(_numbers)}"
    request = {
        "ModelName": name,
        "ExecutionRoleArn": ROLE,
        "PrimaryContainer": {"Image": IMAGE, **(container or {})},
        **more,
    }
    aws.client("sagemaker").create_model(**request)
    return str(request["ModelName"])


def in_sequence(aws: EmbeddedAws, *containers: dict[str, Any]) -> str:
    """Create a model of several containers, and return its name."""
    name = f"breaking-{next(_numbers)}"
    aws.client("sagemaker").create_model(
        ModelName=name,
        ExecutionRoleArn=ROLE,
        Containers=[{"Image": IMAGE, **each} for each in containers],
    )
    return name


def prefix(uri: str) -> dict[str, Any]:
    source = {"S3Uri": uri, "S3DataType": "S3Prefix", "CompressionType": "None"}
    return {"ModelDataSource": {"S3DataSource": source}}


def variant(aws: EmbeddedAws, **more: Any) -> dict[str, Any]:
    instances = {"InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    if "ServerlessConfig" in more:
        instances = {}
    return {
        "VariantName": "all",
        "ModelName": more.pop("ModelName", None) or model(aws),
        **instances,
        **more,
    }


def serverless(**more: Any) -> dict[str, Any]:
    return {"ServerlessConfig": {"MemorySizeInMB": 2048, "MaxConcurrency": 2, **more}}


def configuration(aws: EmbeddedAws, *variants: dict[str, Any], name: str | None = None) -> str:
    name = name or f"breaking-{next(_numbers)}"
    aws.client("sagemaker").create_endpoint_config(
        EndpointConfigName=name, ProductionVariants=list(variants) or [variant(aws)]
    )
    return name


def endpoint(aws: EmbeddedAws, *variants: dict[str, Any], status: str = "") -> str:
    """Create an endpoint and return its name once it has a status."""
    name = f"breaking-{next(_numbers)}"
    sagemaker = aws.client("sagemaker")
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=configuration(aws, *variants))
    if status:
        wait(
            lambda: sagemaker.describe_endpoint(EndpointName=name),
            lambda described: described["EndpointStatus"] == status,
        )
    return name


def update(aws: EmbeddedAws, name: str, *variants: dict[str, Any], **more: Any) -> None:
    aws.client("sagemaker").update_endpoint(
        EndpointName=name, EndpointConfigName=configuration(aws, *variants), **more
    )


def served(aws: EmbeddedAws) -> dict[str, Any]:
    """Return a variant whose model loads."""
    code = tar_gz({"code/inference.py": "def model_fn(folder): return folder"})
    uri = put(aws, "breaking/loads.tar.gz", code)
    return variant(aws, ModelName=model(aws, {"ModelDataUrl": uri}))


def _model(container: dict[str, Any] | None = None, /, **more: Any) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: model(aws, container, **more)


def _variant(**more: Any) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: configuration(aws, variant(aws, **more))


def _serverless(**more: Any) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: configuration(
        aws, variant(aws, ModelName=model(aws, **more), **serverless())
    )


def _deployed(policy: dict[str, Any], **more: Any) -> Callable[[EmbeddedAws], Any]:
    def deploy(aws: EmbeddedAws) -> None:
        aws.client("sagemaker").create_endpoint(
            EndpointName=f"breaking-{next(_numbers)}",
            EndpointConfigName=configuration(aws, variant(aws, **more)),
            DeploymentConfig=policy,
        )

    return deploy


def traffic(kind: str, *, wait_s: int = 60, limit_s: int = 3600, **sizes: Any) -> dict[str, Any]:
    routing = {"Type": kind, "WaitIntervalInSeconds": wait_s, **sizes}
    policy = {"TrafficRoutingConfiguration": routing, "MaximumExecutionTimeoutInSeconds": limit_s}
    return {"BlueGreenUpdatePolicy": policy}


def rolling(percent: int = 50) -> dict[str, Any]:
    return {"RollingUpdatePolicy": {"MaximumBatchSize": part(percent), "WaitIntervalInSeconds": 60}}


def part(percent: int) -> dict[str, Any]:
    return {"Type": "CAPACITY_PERCENT", "Value": percent}


def _twice_created(aws: EmbeddedAws) -> None:
    name = endpoint(aws)
    aws.client("sagemaker").create_endpoint(
        EndpointName=name, EndpointConfigName=configuration(aws)
    )


def _failed(aws: EmbeddedAws) -> str:
    uri = put(aws, "breaking/fails.tar.gz", tar_gz({"code/inference.py": NOT_A_MODEL}))
    container = {"ModelDataUrl": uri}
    return endpoint(aws, variant(aws, ModelName=model(aws, container)), status="Failed")


def _to_serverless(aws: EmbeddedAws) -> None:
    name = endpoint(aws, served(aws), status="InService")
    try:
        update(aws, name, variant(aws, **serverless()))
    finally:
        aws.client("sagemaker").delete_endpoint(EndpointName=name)


def _renamed(aws: EmbeddedAws) -> None:
    name = endpoint(aws, served(aws), status="InService")
    policy = traffic("ALL_AT_ONCE")
    try:
        update(aws, name, variant(aws, VariantName="other"), DeploymentConfig=policy)
    finally:
        aws.client("sagemaker").delete_endpoint(EndpointName=name)


def _asked(*, is_queued: bool, **how: Any) -> Callable[[EmbeddedAws], Any]:
    """Ask an endpoint that serves at once, or one with a queue, in a way that it refuses."""

    def ask(aws: EmbeddedAws) -> None:
        name, client = f"breaking-{next(_numbers)}", aws.client("sagemaker")
        queue = {"AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": f"s3://{BUCKET}/out"}}}
        client.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[served(aws)],
            **(queue if is_queued else {}),
        )
        client.create_endpoint(EndpointName=name, EndpointConfigName=name)
        wait(
            lambda: client.describe_endpoint(EndpointName=name),
            lambda described: described["EndpointStatus"] == "InService",
        )
        runtime = aws.client("sagemaker-runtime")
        try:
            if how:
                runtime.invoke_endpoint_async(EndpointName=name, **how)
            else:
                runtime.invoke_endpoint(EndpointName=name, Body=b"1")
        finally:
            client.delete_endpoint(EndpointName=name)

    return ask


def _scaled(**changes: Any) -> Callable[[EmbeddedAws], Any]:
    """Update an endpoint whose variant is a scalable target."""

    def retype(aws: EmbeddedAws) -> None:
        name = endpoint(aws, served(aws), status="InService")
        aws.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId=f"endpoint/{name}/variant/all",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            MinCapacity=1,
            MaxCapacity=4,
        )
        try:
            update(aws, name, variant(aws, **changes))
        finally:
            aws.client("sagemaker").delete_endpoint(EndpointName=name)

    return retype


def _shadowed(*shadows: str, **more: Any) -> Callable[[EmbeddedAws], Any]:
    """Configure shadows, by their names, of a variant that may have several containers."""

    def shadow(aws: EmbeddedAws) -> None:
        containers = more.pop("containers", 1)
        model_name = in_sequence(aws, *[{}] * containers)
        aws.client("sagemaker").create_endpoint_config(
            EndpointConfigName=f"breaking-{next(_numbers)}",
            ProductionVariants=[variant(aws, ModelName=model_name, **more)],
            ShadowProductionVariants=[variant(aws, VariantName=name) for name in shadows],
        )

    return shadow


def _two(aws: EmbeddedAws) -> list[dict[str, Any]]:
    return [variant(aws, VariantName=name, InitialInstanceCount=2) for name in ("a", "b")]


def _unknown_variant(aws: EmbeddedAws) -> None:
    name = endpoint(aws, served(aws), status="InService")
    try:
        aws.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=name, TargetVariant="other", Body=b"1"
        )
    finally:
        aws.client("sagemaker").delete_endpoint(EndpointName=name)


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "model image's region": _model({"Image": FOREIGN}),
    "model data exists": _model({"ModelDataUrl": f"s3://{BUCKET}/no-such-model.tar.gz"}),
    "model data's region": _model({"ModelDataUrl": f"s3://{ELSEWHERE}/data/file"}),
    "prefixes of models": _model(prefix(f"s3://{BUCKET}/data")),
    "one or several containers": _model(Containers=[{"Image": IMAGE}]),
    "names of containers": lambda aws: in_sequence(aws, {"ContainerHostname": "first"}, {}),
    "models once": lambda aws: model(aws, ModelName=model(aws)),
    "models exist": _variant(ModelName="no-such-model"),
    "configurations once": lambda aws: configuration(aws, name=configuration(aws)),
    "configurations exist": lambda aws: aws.client("sagemaker").create_endpoint(
        EndpointName="breaking", EndpointConfigName="no-such-configuration"
    ),
    "variants once": lambda aws: configuration(aws, variant(aws), variant(aws)),
    "instances or serverless": lambda aws: configuration(
        aws, {"VariantName": "all", "ModelName": model(aws)}
    ),
    "pools of instances": _variant(InstancePools=[{"InstanceType": "ml.m5.xlarge", "Priority": 1}]),
    "volumes of local storage": _variant(InstanceType="ml.g5.xlarge", VolumeSizeInGB=100),
    "memory in steps": _variant(**serverless(MemorySizeInMB=1500)),
    "provisioned concurrency": _variant(**serverless(ProvisionedConcurrency=3)),
    "serverless in a VPC": _serverless(VpcConfig=NETWORK),
    "serverless in isolation": _serverless(EnableNetworkIsolation=True),
    "serverless in sequence": lambda aws: configuration(
        aws, variant(aws, ModelName=in_sequence(aws, {}, {}), **serverless())
    ),
    "rolling one variant": lambda aws: aws.client("sagemaker").create_endpoint(
        EndpointName=f"breaking-{next(_numbers)}",
        EndpointConfigName=configuration(aws, *_two(aws)),
        DeploymentConfig=rolling(),
    ),
    "one shadow": _shadowed("one", "two"),
    "what has a shadow": _shadowed("one", **serverless()),
    "variants to invoke": _unknown_variant,
    "endpoints once": _twice_created,
    "endpoints exist": lambda aws: update(aws, "no-such-endpoint"),
    "no update in progress": lambda aws: update(aws, endpoint(aws)),
    "no deletion in progress": lambda aws: aws.client("sagemaker").delete_endpoint(
        EndpointName=endpoint(aws)
    ),
    "no update of a failure": lambda aws: update(aws, _failed(aws)),
    "no update to serverless": _to_serverless,
    "endpoints to invoke serve": lambda aws: aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=endpoint(aws), Body=b"{}"
    ),
    "queued requests": _asked(is_queued=True),
    "requests without a queue": _asked(is_queued=False, InputLocation=f"s3://{BUCKET}/data/file"),
    "requests in S3": _asked(is_queued=True, InputLocation=f"s3://{BUCKET}/no-such-request"),
    "one policy": _deployed({**traffic("ALL_AT_ONCE"), **rolling()}),
    "sizes of canaries": _deployed(traffic("CANARY")),
    "sizes of steps": _deployed(traffic("ALL_AT_ONCE", LinearStepSize=part(20))),
    "half a canary": _deployed(traffic("CANARY", CanarySize=part(51)), InitialInstanceCount=2),
    "linear steps": _deployed(traffic("LINEAR", LinearStepSize=part(9)), InitialInstanceCount=2),
    "rolling batches": _deployed(rolling(4), InitialInstanceCount=2),
    "time to wait": _deployed(
        traffic("LINEAR", wait_s=900, LinearStepSize=part(20)), InitialInstanceCount=2
    ),
    "alarms exist": _deployed({"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "none"}]}}),
    "variants stay": _renamed,
    "scaled variants stay": _scaled(InstanceType="ml.m5.xlarge"),
    "rolling instances": _deployed(rolling(), **serverless()),
}

ALSO: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "a model's role": (
        "role",
        _model(ExecutionRoleArn="arn:aws:iam::123456789012:role/no-such-role"),
    ),
    "model data of another account": (
        "model data's region",
        _model({"ModelDataUrl": f"s3://{THEIRS}/data/file"}),
    ),
    "both instances and serverless": (
        "instances or serverless",
        _variant(**serverless(), InstanceType="ml.m5.large"),
    ),
    "a tenth of one instance": (
        "half a canary",
        _deployed(traffic("CANARY", CanarySize=part(10))),
    ),
    "a scaled variant that is removed": ("scaled variants stay", _scaled(VariantName="other")),
    "a shadow on Inf1": ("what has a shadow", _shadowed("one", InstanceType="ml.inf1.xlarge")),
    "a shadow of containers": ("what has a shadow", _shadowed("one", containers=2)),
    "a canary of one instance of one": (
        "half a canary",
        _deployed(traffic("CANARY", CanarySize={"Type": "INSTANCE_COUNT", "Value": 1})),
    ),
}
"""Other ways to break a rule: what is wrong, and the rule."""
