"""The rules of models, endpoint configurations and endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "ValidationException"
_GUIDE = "guide: https://docs.aws.amazon.com/sagemaker/latest/dg"
_SERVERLESS = f"{_GUIDE}/serverless-endpoints.html; wording assumed"
_TRAFFIC = "model: TrafficRoutingConfig; wording assumed"

HOSTING: Final[Mapping[str, Rule]] = {
    # CreateModel
    "model image's region": Rule(
        _REFUSED,
        'Region of "{image}" does not match expected region of {region}. Cross region ECR image '
        "pulls are not allowed.",
        "issue: https://github.com/aws/sagemaker-pytorch-inference-toolkit/pull/7",
    ),
    "model data exists": Rule(
        _REFUSED,
        "Could not find model data at {uri}.",
        "issue: https://github.com/aws-ia/ecs-blueprints/issues/223",
    ),
    "model data's region": Rule(
        _REFUSED,
        'Could not access model data at {uri}. Please ensure that the role "{role}" exists and '
        'that its trust relationship policy allows the action "sts:AssumeRole" for the service '
        'principal "sagemaker.amazonaws.com". Also ensure that the role has "s3:GetObject" '
        "permissions and that the object is located in {region}.",
        "issue: https://github.com/philschmid/llm-sagemaker-sample/issues/2",
    ),
    "prefixes of models": Rule(
        _REFUSED,
        "S3Uri {uri} of an S3Prefix must end with a forward slash.",
        "model: S3ModelDataSource.S3DataType; wording assumed",
    ),
    "one or several containers": Rule(
        _REFUSED,
        "You must specify either PrimaryContainer or Containers, and not both.",
        f"{_GUIDE}/multi-container-create.html; wording assumed",
    ),
    "names of containers": Rule(
        _REFUSED,
        "Either all containers of an inference pipeline or none must have a unique "
        "ContainerHostname.",
        "model: ContainerDefinition.ContainerHostname; wording assumed",
    ),
    "models once": Rule(
        _REFUSED,
        'Cannot create already existing model "{arn}".',
        "issue: https://github.com/aws/sagemaker-python-sdk/issues/101; wording of endpoints",
    ),
    "models exist": Rule(
        _REFUSED,
        'Could not find model "{arn}".',
        "issue: https://github.com/hashicorp/terraform-provider-aws/issues/40048; wording of "
        "endpoint configurations",
    ),
    # CreateEndpointConfig
    "configurations once": Rule(
        _REFUSED,
        'Cannot create already existing endpoint configuration "{arn}".',
        "issue: https://github.com/aws/sagemaker-python-sdk/issues/101; wording of endpoints",
    ),
    "configurations exist": Rule(
        _REFUSED,
        'Could not find endpoint configuration "{arn}".',
        "issue: https://github.com/hashicorp/terraform-provider-aws/issues/40048",
    ),
    "variants once": Rule(
        _REFUSED,
        "Variant name {variant} is used more than once.",
        "model: ProductionVariant.VariantName; wording assumed",
    ),
    "instances or serverless": Rule(
        _REFUSED,
        "Variant {variant} must have either InstanceType and InitialInstanceCount, or "
        "ServerlessConfig.",
        "guide: https://github.com/aws/aws-cdk/pull/35557; wording assumed",
    ),
    "pools of instances": Rule(
        _REFUSED,
        "Variant {variant} must have either an InstanceType, or InstancePools with different "
        "instance types and priorities.",
        f"{_GUIDE}/realtime-endpoints-heterogeneous.html; wording assumed, as is that no type and "
        "no priority may be given twice",
    ),
    "volumes of local storage": Rule(
        _REFUSED,
        "VolumeSize parameter is not allowed for the selected Instance type {type}",
        "issue: https://github.com/autogluon/autogluon-cloud/pull/50",
    ),
    "memory in steps": Rule(
        _REFUSED,
        "Invalid MemorySizeInMB {memory}. It must be one of 1024, 2048, 3072, 4096, 5120, 6144.",
        "model: ProductionVariantServerlessConfig.MemorySizeInMB; wording assumed",
    ),
    "provisioned concurrency": Rule(
        _REFUSED,
        "ProvisionedConcurrency {provisioned} must be less than or equal to MaxConcurrency "
        "{concurrency}.",
        "model: ProductionVariantServerlessConfig.ProvisionedConcurrency; wording assumed",
    ),
    "serverless in a VPC": Rule(
        _REFUSED, "Serverless variant {variant}: a VpcConfig is not supported.", _SERVERLESS
    ),
    "serverless in isolation": Rule(
        _REFUSED, "Serverless variant {variant}: network isolation is not supported.", _SERVERLESS
    ),
    "rolling one variant": Rule(
        _REFUSED,
        "A RollingUpdatePolicy does not support endpoints with several variants.",
        f"{_GUIDE}/deployment-guardrails-exclusions.html; wording assumed",
    ),
    "one shadow": Rule(
        _REFUSED,
        "With ShadowProductionVariants, one variant of ProductionVariants and one of "
        "ShadowProductionVariants may be specified.",
        "model: CreateEndpointConfigInput.ShadowProductionVariants; wording assumed",
    ),
    "what has a shadow": Rule(
        _REFUSED,
        "Variant {variant}: shadow variants are not supported with serverless or asynchronous "
        "inference, several containers, or Inf1 instances.",
        f"{_GUIDE}/shadow-tests-exclusions.html; wording assumed",
    ),
    "variants to invoke": Rule(
        _REFUSED,
        "Variant {variant} of endpoint {name} was not found.",
        "model: InvokeEndpointInput.TargetVariant; wording assumed",
    ),
    "serverless in sequence": Rule(
        _REFUSED,
        "Serverless variant {variant}: inference pipelines are not supported.",
        _SERVERLESS,
    ),
    # CreateEndpoint, UpdateEndpoint, DeleteEndpoint, InvokeEndpoint
    "endpoints once": Rule(
        _REFUSED,
        'Cannot create already existing endpoint "{arn}".',
        "issue: https://github.com/aws/sagemaker-python-sdk/issues/101",
    ),
    "endpoints exist": Rule(
        _REFUSED,
        'Could not find endpoint "{arn}".',
        "issue: https://github.com/hashicorp/terraform-provider-aws/issues/40048; wording of "
        "endpoint configurations",
    ),
    "no update in progress": Rule(
        _REFUSED,
        'Cannot update in-progress endpoint "{arn}".',
        "model: UpdateEndpoint; wording assumed",
    ),
    "no deletion in progress": Rule(
        _REFUSED,
        'Cannot delete in-progress endpoint "{arn}".',
        "model: DeleteEndpoint; wording assumed",
    ),
    "no update of a failure": Rule(
        _REFUSED,
        'Cannot update endpoint "{arn}" in status Failed.',
        "model: DescribeEndpointOutput.EndpointStatus; wording assumed",
    ),
    "no update to serverless": Rule(
        _REFUSED,
        'Cannot update endpoint "{arn}" from instances to serverless.',
        f"{_GUIDE}/serverless-endpoints-update.html; wording assumed",
    ),
    "endpoints to invoke serve": Rule(
        "ValidationError",
        "Endpoint {name} of account {account} not found.",
        "model: InvokeEndpoint, ValidationError; wording assumed",
    ),
    "queued requests": Rule(
        "ValidationError",
        "Endpoint {name} has an AsyncInferenceConfig: it takes asynchronous invocations only.",
        f"{_GUIDE}/async-inference.html; wording assumed",
    ),
    "requests without a queue": Rule(
        "ValidationError",
        "Endpoint {name} has no AsyncInferenceConfig: it takes no asynchronous invocations.",
        f"{_GUIDE}/async-inference.html; wording assumed",
    ),
    "requests in S3": Rule(
        "ValidationError",
        "Could not find the input of the invocation: {uri}.",
        "model: InvokeEndpointAsyncInput.InputLocation; wording assumed",
    ),
    # DeploymentConfig
    "one policy": Rule(
        _REFUSED,
        "DeploymentConfig has both BlueGreenUpdatePolicy and RollingUpdatePolicy.",
        "model: DeploymentConfig.BlueGreenUpdatePolicy; wording assumed",
    ),
    "sizes of canaries": Rule(
        _REFUSED, "CanarySize is required for CANARY, and for CANARY only.", _TRAFFIC
    ),
    "sizes of steps": Rule(
        _REFUSED, "LinearStepSize is required for LINEAR, and for LINEAR only.", _TRAFFIC
    ),
    "half a canary": Rule(
        _REFUSED,
        "CanarySize {size} is more than 50% of the variant's instances.",
        "model: TrafficRoutingConfig.CanarySize; wording assumed",
    ),
    "linear steps": Rule(
        _REFUSED,
        "LinearStepSize {size} is not between 10% and 50% of the variant's instances.",
        "model: TrafficRoutingConfig.LinearStepSize; wording assumed",
    ),
    "rolling batches": Rule(
        _REFUSED,
        "MaximumBatchSize {size} is not between 5% and 50% of the variant's instances.",
        "model: RollingUpdatePolicy.MaximumBatchSize; wording assumed",
    ),
    "time to wait": Rule(
        _REFUSED,
        "MaximumExecutionTimeoutInSeconds {timeout} is not larger than the {waits} seconds of "
        "WaitIntervalInSeconds and TerminationWaitInSeconds together.",
        "model: BlueGreenUpdatePolicy.MaximumExecutionTimeoutInSeconds; wording assumed",
    ),
    "alarms exist": Rule(
        _REFUSED,
        "Could not find alarm {alarm}.",
        "model: AutoRollbackConfig.Alarms; wording assumed",
    ),
    "variants stay": Rule(
        _REFUSED,
        "A DeploymentConfig needs the same variants in both configurations, got {old} and {new}.",
        f"{_GUIDE}/deployment-guardrails-exclusions.html; wording assumed",
    ),
    "scaled variants stay": Rule(
        _REFUSED,
        'The variant(s) "{variants}" must be deregistered as scalable targets before they can be '
        "removed or have their instance type updated.",
        f"{_GUIDE}/endpoint-scaling-update.html; wording assumed",
    ),
    "rolling instances": Rule(
        _REFUSED,
        "RollingUpdatePolicy is not supported for serverless variants.",
        f"{_GUIDE}/deployment-guardrails-rolling.html; wording assumed",
    ),
}
