"""Requests for inference components that break SageMaker's rules, each of them once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws, Fault
from tests.local.breaking.hosting import in_sequence, model, part, served, variant
from tests.local.conftest import ROLE, wait

_numbers = itertools.count()


def configuration(aws: EmbeddedAws, *, role: str | None = ROLE, **more: Any) -> str:
    """Configure an endpoint without a model."""
    name = f"shared-{next(_numbers)}"
    machines = {"InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    aws.client("sagemaker").create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[{"VariantName": "all", **machines, **more}],
        **({} if role is None else {"ExecutionRoleArn": role}),
    )
    return name


def shared(aws: EmbeddedAws) -> str:
    """Create an endpoint without a model, and return its name once it is in service."""
    name, client = f"shared-{next(_numbers)}", aws.client("sagemaker")
    client.create_endpoint(EndpointName=name, EndpointConfigName=configuration(aws))
    wait(
        lambda: client.describe_endpoint(EndpointName=name),
        lambda described: described["EndpointStatus"] == "InService",
    )
    return name


def component(
    aws: EmbeddedAws,
    endpoint: str | None = None,
    *,
    model_name: str | None = None,
    copies: int = 1,
    memory: int = 1024,
    variant_name: str = "all",
) -> str:
    """Create a component of a model that loads, and return its name."""
    name = f"component-{next(_numbers)}"
    served_name = model_name or served(aws)["ModelName"]
    needs = {"MinMemoryRequiredInMb": memory}
    aws.client("sagemaker").create_inference_component(
        InferenceComponentName=name,
        EndpointName=endpoint or shared(aws),
        VariantName=variant_name,
        Specification={"ModelName": served_name, "ComputeResourceRequirements": needs},
        RuntimeConfig={"CopyCount": copies},
    )
    return name


def described(aws: EmbeddedAws, name: str, *statuses: str) -> dict[str, Any]:
    """Wait for one of some statuses, and return the description of a component."""
    client = aws.client("sagemaker")
    return wait(
        lambda: client.describe_inference_component(InferenceComponentName=name),
        lambda each: each["InferenceComponentStatus"] in statuses,
    )


def _twice(aws: EmbeddedAws) -> None:
    name = component(aws)
    aws.client("sagemaker").create_inference_component(
        InferenceComponentName=name, EndpointName="none", Specification={"ModelName": "none"}
    )


def _rolled(aws: EmbeddedAws) -> None:
    name = component(aws, copies=2)
    described(aws, name, "InService")
    policy = {"MaximumBatchSize": part(100), "WaitIntervalInSeconds": 60}
    aws.client("sagemaker").update_inference_component(
        InferenceComponentName=name,
        RuntimeConfig={"CopyCount": 2},
        DeploymentConfig={"RollingUpdatePolicy": policy},
    )


def _changed(aws: EmbeddedAws) -> None:
    name = component(aws)
    described(aws, name, "InService")
    policy = {"MaximumBatchSize": part(50), "WaitIntervalInSeconds": 60}
    aws.client("sagemaker").update_inference_component(
        InferenceComponentName=name, DeploymentConfig={"RollingUpdatePolicy": policy}
    )


def _deleted_below(aws: EmbeddedAws) -> None:
    endpoint = shared(aws)
    described(aws, component(aws, endpoint), "InService")
    aws.client("sagemaker").delete_endpoint(EndpointName=endpoint)


def _invoked(**how: Any) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: aws.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=shared(aws), Body=b"1", **how
    )


def _on_a_model(aws: EmbeddedAws) -> None:
    client, name = aws.client("sagemaker"), f"shared-{next(_numbers)}"
    client.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant(aws)])
    client.create_endpoint(EndpointName=name, EndpointConfigName=name)
    component(aws, name, model_name=model(aws))


def _on_a_failed_one(aws: EmbeddedAws) -> None:
    client, name = aws.client("sagemaker"), f"shared-{next(_numbers)}"
    aws.inject(Fault.job(name, operation="CreateEndpoint"))
    client.create_endpoint(EndpointName=name, EndpointConfigName=configuration(aws))
    wait(
        lambda: client.describe_endpoint(EndpointName=name),
        lambda each: each["EndpointStatus"] == "Failed",
    )
    component(aws, name, model_name=model(aws))


def _scaling(operation: str, registered: bool = False, **how: Any) -> Callable[[EmbeddedAws], Any]:
    """Ask for the scaling of a component, which may be a scalable target already."""

    def scale(aws: EmbeddedAws) -> None:
        name = component(aws)
        described(aws, name, "InService")
        client = aws.client("application-autoscaling")
        asked = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": f"inference-component/{name}",
            "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        }
        if registered:
            client.register_scalable_target(**asked, MinCapacity=1, MaxCapacity=2)
        getattr(client, operation)(**asked, **how)

    return scale


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "managed instances of components": lambda aws: configuration(
        aws, ModelName=model(aws), ManagedInstanceScaling={"Status": "ENABLED"}
    ),
    "a role for components": lambda aws: configuration(aws, role=None),
    "components once": _twice,
    "components exist": lambda aws: described(aws, "no-such-component", "InService"),
    "copies of components": lambda aws: component(aws, copies=0),
    "components of one container": lambda aws: component(aws, model_name=in_sequence(aws, {}, {})),
    "endpoints of components": _on_a_model,
    "endpoints of components serve": _on_a_failed_one,
    "needs of components": lambda aws: aws.client("sagemaker").create_inference_component(
        InferenceComponentName="without-needs",
        EndpointName=shared(aws),
        VariantName="all",
        Specification={"ModelName": served(aws)["ModelName"]},
        RuntimeConfig={"CopyCount": 1},
    ),
    "changes of components": _changed,
    "variants of components": lambda aws: component(aws, variant_name="other"),
    "no component update in progress": lambda aws: aws.client(
        "sagemaker"
    ).update_inference_component(
        InferenceComponentName=component(aws), RuntimeConfig={"CopyCount": 2}
    ),
    "no component deletion in progress": lambda aws: aws.client(
        "sagemaker"
    ).delete_inference_component(InferenceComponentName=component(aws)),
    "rolling copies": _rolled,
    "components to invoke": _invoked(),
    "components to invoke exist": _invoked(InferenceComponentName="no-such-component"),
    "endpoints without components": _deleted_below,
    "bounds of what is scaled": _scaling("register_scalable_target", MinCapacity=4, MaxCapacity=2),
    "bounds of a new target": _scaling("register_scalable_target", MinCapacity=1),
    "what is scaled is registered": _scaling("put_scaling_policy", PolicyName="load"),
    "scaling policies exist": _scaling("delete_scaling_policy", registered=True, PolicyName="load"),
}

ALSO: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "bounds of which one is new": (
        "bounds of what is scaled",
        _scaling("register_scalable_target", registered=True, MinCapacity=3),
    ),
    "a target that is not there": (
        "what is scaled is registered",
        _scaling("deregister_scalable_target"),
    ),
    "a policy of a variant": (
        "what is scaled is registered",
        lambda aws: aws.client("application-autoscaling").put_scaling_policy(
            PolicyName="load",
            ServiceNamespace="sagemaker",
            ResourceId="endpoint/none/variant/main",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        ),
    ),
}
