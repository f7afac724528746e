"""The inference components of an account: created, updated with moving traffic, invoked."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import Answer, JsonObject, Operation
from orchestration.local.sagemaker.checks.deployments import check_alarms
from orchestration.local.sagemaker.checks.hosting import containers
from orchestration.local.sagemaker.checks.surroundings import check_tags, not_simulated
from orchestration.local.sagemaker.components.component import Component
from orchestration.local.sagemaker.components.placing import Copies, needed, stages
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.serving.deploying import Deployer, Rollout
from orchestration.local.sagemaker.serving.endpoint import Endpoint
from orchestration.local.sagemaker.serving.endpoints import Endpoints
from orchestration.local.sagemaker.serving.model_host import ModelHost
from orchestration.local.sagemaker.serving.models import Models
from orchestration.local.sagemaker.serving.requests import Requests
from orchestration.local.sagemaker.serving.rollouts import percent
from orchestration.local.sagemaker.tags import Tags

_BUSY: Final = ("Creating", "Updating", "Deleting")
_DELETING_S: Final = 30
_RESIZING_S: Final = 120
"""Seconds of AWS until other copies serve, during which nothing else may change a component."""
_LEAST_PERCENT: Final = 5
_MOST_PERCENT: Final = 50
_NAME: Final = "InferenceComponentName"


class Components:
    """The inference components of an account."""

    def __init__(
        self,
        account: Account,
        tags: Tags,
        models: Models,
        endpoints: Endpoints,
        start_host: Callable[[Account, str, JsonObject, Path], ModelHost],
    ) -> None:
        self._account = account
        self._tags = tags
        self._models = models
        self._endpoints = endpoints
        self._deployer = Deployer(account, endpoints.alarms, start_host)
        self._components: dict[str, Component] = {}
        endpoints.alarms.requests_of_component = self._requests
        self._past_logs: dict[str, str] = {}
        self._lock = threading.RLock()

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {
            "CreateInferenceComponent": self._create,
            "UpdateInferenceComponent": self._update,
            "UpdateInferenceComponentRuntimeConfig": self._resize,
            "DescribeInferenceComponent": lambda request: self._get(request).described(),
            "DeleteInferenceComponent": self._delete,
            "ListInferenceComponents": self._list,
        }

    def invoke(self, endpoint: str, name: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Send an inference request to a component, and return its answer."""
        component = self._components.get(name)
        if component is None or component.shared.name != endpoint:
            raise refusal("components to invoke exist", name=name, endpoint=endpoint)
        return self._endpoints.answer(component.copies, body, headers)

    def has_arn(self, arn: str) -> bool:
        """Return whether a component has an ARN."""
        return any(each.copies.arn == arn for each in list(self._components.values()))

    def logs(self, name: str) -> str | None:
        """Return the log of a component's model, or None if there was no such component."""
        component = self._components.get(name)
        if component is None:
            return self._past_logs.get(name)
        return self._past_logs.get(name, "") + component.copies.logs()

    def state(self) -> JsonObject:
        """Return all components as in Describe responses."""
        return {name: each.described() for name, each in sorted(self._components.items())}

    def _requests(self, name: str) -> Requests | None:
        """Return the last requests to a component, or None if there is no such component."""
        component = self._components.get(name)
        return None if component is None else component.copies.requests

    def _arn(self, name: str) -> str:
        return self._account.arn("sagemaker", f"inference-component/{name.lower()}")

    def _get(self, request: JsonObject) -> Component:
        name = str(request[_NAME])
        if name not in self._components:
            raise refusal("components exist", arn=self._arn(name))
        return self._components[name]

    def _create(self, request: JsonObject) -> JsonObject:
        name = str(request[_NAME])
        arn = self._arn(name)
        check_tags(request.get("Tags", []))
        with self._lock:
            if name in self._components:
                raise refusal("components once", arn=arn)
            shared = self._endpoints.shared(request)
            count = request.get("RuntimeConfig", {}).get("CopyCount", 0)
            if count < 1:
                raise refusal("copies of components")
            specification, model = self._checked(request)
            variant = str(shared.fleet_variant["VariantName"])
            if request.get("VariantName", variant) != variant:
                raise refusal(
                    "variants of components", variant=request["VariantName"], arn=shared.arn
                )
            component = self._components[name] = Component(name, arn, shared, variant)
            shared.components.append(name)
            config = component.revise(specification, count)
            component.copies.begin("Creating", config)
        self._tags.add(arn, request.get("Tags", []))
        self._deploy(component, Rollout(config, {name: model}, {}))
        return {"InferenceComponentArn": arn}

    def _update(self, request: JsonObject) -> JsonObject:
        with self._lock:
            component = self._get(request)
            own = component.copies
            if own.status in _BUSY or own.status == "Failed":
                raise refusal("no component update in progress", arn=own.arn, status=own.status)
            if not {"Specification", "RuntimeConfig"} & request.keys():
                raise refusal("changes of components")
            asked = {"Specification": component.specification, **request}
            specification, model = self._checked(asked)
            count = request.get("RuntimeConfig", {}).get("CopyCount", component.count)
            deployment = request.get("DeploymentConfig", {})
            self._check_rolling(deployment, count)
            own.last_deployment = deployment or None
            config = component.revise(specification, count)
            own.begin("Updating", config)
        self._deploy(component, Rollout(config, {component.name: model}, deployment))
        return {"InferenceComponentArn": own.arn}

    def _resize(self, request: JsonObject) -> JsonObject:
        with self._lock:
            component = self._get(request)
            own = component.copies
            if own.status != "InService":
                raise refusal("no component update in progress", arn=own.arn, status=own.status)
            own.status = "Updating"
            count = component.resizing = request["DesiredRuntimeConfig"]["CopyCount"]
        threading.Thread(target=self._resized, args=(component, count), daemon=True).start()
        return {"InferenceComponentArn": own.arn}

    def _resized(self, component: Component, count: int) -> None:
        threading.Event().wait(self._account.clock.pause(_RESIZING_S))
        with self._lock:
            component.resize(count)
            self._fits(component.shared, {})
            component.copies.settle("InService")

    def _delete(self, request: JsonObject) -> JsonObject:
        with self._lock:
            component = self._get(request)
            own = component.copies
            if own.status in _BUSY:
                raise refusal("no component deletion in progress", arn=own.arn)
            own.status = "Deleting"
        threading.Thread(target=self._remove, args=(component,), daemon=True).start()
        return {}

    def _remove(self, component: Component) -> None:
        own = component.copies
        own.traffic.route()
        if own.fleet:
            own.fleet.stop()
        self._past_logs[component.name] = self._past_logs.get(component.name, "") + own.logs()
        threading.Event().wait(self._account.clock.pause(_DELETING_S))
        with self._lock:
            del self._components[component.name]
            component.shared.components.remove(component.name)
            self._tags.forget(own.arn)
            self._fits(component.shared, {})

    def _list(self, request: JsonObject) -> JsonObject:
        members = (
            *("InferenceComponentName", "InferenceComponentArn", "EndpointName", "EndpointArn"),
            *("VariantName", "CreationTime", "LastModifiedTime", "InferenceComponentStatus"),
        )
        described = [each.described() for each in list(self._components.values())]
        return {
            "InferenceComponents": [
                {key: each[key] for key in members}
                for each in described
                if request.get("NameContains", "") in each[_NAME]
                and request.get("EndpointNameEquals", each["EndpointName"]) == each["EndpointName"]
            ][: request.get("MaxResults", 100)]
        }

    def _checked(self, request: JsonObject) -> tuple[JsonObject, JsonObject]:
        """Return the specification of a request, and the model that it names."""
        specification = request.get("Specification", {})
        told = {"Container", "BaseInferenceComponentName", "InstanceType"} & specification.keys()
        if "ModelName" not in specification or told or "Specifications" in request:
            not_simulated(["an inference component of anything but one ModelName"])
        model = self._models.hosted(specification["ModelName"])
        if len(containers(model)) > 1:
            raise refusal("components of one container")
        if "ComputeResourceRequirements" not in specification:
            raise refusal("needs of components")
        return specification, model

    def _check_rolling(self, deployment: JsonObject, count: int) -> None:
        if not deployment:
            return
        size = deployment["RollingUpdatePolicy"]["MaximumBatchSize"]
        part = percent(size, count) if count > 1 else 100
        if not _LEAST_PERCENT <= part <= _MOST_PERCENT:
            raise refusal("rolling copies", size=size["Value"])
        check_alarms(deployment, self._endpoints.alarms.missing)

    def _deploy(self, component: Component, rollout: Rollout) -> None:
        """Begin to serve, if the instances have room for the copies at every stage of it."""
        [variant] = rollout.config["ProductionVariants"]
        new = (component.revision(rollout.config), variant["InitialInstanceCount"])
        own, shared = component.copies, component.shared
        old = (component.specification, component.count) if own.fleet else None
        batch = _batch(rollout.deployment, new[1])
        with self._lock:
            most = max(
                stages(old, new, batch),
                key=lambda stage: self._instances(shared, {component.name: stage}),
            )
            fits = self._fits(shared, {component.name: most})
            component.moving = most if fits else []
        if fits:
            self._deployer.deploy(own, rollout, lambda: self._moved(component))
            return
        reason = f"The instances of endpoint {shared.name} have no room for the copies."
        own.settle("InService" if own.fleet else "Failed", None if own.fleet else reason)

    def _moved(self, component: Component) -> None:
        """Adapt the instances to what is left after a creation or an update."""
        with self._lock:
            component.moving = []
            if component.shared.fleet:
                self._fits(component.shared, {})

    def _instances(self, shared: Endpoint, instead: Mapping[str, list[Copies]]) -> float:
        """Return the number of instances for components; infinite where a copy fits on none.

        ``instead``: copies of a component in the place of those that it has.
        """
        own = {name: each for name, each in list(self._components.items()) if each.shared is shared}
        copies = [
            (specification.get("ComputeResourceRequirements", {}), count)
            for name, each in own.items()
            for specification, count in instead.get(name, each.placed)
        ]
        number = needed(shared.fleet_variant["InstanceType"], copies)
        return math.inf if number is None else number

    def _fits(self, shared: Endpoint, instead: Mapping[str, list[Copies]]) -> bool:
        """Return whether an endpoint has room for its components, and adapt its instances."""
        variant = shared.fleet_variant
        number = self._instances(shared, instead)
        managed = variant.get("ManagedInstanceScaling", {})
        if managed.get("Status") != "ENABLED":
            return number <= int(variant["InitialInstanceCount"])
        if number > managed["MaxInstanceCount"]:
            return False
        for member in shared.fleet.members if shared.fleet else ():
            member.count = max(int(number), managed["MinInstanceCount"])
        return True


def _batch(deployment: JsonObject, count: int) -> int:
    """Return the number of copies that an update starts at once."""
    if not deployment or count < 1:
        return max(count, 1)
    size = deployment["RollingUpdatePolicy"]["MaximumBatchSize"]
    return max(1, math.ceil(count * percent(size, count) / 100))
