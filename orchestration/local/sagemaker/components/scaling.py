"""Scalable targets and policies of Application Auto Scaling that are inference components.

moto 5.2.5 refuses their dimension; it answers for all others. Policies are kept, and the load moves
nothing. `tests/conformance/test_components.py` fails without this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, Operation, Request, Service

_DIMENSION: Final = "sagemaker:inference-component:DesiredCopyCount"
_KEY: Final = ("ServiceNamespace", "ResourceId", "ScalableDimension")


class CopyTargets(Service):
    """The components whose copies are scaled."""

    name = "application-autoscaling"
    malformed = "ValidationException"

    def __init__(self, account: Account, sagemaker: Mapping[str, Operation]) -> None:
        self._account = account
        self._sagemaker = sagemaker
        self._targets: dict[str, JsonObject] = {}
        self._policies: dict[tuple[str, str], JsonObject] = {}
        super().__init__(
            {
                "RegisterScalableTarget": self._register,
                "DescribeScalableTargets": lambda request: {
                    "ScalableTargets": _of(self._targets.values(), request)
                },
                "PutScalingPolicy": self._put,
                "DescribeScalingPolicies": lambda request: {
                    "ScalingPolicies": _of(self._policies.values(), request)
                },
            }
        )

    def handles(self, request: Request) -> bool:
        """Return whether it is about the copies of components."""
        is_copies = request.parameters.get("ScalableDimension") == _DIMENSION
        return is_copies and request.operation in self.operations

    def _register(self, request: JsonObject) -> JsonObject:
        """Keep the bounds, and bring the number of copies within them."""
        component = {"InferenceComponentName": request["ResourceId"].partition("/")[2]}
        described = self._sagemaker["DescribeInferenceComponent"](component)
        least, most = request["MinCapacity"], request["MaxCapacity"]
        count = described["RuntimeConfig"]["DesiredCopyCount"]
        bounded = min(max(count, least), most)
        if bounded != count:
            asked = {**component, "DesiredRuntimeConfig": {"CopyCount": bounded}}
            self._sagemaker["UpdateInferenceComponentRuntimeConfig"](asked)
        named = {name: request[name] for name in _KEY}
        self._targets[request["ResourceId"]] = {
            **named, "MinCapacity": least, "MaxCapacity": most,
            "RoleARN": f"arn:aws:iam::{ACCOUNT_ID}:role/aws-service-role/"
            "sagemaker.application-autoscaling.amazonaws.com/"
            "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint",
            "CreationTime": 0,
        }  # fmt: skip
        place = self._account.arn("application-autoscaling", "scalable-target/component")
        return {"ScalableTargetARN": place}

    def _put(self, request: JsonObject) -> JsonObject:
        name = request["PolicyName"]
        place = self._account.arn("autoscaling", f"scalingPolicy:component:policyName/{name}")
        kept = {"PolicyARN": place, "CreationTime": 0, **request}
        self._policies[request["ResourceId"], name] = kept
        return {"PolicyARN": place, "Alarms": []}


def _of(kept: Any, request: JsonObject) -> list[JsonObject]:
    wanted = request.get("ResourceIds") or [request.get("ResourceId")]
    return [each for each in kept if wanted == [None] or each["ResourceId"] in wanted]
