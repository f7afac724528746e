"""The endpoints of an account: created, updated with moving traffic, invoked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import (
    ACCOUNT_ID,
    Answer,
    JsonObject,
    Operation,
    ServiceError,
)
from orchestration.local.sagemaker.checks.deployments import check_alarms, check_deployment
from orchestration.local.sagemaker.checks.hosting import all_variants
from orchestration.local.sagemaker.checks.surroundings import check_tags
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.serving import scaling
from orchestration.local.sagemaker.serving.alarms import Alarms
from orchestration.local.sagemaker.serving.asynchronous import start
from orchestration.local.sagemaker.serving.deploying import Deployer, Rollout, retained
from orchestration.local.sagemaker.serving.endpoint import Endpoint
from orchestration.local.sagemaker.serving.model_host import ModelHost
from orchestration.local.sagemaker.serving.models import EndpointConfigs, Models
from orchestration.local.sagemaker.serving.requests import Requests
from orchestration.local.sagemaker.serving.shadowing import answered, copy
from orchestration.local.sagemaker.serving.waking import started
from orchestration.local.sagemaker.tags import Tags

_BUSY: Final = ("Creating", "Updating")


class Endpoints:
    """The endpoints of an account."""

    def __init__(
        self,
        account: Account,
        tags: Tags,
        models: Models,
        configs: EndpointConfigs,
        start_host: Callable[[Account, str, JsonObject, Path], ModelHost],
    ) -> None:
        self._account = account
        self._tags = tags
        self._models = models
        self._configs = configs
        self.alarms = self._alarms = Alarms(account, self.requests)
        self._deployer = Deployer(account, self._alarms, start_host)
        self._endpoints: dict[str, Endpoint] = {}
        self._past_logs: dict[str, str] = {}
        self._lock = threading.RLock()

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {
            "CreateEndpoint": self._create,
            "UpdateEndpoint": self._update,
            "DescribeEndpoint": lambda request: self._get(request).described(),
            "UpdateEndpointWeightsAndCapacities": self._resize,
            "DeleteEndpoint": self._delete,
            "ListEndpoints": self._list,
        }

    def has_arn(self, arn: str) -> bool:
        """Return whether an endpoint has an ARN."""
        return any(endpoint.arn == arn for endpoint in list(self._endpoints.values()))

    def logs(self, name: str) -> str | None:
        """Return the log of an endpoint's model, or None if there was no such endpoint.

        As in CloudWatch, it outlives the endpoint.
        """
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            return self._past_logs.get(name)
        return self._past_logs.get(name, "") + endpoint.logs()

    def state(self) -> JsonObject:
        """Return all endpoints as in Describe responses."""
        return {name: each.described() for name, each in sorted(self._endpoints.items())}

    def requests(self, name: str) -> Requests | None:
        """Return the last requests to an endpoint, or None if there is no such endpoint."""
        endpoint = self._endpoints.get(name)
        return None if endpoint is None else endpoint.requests

    def invoke(
        self, name: str, body: bytes, headers: dict[str, str], variant: str | None = None
    ) -> Answer:
        """Send an inference request to the model and return its answer."""
        endpoint = self._serving(name)
        if "AsyncInferenceConfig" in self._configs.find(endpoint.config_name):
            raise refusal("queued requests", name=name)
        if "ModelName" not in endpoint.fleet_variant:
            raise refusal("components to invoke")
        return self.answer(endpoint, body, headers, variant)

    def shared(self, request: JsonObject) -> Endpoint:
        """Return the endpoint of a request, which has room for inference components."""
        endpoint = self._get(request)
        configured = self._configs.find(endpoint.config_name).get("ProductionVariants", [{}])
        if "ModelName" in (endpoint.fleet_variant or configured[0]):
            raise refusal("endpoints of components")
        if endpoint.status != "InService":
            raise refusal("endpoints of components serve", arn=endpoint.arn, status=endpoint.status)
        return endpoint

    def invoke_async(self, request: JsonObject, body: bytes, headers: dict[str, str]) -> Answer:
        """Let an inference request wait, and return where its answer will be."""
        endpoint = self._serving(str(request["EndpointName"]))
        config = self._configs.find(endpoint.config_name)

        def reply(content: bytes) -> Answer:
            started(self._account, endpoint, self._alarms, self._resize)
            try:
                return self.answer(endpoint, content, headers)
            except ServiceError as error:
                return Answer(error.status, str(error).encode())

        return start(self._account, config, {**request, "Body": body}, reply)

    def _serving(self, name: str) -> Endpoint:
        endpoint = self._endpoints.get(name)
        if endpoint is None or endpoint.fleet is None:
            raise refusal("endpoints to invoke serve", name=name, account=ACCOUNT_ID)
        return endpoint

    def answer(
        self, endpoint: Endpoint, body: bytes, headers: dict[str, str], variant: str | None = None
    ) -> Answer:
        """Let the variant whose turn it is answer a request."""
        name = endpoint.name
        with endpoint.traffic.member(variant) as served:
            if served is None:
                raise refusal("endpoints to invoke serve", name=name, account=ACCOUNT_ID)
            fleet, member = served
            if variant not in (None, member.name):
                raise refusal("variants to invoke", variant=variant, name=name)
            captures = self._configs.find(fleet.config_name).get("DataCaptureConfig")
            copy(endpoint, fleet, body, headers, captures)
            answer = answered(endpoint, fleet, member, body, headers)
        if answer.status >= 400:
            text = answer.body.decode(errors="replace")
            whose = "client" if answer.status < 500 else "server"
            raise ServiceError(
                "ModelError",
                f"Received {whose} error ({answer.status}) from {answer.container} with message "
                f'"{text}". '
                f"See the logs of endpoint {name} for more information.",
                status=424,
                OriginalStatusCode=answer.status,
                OriginalMessage=text,
            )
        kind = headers.get("Content-Type", "application/octet-stream")
        endpoint.capture.write(captures, (name, member.name), (body, kind), answer)
        invoked = ("x-Amzn-Invoked-Production-Variant", member.name)
        return Answer(200, answer.body, (*answer.headers, invoked))

    def _get(self, request: JsonObject) -> Endpoint:
        name = str(request["EndpointName"])
        if name not in self._endpoints:
            raise refusal("endpoints exist", arn=self._arn(name))
        return self._endpoints[name]

    def _arn(self, name: str) -> str:
        return self._account.arn("sagemaker", f"endpoint/{name.lower()}")

    def _create(self, request: JsonObject) -> JsonObject:
        name, config_name = request["EndpointName"], request["EndpointConfigName"]
        arn = self._arn(name)
        check_tags(request.get("Tags", []))
        with self._lock:
            if name in self._endpoints:
                raise refusal("endpoints once", arn=arn)
            rollout = self._rollout(request, request.get("DeploymentConfig", {}))
            endpoint = self._endpoints[name] = Endpoint(name, arn, config_name)
            endpoint.begin("Creating", rollout.config)
        self._tags.add(arn, request.get("Tags", []))
        self._deployer.deploy(endpoint, rollout)
        return {"EndpointArn": arn}

    def _update(self, request: JsonObject) -> JsonObject:
        with self._lock:
            endpoint = self._get(request)
            if endpoint.status in _BUSY:
                raise refusal("no update in progress", arn=endpoint.arn)
            if endpoint.status == "Failed":
                raise refusal("no update of a failure", arn=endpoint.arn)
            deployment = request.get("DeploymentConfig") or {}
            if request.get("RetainDeploymentConfig"):
                deployment = endpoint.last_deployment or {}
            rollout = self._rollout(request, deployment)
            self._check_update(endpoint, rollout)
            endpoint.last_deployment = deployment or None
            endpoint.begin("Updating", rollout.config)
        self._deployer.deploy(endpoint, rollout)
        return {"EndpointArn": endpoint.arn}

    def _resize(self, request: JsonObject) -> JsonObject:
        with self._lock:
            endpoint = self._get(request)
            if endpoint.status in _BUSY or endpoint.fleet is None:
                raise refusal("no update in progress", arn=endpoint.arn)
            for desired in request["DesiredWeightsAndCapacities"]:
                for member in endpoint.fleet.all_members:
                    if member.name == desired["VariantName"]:
                        member.weight = desired.get("DesiredWeight", member.weight)
                        member.count = desired.get("DesiredInstanceCount", member.count)
            endpoint.fleet.weigh()
        return {"EndpointArn": endpoint.arn}

    def _delete(self, request: JsonObject) -> JsonObject:
        with self._lock:
            endpoint = self._get(request)
            if endpoint.status in _BUSY:
                raise refusal("no deletion in progress", arn=endpoint.arn)
            if endpoint.components:
                names = ", ".join(endpoint.components)
                raise refusal("endpoints without components", arn=endpoint.arn, names=names)
            endpoint.deleted = True
            scaling.forget(self._account, endpoint.name)
            del self._endpoints[endpoint.name]
        endpoint.traffic.route()
        if endpoint.fleet:
            endpoint.fleet.stop()
        self._past_logs[endpoint.name] = self._past_logs.get(endpoint.name, "") + endpoint.logs()
        self._tags.forget(endpoint.arn)
        return {}

    def _rollout(self, request: JsonObject, deployment: JsonObject) -> Rollout:
        """Return what a request asks for, which must not break a rule."""
        config = self._configs.get(request["EndpointConfigName"])
        variants = config["ProductionVariants"]
        if deployment.get("RollingUpdatePolicy") and len(variants) > 1:
            raise refusal("rolling one variant")
        for variant in variants:
            check_deployment(deployment, variant)
        check_alarms(deployment, self._alarms.missing)
        models = {
            each["VariantName"]: self._models.hosted(each["ModelName"])
            if "ModelName" in each
            else {}
            for each in all_variants(config)
        }
        return Rollout(config, models, deployment, retained(request))

    def _check_update(self, endpoint: Endpoint, rollout: Rollout) -> None:
        # An update compares the new configuration with the old one, which must still exist.
        old = self._configs.get(endpoint.config_name)["ProductionVariants"]
        new = rollout.config["ProductionVariants"]
        if "ServerlessConfig" in new[0] and "ServerlessConfig" not in old[0]:
            raise refusal("no update to serverless", arn=endpoint.arn)
        scaling.check_scaled(self._account, endpoint.name, old, new)
        names = [sorted(each["VariantName"] for each in variants) for variants in (old, new)]
        if rollout.deployment and names[0] != names[1]:
            raise refusal("variants stay", old=names[0], new=names[1])

    def _list(self, request: JsonObject) -> JsonObject:
        members = (
            "EndpointName",
            "EndpointArn",
            "CreationTime",
            "LastModifiedTime",
            "EndpointStatus",
        )
        descriptions: list[dict[str, Any]] = [
            endpoint.described() for endpoint in list(self._endpoints.values())
        ]
        return {
            "Endpoints": [
                {key: described[key] for key in members}
                for described in descriptions
                if request.get("NameContains", "") in described["EndpointName"]
                and request.get("StatusEquals", described["EndpointStatus"])
                == described["EndpointStatus"]
            ][: request.get("MaxResults", 100)]
        }
