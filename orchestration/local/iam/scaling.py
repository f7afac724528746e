"""Needs of calls of Application Auto Scaling, which asks its caller for what it does in turn.

It tries each action for its caller on what is scaled and on alarms, and refuses the call where one
is denied: https://docs.aws.amazon.com/autoscaling/application/userguide/security_iam_permission_validation.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.local.policies.evaluation import Need

PREFIX: Final = "application-autoscaling:"
_ALARMS: Final = ("PutMetricAlarm", "DescribeAlarms", "DeleteAlarms")
_ACTS: Final[Mapping[str, tuple[str, ...]]] = {
    "endpoint": ("DescribeEndpoint", "UpdateEndpointWeightsAndCapacities"),
    "inference-component": (
        "DescribeInferenceComponent",
        "UpdateInferenceComponentRuntimeConfig",
    ),
}
_ROLE: Final = (
    "role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
)


def scales(operation: str, request: Mapping[str, Any], place: str, account: str) -> Iterator[Need]:
    """Yield what a call needs: targets and policies have no names that a request tells."""
    yield Need(f"{PREFIX}{operation}", "")
    scaled = str(request.get("ResourceId", ""))
    if operation == "RegisterScalableTarget":
        kind, name = scaled.split("/")[:2]
        for each in _ACTS[kind]:
            yield Need(f"sagemaker:{each}", f"arn:aws:sagemaker:{place}:{kind}/{name.lower()}")
        yield Need("iam:CreateServiceLinkedRole", f"arn:aws:iam::{account}:{_ROLE}")
    elif operation == "PutScalingPolicy" and request["PolicyType"] == "TargetTrackingScaling":
        # The name goes on with `AlarmHigh-` or `AlarmLow-` and a UUID.
        alarm = f"arn:aws:cloudwatch:{place}:alarm:TargetTracking-{scaled}-AlarmHigh-1"
        for each in _ALARMS:
            yield Need(f"cloudwatch:{each}", alarm)
