"""Groups of model packages."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typing_extensions import override

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.serving.models import Resources
from orchestration.local.sagemaker.tags import Tags


class Groups(Resources):
    """The model package groups of an account."""

    def __init__(self, account: Account, tags: Tags) -> None:
        super().__init__(
            account,
            tags,
            noun="ModelPackageGroup",
            rules="model groups",
            arn_word="model-package-group",
        )
        self.versions: dict[str, int] = {}
        """The last version of each group; a number is never used again."""
        self.sizes: Counter[str] = Counter()
        """The versions that each group has."""

    @override
    def operations(self) -> dict[str, Operation]:
        return {**super().operations(), "DeleteModelPackageGroup": self._remove}

    @override
    def arn(self, name: str) -> str:
        # A group can be asked for by its ARN as well.
        return self._account.arn("sagemaker", f"model-package-group/{name.rpartition('/')[2]}")

    @override
    def get(self, name: str) -> JsonObject:
        return super().get(name.rpartition("/")[2])

    @override
    def _name(self, request: JsonObject) -> str:
        return super()._name(request).rpartition("/")[2]

    @override
    def _description(self, made: JsonObject) -> JsonObject:
        return {**super()._description(made), "ModelPackageGroupStatus": "Completed"}

    def _remove(self, request: JsonObject) -> JsonObject:
        name = self._name(request)
        self.get(name)
        if self.sizes[name]:
            raise refusal("model groups are empty", arn=self.arn(name), count=self.sizes[name])
        return self._delete(request)

    @override
    def _list(self, request: JsonObject) -> JsonObject:
        page: dict[str, Any] = super()._list(request)
        page["ModelPackageGroupSummaryList"] = [
            {**row, "ModelPackageGroupStatus": "Completed"}
            for row in page.pop("ModelPackageGroups")
        ]
        return page
