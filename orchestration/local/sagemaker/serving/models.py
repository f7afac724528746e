"""Models and endpoint configurations."""

from __future__ import annotations

import threading
from typing import Protocol

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation, now
from orchestration.local.sagemaker.checks.hosting import (
    all_variants,
    check_model,
    check_served_model,
    check_shadowed_model,
    check_variants,
)
from orchestration.local.sagemaker.checks.surroundings import check_tags, not_simulated
from orchestration.local.sagemaker.responses import response_members
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.tags import Tags


class Resources:
    """Resources of one kind that only need to be stored."""

    def __init__(
        self, account: Account, tags: Tags, *, noun: str, rules: str, arn_word: str
    ) -> None:
        self._account = account
        self._tags = tags
        self._noun = noun
        self._rules = rules
        self._arn_word = arn_word
        self._created: dict[str, JsonObject] = {}
        """What is there; each is replaced as a whole, and not changed under who reads it."""
        self._lock = threading.RLock()

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {
            f"Create{self._noun}": self._create,
            f"Describe{self._noun}": self._describe,
            f"Delete{self._noun}": self._delete,
            f"List{self._noun}s": self._list,
        }

    def get(self, name: str) -> JsonObject:
        """Return the request that created a resource; raise `ServiceError` if it is missing."""
        if name not in self._created:
            raise refusal(f"{self._rules} exist", arn=self.arn(name))
        return self._created[name]

    def find(self, name: str) -> JsonObject:
        """Return the request that created a resource; empty where it has been deleted."""
        return self._created.get(name, {})

    def arn(self, name: str) -> str:
        """Return the ARN of the resource with a name."""
        return self._account.arn("sagemaker", f"{self._arn_word}/{name.lower()}")

    def has_arn(self, arn: str) -> bool:
        """Return whether one of these resources has an ARN."""
        return any(self.arn(name) == arn for name in list(self._created))

    def state(self) -> JsonObject:
        """Return all of them as in Describe responses."""
        return {name: self._description(made) for name, made in sorted(self._created.items())}

    def check(self, request: JsonObject) -> None:
        """Check the rules of the service beyond the shape of the request."""

    def _name(self, request: JsonObject) -> str:
        return str(request[f"{self._noun}Name"])

    def _create(self, request: JsonObject) -> JsonObject:
        name = self._name(request)
        arn = self.arn(name)
        with self._lock:
            if name in self._created:
                raise refusal(f"{self._rules} once", arn=arn)
            check_tags(request.get("Tags", []))
            self.check(request)
            self._created[name] = {**request, "CreationTime": now(), f"{self._noun}Arn": arn}
            self._tags.add(arn, request.get("Tags", []))
        return {f"{self._noun}Arn": arn}

    def _describe(self, request: JsonObject) -> JsonObject:
        return self._description(self.get(self._name(request)))

    def _description(self, made: JsonObject) -> JsonObject:
        members = response_members(f"Describe{self._noun}")
        return {key: value for key, value in made.items() if key in members}

    def _delete(self, request: JsonObject) -> JsonObject:
        name = self._name(request)
        with self._lock:
            self.get(name)
            del self._created[name]
            self._tags.forget(self.arn(name))
        return {}

    def _list(self, request: JsonObject) -> JsonObject:
        members = (f"{self._noun}Name", f"{self._noun}Arn", "CreationTime")
        newest_first = sorted(
            self._created.values(),
            key=lambda made: made["CreationTime"],
            reverse=request.get("SortOrder", "Descending") == "Descending",
        )
        rows = [
            {key: made[key] for key in members}
            for made in newest_first
            if request.get("NameContains", "") in made[f"{self._noun}Name"]
        ]
        start = int(request.get("NextToken", 0))
        end = start + request.get("MaxResults", 100)
        rest = {"NextToken": str(end)} if end < len(rows) else {}
        return {f"{self._noun}s": rows[start:end], **rest}


class Registered(Protocol):
    """The model registry, as far as models are made of it."""

    def deployable(self, name: str) -> JsonObject:
        """Return a package that models can be made of."""


class Models(Resources):
    """The models of an account."""

    def __init__(self, account: Account, tags: Tags, packages: Registered) -> None:
        super().__init__(account, tags, noun="Model", rules="models", arn_word="model")
        self._packages = packages

    def check(self, request: JsonObject) -> None:
        """Check that the model's data exists and what hosts it is whole."""
        check_model(self._account, self._unpacked(request))

    def hosted(self, name: str) -> JsonObject:
        """Return a model with the containers that host it, even those of a package."""
        return self._unpacked(self.get(name))

    def _unpacked(self, request: JsonObject) -> JsonObject:
        own = request.get("PrimaryContainer", {})
        if any("ModelPackageName" in each for each in request.get("Containers", [])):
            not_simulated(["Containers with a ModelPackageName"])
        if "ModelPackageName" not in own:
            return request
        package = self._packages.deployable(own["ModelPackageName"])
        containers = package.get("InferenceSpecification", {}).get("Containers", [])
        if len(containers) == 1:
            [container] = containers
            environment = {**container.get("Environment", {}), **own.get("Environment", {})}
            return {**request, "PrimaryContainer": {**container, "Environment": environment}}
        if not containers or own.get("Environment"):
            not_simulated([f"an Environment for a package with {len(containers)} containers"])
        others = {name: value for name, value in request.items() if name != "PrimaryContainer"}
        return {**others, "Containers": containers}


class EndpointConfigs(Resources):
    """The endpoint configurations of an account."""

    def __init__(self, account: Account, tags: Tags, models: Models) -> None:
        super().__init__(
            account,
            tags,
            noun="EndpointConfig",
            rules="configurations",
            arn_word="endpoint-config",
        )
        self._models = models

    def check(self, request: JsonObject) -> None:
        """Check that the model exists; refuse what is not simulated."""
        check_variants(request)
        for variant in all_variants(request):
            if "ModelName" not in variant:
                continue
            model = self._models.hosted(variant["ModelName"])
            check_served_model(variant, model)
            if "ShadowProductionVariants" in request:
                check_shadowed_model(variant, model)
