"""The steps that let the number of an endpoint's instances follow its load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestration.expressions import Tree, join
from orchestration.graph import Call, Operation, Permission
from orchestration.refs import Expression
from orchestration.stages.endpoints.hosting import Autoscaling
from orchestration.stages.endpoints.making import Made

_SCALES: Final = (
    *("application-autoscaling:RegisterScalableTarget", "application-autoscaling:PutScalingPolicy"),
)
_ALARMS: Final = (
    *("cloudwatch:PutMetricAlarm", "cloudwatch:DescribeAlarms", "cloudwatch:DeleteAlarms"),
)
_ENDPOINT: Final = (
    *("sagemaker:DescribeEndpoint", "sagemaker:DescribeEndpointConfig"),
    "sagemaker:UpdateEndpointWeightsAndCapacities",
)
_ROLE: Final = (
    "arn:{partition}:iam::{account}:role/aws-service-role/"
    "sagemaker.application-autoscaling.amazonaws.com/*"
)


@dataclass(frozen=True, slots=True)
class Scaling:
    """The scaling of one deployment's variant."""

    made: Made
    autoscaling: Autoscaling

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """Needs beyond calling the operations: the service acts in its caller's name.

        https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-prerequisites.html
        """
        place = "arn:{partition}:%s:{region}:{account}:%s"
        endpoint: Tree = join(place % ("sagemaker", "endpoint/"), self.made.endpoint)
        config = place % ("sagemaker", f"endpoint-config/{self.made.prefix}*")
        alarms: Tree = join(
            *(place % ("cloudwatch", "alarm:TargetTracking-endpoint/"), self.made.endpoint, "/*")
        )
        targets = place % ("application-autoscaling", "scalable-target/*")
        return (
            Permission(actions=_SCALES, resources=(targets,)),
            Permission(actions=_ALARMS, resources=(alarms,)),
            Permission(actions=_ENDPOINT, resources=(endpoint, config)),
            Permission(actions=("iam:CreateServiceLinkedRole",), resources=(_ROLE,)),
        )

    def steps(self, after: tuple[str, ...]) -> tuple[Call, Call]:
        """Return the bounds of the number of instances, and what it follows; both may exist."""
        name, variant = self.made.stage.name, self.made.variant
        part = variant if isinstance(variant, Expression) else str(variant)
        place: dict[str, Tree] = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": join("endpoint/", self.made.endpoint, "/variant/", part),
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        }
        bounds: dict[str, Tree] = {
            "MinCapacity": self.autoscaling.min_instances,
            "MaxCapacity": self.autoscaling.max_instances,
        }
        policy: dict[str, Tree] = {
            "PolicyName": join(self.made.endpoint, "-load"),
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": self.autoscaling.policy(),
        }
        target = Call(
            name=f"{name}.scaling",
            operation=Operation(
                "application-autoscaling", "RegisterScalableTarget", {**place, **bounds}
            ),
            after=after,
        )
        follow = Call(
            name=f"{name}.scaling_policy",
            operation=Operation("application-autoscaling", "PutScalingPolicy", {**place, **policy}),
            after=(target.name,),
        )
        return target, follow
