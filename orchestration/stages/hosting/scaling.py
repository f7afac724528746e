"""The steps that let the number of an endpoint's instances follow its load and the time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from orchestration.expressions import Result, Tree, join
from orchestration.graph import Call, Operation, Output, Permission
from orchestration.refs import Expression
from orchestration.stages.endpoints.making import Made
from orchestration.stages.hosting.autoscaling import Autoscaling

_TARGET: Final = "application-autoscaling:RegisterScalableTarget"
_POLICY: Final = "application-autoscaling:PutScalingPolicy"
_SCHEDULED: Final = "application-autoscaling:PutScheduledAction"
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
        follows = self.autoscaling.policy(self.made.endpoint) is not None
        scales = (
            _TARGET,
            *((_POLICY,) if follows else ()),
            *((_SCHEDULED,) if self.autoscaling.scheduled else ()),
        )
        return (
            Permission(actions=scales, resources=(targets,)),
            *((Permission(actions=_ALARMS, resources=(alarms,)),) if follows else ()),
            *self._tags_alarm(place),
            Permission(actions=_ENDPOINT, resources=(endpoint, config)),
            Permission(actions=("iam:CreateServiceLinkedRole",), resources=(_ROLE,)),
        )

    def _tags_alarm(self, place: str) -> tuple[Permission, ...]:
        if not self.autoscaling.from_zero:
            return ()
        alarm: Tree = join(place % ("cloudwatch", "alarm:"), self._first)
        return (Permission(actions=("cloudwatch:TagResource",), resources=(alarm,)),)

    @property
    def _first(self) -> Expression[str]:
        """The name of the policy that starts the first instance, and of its alarm."""
        return join(self.made.endpoint, "-from-zero")

    def steps(self, after: tuple[str, ...]) -> tuple[Call, ...]:
        """Return the bounds of the number of instances, and what it follows; all may exist."""
        variant = self.made.variant
        part = variant if isinstance(variant, Expression) else str(variant)
        place: dict[str, Tree] = {
            "ServiceNamespace": "sagemaker",
            "ResourceId": join("endpoint/", self.made.endpoint, "/variant/", part),
            "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        }
        calls: list[Call] = []
        for name, operation, request in self._requests():
            calls.append(
                Call(
                    name=f"{self.made.stage.name}.{name}",
                    operation=Operation("application-autoscaling", operation, {**place, **request}),
                    after=(calls[-1].name,) if calls else after,
                )
            )
        if self.autoscaling.from_zero:
            calls += self._from_zero(place, (calls[-1].name,))
        return tuple(calls)

    def _from_zero(self, place: dict[str, Tree], after: tuple[str, ...]) -> tuple[Call, Call]:
        """Return the policy that adds an instance, and the alarm that asks for it.

        https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-autoscale.html
        """
        stage = self.made.stage.name
        step = {"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}
        steps: dict[str, Tree] = {
            "AdjustmentType": "ChangeInCapacity",
            "MetricAggregationType": "Average",
            "Cooldown": self.autoscaling.scale_out_cooldown_s,
            "StepAdjustments": [step],
        }
        request: dict[str, Tree] = {
            **place,
            "PolicyName": self._first,
            "PolicyType": "StepScaling",
            "StepScalingPolicyConfiguration": steps,
        }
        policy = Call(
            name=f"{stage}.from_zero",
            operation=Operation("application-autoscaling", "PutScalingPolicy", request),
            outputs={"arn": Output(("PolicyARN",), kind="string")},
            after=after,
        )
        alarm: dict[str, Tree] = {
            "AlarmName": self._first,
            "Namespace": "AWS/SageMaker",
            "MetricName": "HasBacklogWithoutCapacity",
            "Dimensions": [{"Name": "EndpointName", "Value": self.made.endpoint}],
            "Statistic": "Average",
            "Period": 60,
            "EvaluationPeriods": 2,
            "DatapointsToAlarm": 2,
            "Threshold": 1,
            "ComparisonOperator": "GreaterThanOrEqualToThreshold",
            "TreatMissingData": "missing",
            "AlarmActions": [Result(policy.name, "arn")],
            "Tags": self.made.context.tag_list(stage),
        }
        return policy, Call(
            name=f"{stage}.from_zero_alarm",
            operation=Operation("cloudwatch", "PutMetricAlarm", alarm),
        )

    def _requests(self) -> Iterator[tuple[str, str, dict[str, Tree]]]:
        """Yield the name of each step, its operation, and what it says of the variant."""
        scaling = self.autoscaling
        bounds = _bounds(scaling.min_instances, scaling.max_instances)
        yield "scaling", "RegisterScalableTarget", bounds
        followed = scaling.policy(self.made.endpoint)
        if followed is not None:
            policy: dict[str, Tree] = {
                "PolicyName": join(self.made.endpoint, "-load"),
                "PolicyType": "TargetTrackingScaling",
                "TargetTrackingScalingPolicyConfiguration": followed,
            }
            yield "scaling_policy", "PutScalingPolicy", policy
        for name, scheduled in scaling.scheduled.items():
            action: dict[str, Tree] = {
                "ScheduledActionName": join(self.made.endpoint, f"-{name}"),
                "Schedule": scheduled.expression,
                "Timezone": scheduled.timezone,
                "ScalableTargetAction": _bounds(*scaling.bounds(scheduled)),
            }
            yield f"scheduled_{name}", "PutScheduledAction", action


def _bounds(least: int, most: int) -> dict[str, Tree]:
    return {"MinCapacity": least, "MaxCapacity": most}
