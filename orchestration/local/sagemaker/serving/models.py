"""Models and endpoint configurations: what an endpoint is made of."""

from __future__ import annotations

from typing import Any

from orchestration.local.account import storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation, ServiceError, now
from orchestration.local.account.storage import Location
from orchestration.local.sagemaker.responses import response_members
from orchestration.local.sagemaker.tags import Tags


class Resources:
    """Resources of one kind that are only written down: created, described, listed, deleted."""

    def __init__(
        self, account: Account, tags: Tags, *, noun: str, words: str, arn_word: str
    ) -> None:
        self._account = account
        self._tags = tags
        self._noun = noun
        self._words = words
        self._arn_word = arn_word
        self._made: dict[str, JsonObject] = {}

    def operations(self) -> dict[str, Operation]:
        """The operations by their names."""
        return {
            f"Create{self._noun}": self._create,
            f"Describe{self._noun}": self._describe,
            f"Delete{self._noun}": self._delete,
            f"List{self._noun}s": self._list,
        }

    def get(self, name: str) -> JsonObject:
        """What a resource was created with; `ValidationException` where there is none."""
        if name not in self._made:
            raise ServiceError(
                "ValidationException", f'Could not find {self._words} "{self.arn(name)}".'
            )
        return self._made[name]

    def arn(self, name: str) -> str:
        """The ARN of the resource with a name."""
        return self._account.arn("sagemaker", f"{self._arn_word}/{name.lower()}")

    def has_arn(self, arn: str) -> bool:
        """Whether an ARN is of one of these."""
        return any(self.arn(name) == arn for name in self._made)

    def state(self) -> JsonObject:
        """All of them as Describe tells them."""
        return {name: self._description(made) for name, made in sorted(self._made.items())}

    def check(self, request: JsonObject) -> None:
        """What the service asks for beyond the shapes of the request."""

    def _name(self, request: JsonObject) -> str:
        return str(request[f"{self._noun}Name"])

    def _create(self, request: JsonObject) -> JsonObject:
        name = self._name(request)
        arn = self.arn(name)
        if name in self._made:
            raise ServiceError(
                "ValidationException", f'Cannot create already existing {self._words} "{arn}".'
            )
        self.check(request)
        self._made[name] = {**request, "CreationTime": now(), f"{self._noun}Arn": arn}
        self._tags.add(arn, request.get("Tags", []))
        return {f"{self._noun}Arn": arn}

    def _describe(self, request: JsonObject) -> JsonObject:
        return self._description(self.get(self._name(request)))

    def _description(self, made: JsonObject) -> JsonObject:
        members = response_members(f"Describe{self._noun}")
        return {key: value for key, value in made.items() if key in members}

    def _delete(self, request: JsonObject) -> JsonObject:
        name = self._name(request)
        self.get(name)
        del self._made[name]
        self._tags.forget(self.arn(name))
        return {}

    def _list(self, request: JsonObject) -> JsonObject:
        members = (f"{self._noun}Name", f"{self._noun}Arn", "CreationTime")
        found = sorted(self._made.values(), key=lambda made: made["CreationTime"], reverse=True)
        return {
            f"{self._noun}s": [
                {key: made[key] for key in members}
                for made in found
                if request.get("NameContains", "") in made[f"{self._noun}Name"]
            ][: request.get("MaxResults", 100)]
        }


class Models(Resources):
    """Models."""

    def __init__(self, account: Account, tags: Tags) -> None:
        super().__init__(account, tags, noun="Model", words="model", arn_word="model")

    def check(self, request: JsonObject) -> None:
        """The model's data must be there, and be hosted by one container."""
        container = request.get("PrimaryContainer")
        if not container or request.get("Containers"):
            raise ServiceError(
                "ValidationException", "the embedded AWS hosts models with a PrimaryContainer only"
            )
        data = model_data(container)
        if data is None:
            return
        found = storage.bucket_exists(data.bucket) and storage.objects(data)
        if not found:
            raise ServiceError("ValidationException", f"Could not find model data at {data}.")


class EndpointConfigs(Resources):
    """Endpoint configurations."""

    def __init__(self, account: Account, tags: Tags, models: Models) -> None:
        super().__init__(
            account,
            tags,
            noun="EndpointConfig",
            words="endpoint configuration",
            arn_word="endpoint-config",
        )
        self._models = models

    def check(self, request: JsonObject) -> None:
        """The model must be there; what is not simulated is refused."""
        variants = request["ProductionVariants"]
        unsupported = [
            member
            for member in ("ShadowProductionVariants", "AsyncInferenceConfig", "DataCaptureConfig")
            if request.get(member)
        ]
        if len(variants) != 1 or unsupported or "ModelName" not in variants[0]:
            what = ", ".join(unsupported) or "other than one production variant with a ModelName"
            raise ServiceError("ValidationException", f"the embedded AWS does not simulate {what}")
        self._models.get(variants[0]["ModelName"])


def model_data(container: JsonObject) -> Location | None:
    """Where a container's model is, if it has one."""
    if container.get("ModelDataUrl"):
        return Location.parse(container["ModelDataUrl"])
    source: Any = container.get("ModelDataSource", {}).get("S3DataSource")
    return Location.parse(source["S3Uri"]) if source else None
