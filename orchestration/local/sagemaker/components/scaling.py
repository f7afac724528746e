"""Scalable targets and policies of Application Auto Scaling that are inference components.

moto 5.2.5 refuses their dimension; it answers for all others, and takes policies of what is not
registered. Policies are kept, and the load moves nothing. `tests/conformance/test_components.py`
fails without this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import (
    ACCOUNT_ID,
    Answer,
    JsonObject,
    Operation,
    Request,
    Service,
    ServiceError,
    error_answer,
)
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.serving.scaling import is_target

_DIMENSION: Final = "sagemaker:inference-component:DesiredCopyCount"
_KEY: Final = ("ServiceNamespace", "ResourceId", "ScalableDimension")
_BOUNDS: Final = ("MinCapacity", "MaxCapacity")
_OF_TARGETS: Final = ("PutScalingPolicy", "PutScheduledAction", "DeregisterScalableTarget")


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
                "DeregisterScalableTarget": self._deregister,
                "DescribeScalableTargets": lambda request: {
                    "ScalableTargets": _of(self._targets.values(), request)
                },
                "PutScalingPolicy": self._put,
                "DeleteScalingPolicy": self._delete,
                "DescribeScalingPolicies": lambda request: {
                    "ScalingPolicies": _of(self._policies.values(), request)
                },
            }
        )

    @override
    def handles(self, request: Request) -> bool:
        """Return whether it is about the copies of components."""
        is_copies = request.parameters.get("ScalableDimension") == _DIMENSION
        return is_copies and request.operation in self.operations

    @override
    def respond(self, request: Request) -> Answer:
        """Answer one call of whoever calls."""
        try:
            self.check(request)
        except ServiceError as error:
            return error_answer(self.name, error)
        return super().respond(request)

    @override
    def check(self, request: Request) -> None:
        """Refuse bounds that exclude each other, and policies of what is not registered."""
        self._forget()
        asked = request.parameters
        if request.operation == "RegisterScalableTarget":
            least, most = (asked.get(each) for each in _BOUNDS)
            if least is not None and most is not None and most < least:
                raise refusal("bounds of what is scaled")
        if request.operation in _OF_TARGETS and not self._is_registered(asked):
            service, resource, dimension = (asked.get(each) for each in _KEY)
            raise refusal(
                "what is scaled is registered",
                service=service,
                resource=resource,
                dimension=dimension,
            )

    def _is_registered(self, asked: JsonObject) -> bool:
        dimension, resource = asked.get("ScalableDimension", ""), asked.get("ResourceId", "")
        if dimension == _DIMENSION:
            return resource in self._targets
        return is_target(self._account, dimension, resource)

    def _forget(self) -> None:
        """Forget components that were deleted, also where others have their names now."""
        for resource, target in [*self._targets.items()]:
            try:
                made = self._described(resource)["CreationTime"]
            except ServiceError:
                made = None
            if made != target["CreationTime"]:
                self._deregister({"ResourceId": resource})

    def _described(self, resource: str) -> JsonObject:
        name = {"InferenceComponentName": resource.partition("/")[2]}
        return self._sagemaker["DescribeInferenceComponent"](name)

    def _register(self, request: JsonObject) -> JsonObject:
        """Keep the bounds, and bring the number of copies within them."""
        resource = request["ResourceId"]
        described, known = self._described(resource), self._targets.get(resource, {})
        bounds = {each: request.get(each, known.get(each)) for each in _BOUNDS}
        least, most = bounds.values()
        if least is None or most is None:
            raise refusal("bounds of a new target")
        if most < least:
            raise refusal("bounds of what is scaled")
        count = described["RuntimeConfig"]["DesiredCopyCount"]
        bounded = min(max(count, least), most)
        # What is being changed would be scaled later.
        if bounded != count and described["InferenceComponentStatus"] == "InService":
            name = {"InferenceComponentName": described["InferenceComponentName"]}
            asked = {**name, "DesiredRuntimeConfig": {"CopyCount": bounded}}
            self._sagemaker["UpdateInferenceComponentRuntimeConfig"](asked)
        self._targets[resource] = {
            **{name: request[name] for name in _KEY}, **bounds,
            "RoleARN": f"arn:aws:iam::{ACCOUNT_ID}:role/aws-service-role/"
            "sagemaker.application-autoscaling.amazonaws.com/"
            "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint",
            "CreationTime": described["CreationTime"],
        }  # fmt: skip
        place = self._account.arn("application-autoscaling", "scalable-target/component")
        return {"ScalableTargetARN": place}

    def _deregister(self, request: JsonObject) -> JsonObject:
        """Forget a target, with its policies."""
        resource = request["ResourceId"]
        del self._targets[resource]
        for key in [each for each in self._policies if each[0] == resource]:
            del self._policies[key]
        return {}

    def _put(self, request: JsonObject) -> JsonObject:
        name = request["PolicyName"]
        place = self._account.arn("autoscaling", f"scalingPolicy:component:policyName/{name}")
        kept = {"PolicyARN": place, "CreationTime": 0, **request}
        self._policies[request["ResourceId"], name] = kept
        return {"PolicyARN": place, "Alarms": []}

    def _delete(self, request: JsonObject) -> JsonObject:
        key = (request["ResourceId"], request["PolicyName"])
        if key not in self._policies:
            service, resource, dimension = (request[each] for each in _KEY)
            raise refusal(
                "scaling policies exist",
                service=service,
                resource=resource,
                dimension=dimension,
                name=key[1],
            )
        del self._policies[key]
        return {}


def _of(kept: Any, request: JsonObject) -> list[JsonObject]:
    wanted = request.get("ResourceIds") or [request.get("ResourceId")]
    return [each for each in kept if wanted == [None] or each["ResourceId"] in wanted]
