"""One endpoint: its fleets, its status, and its description."""

from __future__ import annotations

import datetime
from typing import Any, Final

from orchestration.local.account.protocol import JsonObject, now
from orchestration.local.sagemaker.responses import response_members
from orchestration.local.sagemaker.serving.capturing import Capture
from orchestration.local.sagemaker.serving.requests import Requests
from orchestration.local.sagemaker.serving.traffic import Fleet, Member, Traffic

_KINDS: Final = ("ProductionVariants", "ShadowProductionVariants")


class Endpoint:
    """An endpoint."""

    def __init__(
        self, name: str, arn: str, config_name: str, *, polled: str = "DescribeEndpoint"
    ) -> None:
        self.polled = polled
        """The operation that asks for its status."""
        self.components: list[str] = []
        """The names of the inference components on its instances."""
        self.name = name
        self.arn = arn
        self.config_name = config_name
        self.status = "Creating"
        self.failure_reason: str | None = None
        self.created = self.modified = now()
        self.fleet: Fleet | None = None
        """What serves, or serves still while an update is under way."""
        self.pending: JsonObject | None = None
        self.last_deployment: JsonObject | None = None
        self.traffic = Traffic()
        self.requests = Requests()
        self.capture = Capture()
        self.last_log = ""
        self.deleted = False

    @property
    def fleet_variant(self) -> JsonObject:
        """The first variant of what serves; empty where nothing does."""
        return self.fleet.members[0].variant if self.fleet else {}

    def logs(self) -> str:
        """Return the logs of all processes that it has had, so far."""
        return self.last_log + (self.fleet.logs() if self.fleet else "")

    def begin(self, status: str, config: JsonObject) -> None:
        """Begin a creation or an update."""
        self.status = status
        self.modified = now()
        self.pending = {
            "EndpointConfigName": config["EndpointConfigName"],
            **{
                kind: [_pending(each) for each in config[kind]] for kind in _KINDS if kind in config
            },
            "StartTime": self.modified,
        }

    def stage(self, stage: str) -> None:
        """Note the stage that a deployment is in: ``Creating``, ``Baking``, ``Deleting``."""
        started: datetime.datetime = now()
        pending = self.pending or {}
        for variant in [each for kind in _KINDS for each in pending.get(kind, [])]:
            variant["VariantStatus"] = [{"Status": stage, "StartTime": started}]

    def settle(self, status: str, failure_reason: str | None = None) -> None:
        """End a creation or an update."""
        self.failure_reason = failure_reason
        self.modified = now()
        self.pending = None
        self.status = status

    def serve(self, fleet: Fleet) -> None:
        """Let a fleet answer all requests."""
        self.fleet, self.config_name = fleet, fleet.config_name
        self.traffic.route((fleet, 1))

    def described(self) -> JsonObject:
        """Return it as in a response of DescribeEndpoint."""
        description: JsonObject = {
            "EndpointName": self.name,
            "EndpointArn": self.arn,
            "EndpointConfigName": self.config_name,
            "EndpointStatus": self.status,
            "FailureReason": self.failure_reason,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
            "ProductionVariants": _serving(self.fleet.members if self.fleet else ()),
            "ShadowProductionVariants": _serving(self.fleet.shadows if self.fleet else ()),
            "PendingDeploymentSummary": self.pending,
            "LastDeploymentConfig": self.last_deployment,
        }
        members = response_members("DescribeEndpoint")
        return {
            key: value for key, value in description.items() if value is not None and key in members
        }


def _serving(members: tuple[Member, ...]) -> list[dict[str, Any]] | None:
    described = [
        {
            "VariantName": member.name,
            "CurrentInstanceCount": member.count,
            "DesiredInstanceCount": member.count,
            "CurrentWeight": member.weight,
            "DesiredWeight": member.weight,
            **_pools(member),
        }
        for member in members
    ]
    return described or None


def _pools(member: Member) -> dict[str, Any]:
    """Return the instances of each type that a variant may have: here all are of one."""
    pools = member.variant.get("InstancePools")
    if pools is None:
        return {}
    own = member.variant.get("InstanceType")
    counts = [
        {"InstanceType": kind, "CurrentInstanceCount": member.count if kind == own else 0}
        for kind in (pool["InstanceType"] for pool in pools)
    ]
    return {"InstancePools": counts}


def _pending(variant: JsonObject) -> dict[str, Any]:
    return {
        "VariantName": variant["VariantName"],
        "DesiredInstanceCount": variant.get("InitialInstanceCount", 1),
        "DesiredWeight": variant.get("InitialVariantWeight", 1.0),
        "VariantStatus": [{"Status": "Creating", "StartTime": now()}],
    }
