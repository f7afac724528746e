"""One inference component: its copies behave as an endpoint of one variant does."""

from __future__ import annotations

from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.components.placing import Copies
from orchestration.local.sagemaker.responses import response_members
from orchestration.local.sagemaker.serving.endpoint import Endpoint


class Component:
    """An inference component, on an endpoint that it shares."""

    def __init__(self, name: str, arn: str, shared: Endpoint, variant: str) -> None:
        self.name = name
        self.shared = shared
        self.variant = variant
        self.copies = Endpoint(name, arn, "", polled="DescribeInferenceComponent")
        self.moving: list[Copies] = []
        """The copies that are placed at once while it is created or updated, at the most."""
        self.resizing: int | None = None
        """The number of copies that it is to have, while that is changed."""
        self._revisions: dict[str, tuple[JsonObject, int]] = {}

    def revise(self, specification: JsonObject, count: int) -> JsonObject:
        """Keep what copies are to be, and return the configuration that stands for it."""
        key = str(len(self._revisions) + 1)
        self._revisions[key] = (specification, count)
        if self.copies.fleet is None:
            self.copies.config_name = key
        variant = {
            "VariantName": self.name,
            "ModelName": specification["ModelName"],
            "InitialInstanceCount": count,
            **specification.get("StartupParameters", {}),
        }
        return {"EndpointConfigName": key, "ProductionVariants": [variant]}

    def revision(self, config: JsonObject) -> JsonObject:
        """Return the specification that a configuration stands for."""
        return self._revisions[config["EndpointConfigName"]][0]

    def resize(self, count: int) -> None:
        """Have another number of copies."""
        self.resizing = None
        self._revisions[self.copies.config_name] = (self.specification, count)
        for member in self.copies.fleet.members if self.copies.fleet else ():
            member.count = count

    @property
    def placed(self) -> list[Copies]:
        """The copies that take room on instances."""
        serving = [(self.specification, self.count)] if self.copies.fleet else []
        return self.moving or serving

    @property
    def specification(self) -> JsonObject:
        """The specification of the copies that serve, or were to."""
        return self._revisions[self.copies.config_name][0]

    @property
    def count(self) -> int:
        """The number of copies that serve, or were to."""
        return self._revisions[self.copies.config_name][1]

    def described(self) -> JsonObject:
        """Return it as in a response of DescribeInferenceComponent."""
        own, serving = self.copies, self.count if self.copies.fleet else 0
        desired = self.count if self.resizing is None else self.resizing
        description: JsonObject = {
            "InferenceComponentName": self.name,
            "InferenceComponentArn": own.arn,
            "EndpointName": self.shared.name,
            "EndpointArn": self.shared.arn,
            "VariantName": self.variant,
            "InferenceComponentStatus": own.status,
            "FailureReason": own.failure_reason,
            "Specification": self.specification,
            "RuntimeConfig": {"DesiredCopyCount": desired, "CurrentCopyCount": serving},
            "CreationTime": own.created,
            "LastModifiedTime": own.modified,
            "LastDeploymentConfig": own.last_deployment,
        }
        members = response_members("DescribeInferenceComponent")
        return {
            key: value for key, value in description.items() if value is not None and key in members
        }
