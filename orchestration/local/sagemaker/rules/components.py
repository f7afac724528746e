"""The rules of inference components, and of the endpoints that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "ValidationException"
_GUIDE = "guide: https://docs.aws.amazon.com/sagemaker/latest/dg"
_MEASURED = "issue: https://github.com/stdapi-ai/stdapi.ai/issues/43"

COMPONENTS: Final[Mapping[str, Rule]] = {
    "managed instances of components": Rule(
        _REFUSED,
        "ManagedInstanceScaling is only supported for inference component endpoints.",
        "issue: https://github.com/hashicorp/terraform-provider-aws/pull/45926",
    ),
    "a role for components": Rule(
        _REFUSED,
        "ExecutionRoleArn is required for endpoints of inference components.",
        f"{_MEASURED}; wording assumed",
    ),
    "components once": Rule(
        _REFUSED,
        'Cannot create already existing inference component "{arn}".',
        "model: CreateInferenceComponent; wording of endpoints",
    ),
    "components exist": Rule(
        _REFUSED,
        'Could not find inference component "{arn}".',
        "model: DescribeInferenceComponent; wording of endpoints",
    ),
    "copies of components": Rule(
        _REFUSED, "Inference components copy count an integer larger than 0", _MEASURED
    ),
    "components of one container": Rule(
        _REFUSED,
        "An inference component takes no model of several containers.",
        "model: InferenceComponentSpecification.Container; wording assumed",
    ),
    "endpoints of components": Rule(
        _REFUSED,
        "Inference Components are not supported in this Endpoint. Please make sure this endpoint "
        "can deploy inference components.",
        "issue: https://github.com/hashicorp/terraform-provider-aws/issues/40644",
    ),
    "endpoints of components serve": Rule(
        _REFUSED,
        'Endpoint "{arn}" is {status}: it takes no inference components.',
        f"{_GUIDE}/realtime-endpoints-deploy-models.html; wording assumed",
    ),
    "needs of components": Rule(
        _REFUSED,
        "ComputeResourceRequirements is required, but for an adapter of another inference "
        "component.",
        "model: InferenceComponentSpecification.ComputeResourceRequirements; wording assumed",
    ),
    "changes of components": Rule(
        _REFUSED,
        "An update of an inference component needs a Specification or a RuntimeConfig.",
        "model: UpdateInferenceComponentInput; wording and refusal assumed",
    ),
    "variants of components": Rule(
        _REFUSED,
        'Could not find variant "{variant}" of endpoint "{arn}".',
        "model: CreateInferenceComponentInput.VariantName; wording assumed",
    ),
    "no component update in progress": Rule(
        _REFUSED,
        'Cannot update in-progress inference component "{arn}" ({status}).',
        "model: UpdateInferenceComponent; wording of endpoints",
    ),
    "no component deletion in progress": Rule(
        _REFUSED,
        'Cannot delete in-progress inference component "{arn}".',
        "issue: https://github.com/aws/amazon-sagemaker-examples/issues/3432; wording of endpoints",
    ),
    "rolling copies": Rule(
        _REFUSED,
        "MaximumBatchSize {size} is not between 5% and 50% of the copies.",
        "model: InferenceComponentRollingUpdatePolicy.MaximumBatchSize; wording assumed",
    ),
    "components to invoke": Rule(
        "ValidationError",
        "Inference Component Name header is required for endpoints to which you plan to deploy "
        "inference components. Please include Inference Component Name header or consider using "
        "SageMaker models.",
        "issue: https://github.com/aws-samples/amazon-kendra-langchain-extensions/issues/64",
    ),
    "components to invoke exist": Rule(
        "ValidationError",
        "Inference component {name} of endpoint {endpoint} not found.",
        "model: InvokeEndpointInput.InferenceComponentName; wording assumed",
    ),
    "endpoints without components": Rule(
        _REFUSED,
        'Cannot delete endpoint "{arn}" with inference components: {names}.',
        "issue: https://github.com/aws/amazon-sagemaker-feedback/issues/49; wording assumed",
    ),
    "bounds of what is scaled": Rule(
        _REFUSED,
        "Maximum capacity cannot be less than minimum capacity",
        "model: RegisterScalableTargetRequest.MaxCapacity; wording assumed",
    ),
    "bounds of a new target": Rule(
        _REFUSED,
        "A new scalable target needs a minimum and a maximum capacity",
        "model: RegisterScalableTargetRequest.MinCapacity; wording assumed",
    ),
    "what is scaled is registered": Rule(
        "ObjectNotFoundException",
        "No scalable target registered for service namespace: {service}, resource ID: {resource}, "
        "scalable dimension: {dimension}",
        "issue: https://github.com/ansible/ansible/issues/40237",
    ),
    "scaling policies exist": Rule(
        "ObjectNotFoundException",
        "No scaling policy found for service namespace: {service}, resource ID: {resource}, "
        "scalable dimension: {dimension}, policy name: {name}",
        "model: DeleteScalingPolicy; wording of moto 5.2.5",
    ),
}
