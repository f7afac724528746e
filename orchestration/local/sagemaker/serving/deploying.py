"""Creations and updates of endpoints: processes per fleet, traffic that moves, and rollbacks."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, ServiceError
from orchestration.local.account.records import CAPACITY_REASON
from orchestration.local.iam.working import lets_log
from orchestration.local.sagemaker.checks.hosting import all_variants
from orchestration.local.sagemaker.serving.alarms import Alarms
from orchestration.local.sagemaker.serving.endpoint import Endpoint
from orchestration.local.sagemaker.serving.model_host import (
    PRIMARY,
    ModelHost,
    ModelHostFailed,
    NoModel,
)
from orchestration.local.sagemaker.serving.rollouts import Shift, steps
from orchestration.local.sagemaker.serving.traffic import Fleet, Member

# Seconds of AWS between a request and the start of the new model.
_PROVISIONING_S = 10.0
_PATIENCE_S = 3600.0
"""Seconds for which instances are looked for: the most that a configuration may say."""
_GROUPS: Final = {
    "DescribeEndpoint": "/aws/sagemaker/Endpoints/{}",
    "DescribeInferenceComponent": "/aws/sagemaker/InferenceComponents/{}",
}
"""The groups of logs by the operation that shows what serves."""
_RETAINED = ("DesiredInstanceCount", "DesiredWeight")


@dataclass(frozen=True)
class Rollout:
    """The configuration and models to serve, kept since both may be deleted meanwhile."""

    config: JsonObject
    models: Mapping[str, JsonObject]
    """The models of the variants, by the variants' names."""
    deployment: JsonObject
    retained: tuple[str, ...] = ()
    """The properties that variants keep."""

    @property
    def alarms(self) -> list[str]:
        """The alarms that roll it back."""
        rollback = self.deployment.get("AutoRollbackConfiguration", {})
        return [alarm["AlarmName"] for alarm in rollback.get("Alarms", [])]


def retained(request: JsonObject) -> tuple[str, ...]:
    """Return the properties that an update keeps of the variants that serve."""
    if not request.get("RetainAllVariantProperties"):
        return ()
    excluded = {
        each["VariantPropertyType"] for each in request.get("ExcludeRetainedVariantProperties", [])
    }
    return tuple(name for name in _RETAINED if name not in excluded)


class NoMachines(Exception):
    """None of a variant's instance types was available."""


class Deployer:
    """Starts fleets and moves traffic to them, each in a thread of its own."""

    def __init__(
        self,
        account: Account,
        alarms: Alarms,
        start_host: Callable[[Account, str, JsonObject, Path], ModelHost],
    ) -> None:
        self._account = account
        self._alarms = alarms
        self._start_host = start_host
        self._numbers = itertools.count(1)

    def deploy(
        self, endpoint: Endpoint, rollout: Rollout, ended: Callable[[], None] = lambda: None
    ) -> None:
        """Begin to serve a configuration; ``ended`` is called when it serves, or has failed to."""
        arguments = (endpoint, rollout, ended)
        threading.Thread(target=self._roll_out, args=arguments, daemon=True).start()

    def _roll_out(self, endpoint: Endpoint, rollout: Rollout, ended: Callable[[], None]) -> None:
        threading.Event().wait(self._account.clock.pause(_PROVISIONING_S))
        activity = (endpoint.polled, endpoint.name)
        self._account.activity.begin(activity)
        try:
            self._replace(endpoint, rollout)
        finally:
            ended()
            self._account.activity.end(activity)

    def _replace(self, endpoint: Endpoint, rollout: Rollout) -> None:
        try:
            new = self._started(endpoint, rollout, self._provisioned(endpoint, rollout))
        except NoMachines as error:
            self._fail(endpoint, str(error))
            return
        except (ModelHostFailed, ServiceError) as error:
            named = "primary container"
            if isinstance(error, ModelHostFailed):
                endpoint.last_log += error.logs
                named = named if error.container == PRIMARY else error.container
            self._fail(endpoint, f"The {named} did not pass the ping health check. {error}")
            return
        old = endpoint.fleet
        if old is None:
            endpoint.serve(new)
        elif not self._moved(endpoint, old, new, rollout):
            return
        endpoint.settle("InService")

    def _moved(self, endpoint: Endpoint, old: Fleet, new: Fleet, rollout: Rollout) -> bool:
        """Move the traffic to the new fleet; return whether it is still there at the end."""
        endpoint.stage("Baking")
        shift = Shift(endpoint.traffic, old, new, self._alarms, rollout.alarms)
        plan = steps(rollout.deployment, old.members[0].count)
        if shift.tripped_by(plan, self._account.clock):
            self._remove(endpoint, new)
            endpoint.settle("InService")
            return False
        endpoint.serve(new)
        endpoint.stage("Deleting")
        self._remove(endpoint, old)
        return True

    def _provisioned(self, endpoint: Endpoint, rollout: Rollout) -> list[JsonObject]:
        """Return the variants with the instance types that they got, all of one type each."""
        return [self._placed(endpoint.name, each) for each in all_variants(rollout.config)]

    def _placed(self, endpoint: str, variant: JsonObject) -> JsonObject:
        pools = sorted(variant.get("InstancePools", [{}]), key=lambda pool: pool.get("Priority", 1))
        patience_s = variant.get("VariantInstanceProvisionTimeoutInSeconds", _PATIENCE_S)
        reason = ""
        for pool in pools:
            kind = pool.get("InstanceType", variant.get("InstanceType"))
            asked = {} if kind is None else {"InstanceType": kind}
            fault = self._account.faults.job_fault("CreateEndpoint", endpoint, asked)
            if fault is None:
                return {**variant, **asked}
            threading.Event().wait(self._account.clock.pause(min(fault.delay_s, patience_s)))
            reason = fault.message
            patience_s -= fault.delay_s
            if reason != CAPACITY_REASON or patience_s <= 0:
                break
        raise NoMachines(reason)

    def _started(
        self, endpoint: Endpoint, rollout: Rollout, variants: Sequence[JsonObject]
    ) -> Fleet:
        members: list[Member] = []
        for variant in variants:
            directory = self._directory(endpoint)
            # A host is told of its model, and what the variant says of its start.
            model = {**rollout.models[variant["VariantName"]], **variant}
            if "ModelName" not in variant:
                host: ModelHost = NoModel(directory)
                members.append(_member(variant, host, endpoint.fleet, rollout.retained))
                continue
            role = str(model.get("ExecutionRoleArn", ""))
            group = _GROUPS[endpoint.polled].format(endpoint.name)
            lets_log(role, self._account.region, group, f"{variant['VariantName']}/i-local")
            try:
                host = self._start_host(self._account, endpoint.name, model, directory)
            except (ModelHostFailed, ServiceError):
                for member in members:
                    member.host.stop()
                raise
            members.append(_member(variant, host, endpoint.fleet, rollout.retained))
        answering = len(rollout.config["ProductionVariants"])
        return Fleet(
            rollout.config["EndpointConfigName"],
            tuple(members[:answering]),
            tuple(members[answering:]),
        )

    def _directory(self, endpoint: Endpoint) -> Path:
        name = f"{endpoint.name}-{next(self._numbers)}"
        return self._account.directory / "endpoint" / name

    def _remove(self, endpoint: Endpoint, fleet: Fleet) -> None:
        endpoint.traffic.drain(fleet)
        endpoint.last_log += fleet.logs()
        fleet.stop()
        for member in fleet.all_members:
            shutil.rmtree(member.host.directory, ignore_errors=True)

    def _fail(self, endpoint: Endpoint, reason: str) -> None:
        # A failed update leaves the old model in service with the old configuration.
        serves = endpoint.fleet is not None
        endpoint.settle("InService" if serves else "Failed", None if serves else reason[:1024])


def _member(
    variant: JsonObject, host: ModelHost, serving: Fleet | None, kept: tuple[str, ...]
) -> Member:
    member = Member(
        variant,
        host,
        count=variant.get("InitialInstanceCount", 1),
        weight=variant.get("InitialVariantWeight", 1.0),
    )
    for earlier in serving.all_members if serving else ():
        if earlier.name == member.name:
            member.count = earlier.count if _RETAINED[0] in kept else member.count
            member.weight = earlier.weight if _RETAINED[1] in kept else member.weight
    return member
