"""Endpoints: a process per model, replaced by an update, kept if the new one fails."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import (
    ACCOUNT_ID,
    Answer,
    JsonObject,
    Operation,
    ServiceError,
    now,
)
from orchestration.local.sagemaker.checks.deployments import check_deployment
from orchestration.local.sagemaker.checks.surroundings import check_tags
from orchestration.local.sagemaker.responses import response_members
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.serving.model_host import (
    ModelHost,
    ModelHostFailed,
)
from orchestration.local.sagemaker.serving.models import EndpointConfigs, Models
from orchestration.local.sagemaker.tags import Tags

# Seconds of AWS between a request and the start of the new model.
_PROVISIONING_S = 10.0


class Endpoint:
    """An endpoint."""

    def __init__(self, name: str, arn: str, config_name: str) -> None:
        self.name = name
        self.arn = arn
        self.config_name = config_name
        self.status = "Creating"
        self.failure_reason: str | None = None
        self.created = self.modified = now()
        self.host: ModelHost | None = None
        self.variant: JsonObject = {}
        self.last_log = ""
        self.deleted = False

    def settle(self, status: str, failure_reason: str | None = None) -> None:
        """End a creation or an update."""
        self.failure_reason = failure_reason
        self.modified = now()
        self.status = status


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
        self._start_host = start_host
        self._endpoints: dict[str, Endpoint] = {}
        self._lock = threading.RLock()
        self._number = 0

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {
            "CreateEndpoint": self._create,
            "UpdateEndpoint": self._update,
            "DescribeEndpoint": lambda request: self._description(self._get(request)),
            "DeleteEndpoint": self._delete,
            "ListEndpoints": self._list,
        }

    def has_arn(self, arn: str) -> bool:
        """Return whether an endpoint has an ARN."""
        return any(endpoint.arn == arn for endpoint in self._endpoints.values())

    def logs(self, name: str) -> str | None:
        """Return the log of an endpoint's model, or None if there is no such endpoint."""
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            return None
        return endpoint.last_log + (endpoint.host.logs() if endpoint.host else "")

    def state(self) -> JsonObject:
        """Return all endpoints as in Describe responses."""
        return {name: self._description(each) for name, each in sorted(self._endpoints.items())}

    def invoke(self, name: str, body: bytes, headers: dict[str, str]) -> Answer:
        """Send an inference request to the model and return its answer."""
        endpoint = self._endpoints.get(name)
        if endpoint is None or endpoint.host is None:
            raise refusal("endpoints to invoke serve", name=name, account=ACCOUNT_ID)
        answer = endpoint.host.invoke(body, headers)
        if answer.status >= 400:
            text = answer.body.decode(errors="replace")
            raise ServiceError(
                "ModelError",
                f'Received server error ({answer.status}) from primary with message "{text}". '
                f"See the logs of endpoint {name} for more information.",
                status=424,
                OriginalStatusCode=answer.status,
                OriginalMessage=text,
            )
        variant = ("x-Amzn-Invoked-Production-Variant", endpoint.variant["VariantName"])
        return Answer(200, answer.body, (*answer.headers, variant))

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
            self._check_deployment(request)
            endpoint = self._endpoints[name] = Endpoint(name, arn, config_name)
        self._tags.add(arn, request.get("Tags", []))
        self._deploy(endpoint, config_name)
        return {"EndpointArn": arn}

    def _update(self, request: JsonObject) -> JsonObject:
        config_name = request["EndpointConfigName"]
        with self._lock:
            endpoint = self._get(request)
            if endpoint.status in ("Creating", "Updating"):
                raise refusal("no update in progress", arn=endpoint.arn)
            if endpoint.status == "Failed":
                raise refusal("no update of a failure", arn=endpoint.arn)
            self._check_update(endpoint, request)
            endpoint.status = "Updating"
            endpoint.modified = now()
        self._deploy(endpoint, config_name)
        return {"EndpointArn": endpoint.arn}

    def _delete(self, request: JsonObject) -> JsonObject:
        with self._lock:
            endpoint = self._get(request)
            if endpoint.status in ("Creating", "Updating"):
                raise refusal("no deletion in progress", arn=endpoint.arn)
            endpoint.deleted = True
            del self._endpoints[endpoint.name]
        if endpoint.host:
            endpoint.host.stop()
        self._tags.forget(endpoint.arn)
        return {}

    def _check_deployment(self, request: JsonObject) -> JsonObject:
        """Return the variant of the configuration that a request names."""
        variant: JsonObject = self._variant(request["EndpointConfigName"])
        check_deployment(request.get("DeploymentConfig", {}), variant)
        return variant

    def _check_update(self, endpoint: Endpoint, request: JsonObject) -> None:
        new = self._check_deployment(request)
        # An update compares the new configuration with the old one, which must still exist.
        old = self._variant(endpoint.config_name)
        if "ServerlessConfig" in new and "ServerlessConfig" not in old:
            raise refusal("no update to serverless", arn=endpoint.arn)

    def _variant(self, config_name: str) -> JsonObject:
        (variant,) = self._configs.get(config_name)["ProductionVariants"]
        return dict(variant)

    def _deploy(self, endpoint: Endpoint, config_name: str) -> None:
        # Read now: as on AWS, the endpoint keeps what is deleted while it is created.
        variant = self._variant(config_name)
        model = self._models.get(variant["ModelName"])
        threading.Thread(
            target=self._roll_out, args=(endpoint, config_name, variant, model), daemon=True
        ).start()

    def _roll_out(
        self, endpoint: Endpoint, config_name: str, variant: JsonObject, model: JsonObject
    ) -> None:
        with self._lock:
            self._number += 1
            directory = self._account.directory / "endpoint" / f"{endpoint.name}-{self._number}"
        threading.Event().wait(self._account.clock.pause(_PROVISIONING_S))
        activity = ("DescribeEndpoint", endpoint.name)
        self._account.activity.begin(activity)
        try:
            self._replace_host(endpoint, config_name, variant, model, directory)
        finally:
            self._account.activity.end(activity)

    def _replace_host(
        self,
        endpoint: Endpoint,
        config_name: str,
        variant: JsonObject,
        model: JsonObject,
        directory: Path,
    ) -> None:
        old = endpoint.host
        try:
            reason = self._account.faults.for_job("CreateEndpoint", endpoint.name)
            if reason:
                raise ModelHostFailed(reason)
            new = self._start_host(self._account, endpoint.name, model, directory)
        except (ModelHostFailed, ServiceError) as error:
            self._roll_back(endpoint, error)
            return
        endpoint.host, endpoint.variant, endpoint.config_name = new, variant, config_name
        endpoint.settle("InService")
        if old:
            old.stop()
            shutil.rmtree(old.directory, ignore_errors=True)

    def _roll_back(self, endpoint: Endpoint, error: Exception) -> None:
        reason = f"The primary container did not pass the ping health check. {error}"
        if isinstance(error, ModelHostFailed):
            endpoint.last_log += error.logs
        # A failed update leaves the old model in service with the old configuration.
        endpoint.settle(
            "InService" if endpoint.host else "Failed", None if endpoint.host else reason[:1024]
        )

    def _description(self, endpoint: Endpoint) -> JsonObject:
        description: JsonObject = {
            "EndpointName": endpoint.name,
            "EndpointArn": endpoint.arn,
            "EndpointConfigName": endpoint.config_name,
            "EndpointStatus": endpoint.status,
            "FailureReason": endpoint.failure_reason,
            "CreationTime": endpoint.created,
            "LastModifiedTime": endpoint.modified,
            "ProductionVariants": self._variants(endpoint),
        }
        members = response_members("DescribeEndpoint")
        return {
            key: value for key, value in description.items() if value is not None and key in members
        }

    def _variants(self, endpoint: Endpoint) -> list[JsonObject] | None:
        if not endpoint.host:
            return None
        count = endpoint.variant.get("InitialInstanceCount", 1)
        weight = endpoint.variant.get("InitialVariantWeight", 1.0)
        return [
            {
                "VariantName": endpoint.variant["VariantName"],
                "CurrentInstanceCount": count,
                "DesiredInstanceCount": count,
                "CurrentWeight": weight,
                "DesiredWeight": weight,
            }
        ]

    def _list(self, request: JsonObject) -> JsonObject:
        members = (
            "EndpointName",
            "EndpointArn",
            "CreationTime",
            "LastModifiedTime",
            "EndpointStatus",
        )
        descriptions: list[dict[str, Any]] = [
            self._description(endpoint) for endpoint in self._endpoints.values()
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
