"""The number of an inference component's copies follows its load, between bounds.

https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-add-code-define.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import Tree, join
from orchestration.graph import Call, Operation, Permission
from orchestration.stages.values import Model, Seconds, Text

_DIMENSION: Final = "sagemaker:inference-component:DesiredCopyCount"
_METRIC: Final = "SageMakerInferenceComponentInvocationsPerCopy"
_PLACE: Final = "arn:{partition}:%s:{region}:{account}:%s"
_ROLE: Final = (
    "arn:{partition}:iam::{account}:role/aws-service-role/"
    "sagemaker.application-autoscaling.amazonaws.com/*"
)


class CopyScaling(Model):
    """Target tracking of the requests to each copy."""

    min_copies: int = Field(default=1, ge=1, strict=True)
    """The number that no decrease goes below."""
    max_copies: int = Field(ge=1, strict=True)
    """The number that no increase goes above."""
    invocations_per_minute: float = Field(gt=0)
    """Requests to each copy in a minute that the number of copies is to lead to."""
    scale_in_cooldown_s: Seconds = 300
    """Seconds from one decrease to the next."""
    scale_out_cooldown_s: Seconds = 300
    """Seconds from one increase to the next."""

    def problems(self, copies: int) -> Iterator[Problem]:
        """Yield bounds that exclude each other, or the copies of a new component."""
        if self.max_copies < self.min_copies:
            message = f"expected at least min_copies ({self.min_copies}), got {self.max_copies}"
            yield Problem("inference_component.autoscaling.max_copies", message)
        elif not self.min_copies <= copies <= self.max_copies:
            bounds = f"{self.min_copies} to {self.max_copies}"
            message = f"expected {bounds}, the bounds of the autoscaling, got {copies}"
            yield Problem("inference_component.copies", message)

    def steps(self, stage: str, component: Text, after: tuple[str, ...]) -> tuple[Call, Call]:
        """Return the bounds and the policy of a component; both may exist."""
        target: dict[str, Tree] = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": join("inference-component/", component),
            "ScalableDimension": _DIMENSION,
        }
        bounds = {**target, "MinCapacity": self.min_copies, "MaxCapacity": self.max_copies}
        policy: dict[str, Tree] = {
            **target,
            "PolicyName": join(component, "-load"),
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": {
                "TargetValue": self.invocations_per_minute,
                "PredefinedMetricSpecification": {"PredefinedMetricType": _METRIC},
                "ScaleInCooldown": self.scale_in_cooldown_s,
                "ScaleOutCooldown": self.scale_out_cooldown_s,
            },
        }
        service = "application-autoscaling"
        register = Call(
            name=f"{stage}.scaling",
            operation=Operation(service, "RegisterScalableTarget", bounds),
            after=after,
        )
        return register, Call(
            name=f"{stage}.scaling_policy",
            operation=Operation(service, "PutScalingPolicy", policy),
            after=(register.name,),
        )

    def permissions(self, component: Text) -> tuple[Permission, ...]:
        """Return needs beyond calling the operations: the service acts in its caller's name."""
        place: Tree = join(_PLACE % ("sagemaker", "inference-component/"), component)
        alarms: Tree = join(
            *(_PLACE % ("cloudwatch", "alarm:TargetTracking-inference-component/"), component, "-*")
        )
        alarming = ("PutMetricAlarm", "DescribeAlarms", "DeleteAlarms")
        scaling = ("RegisterScalableTarget", "PutScalingPolicy")
        return (
            Permission(
                actions=tuple(f"application-autoscaling:{each}" for each in scaling),
                resources=(_PLACE % ("application-autoscaling", "scalable-target/*"),),
            ),
            Permission(
                actions=tuple(f"cloudwatch:{each}" for each in alarming), resources=(alarms,)
            ),
            Permission(
                actions=(
                    "sagemaker:DescribeInferenceComponent",
                    "sagemaker:UpdateInferenceComponentRuntimeConfig",
                ),
                resources=(place,),
            ),
            Permission(actions=("iam:CreateServiceLinkedRole",), resources=(_ROLE,)),
        )
