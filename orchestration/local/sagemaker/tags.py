"""Tags of the SageMaker resources that are simulated here."""

from __future__ import annotations

from collections.abc import Callable

from orchestration.local.account.protocol import JsonObject, Operation
from orchestration.local.sagemaker.checks.surroundings import check_number_of_tags, check_tags
from orchestration.local.sagemaker.rules import refusal


class Tags:
    """Tags by ARN; `exists` tells whether a simulated resource has an ARN."""

    def __init__(self, exists: Callable[[str], bool]) -> None:
        self._exists = exists
        self._tags: dict[str, dict[str, str]] = {}

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {"AddTags": self._add, "ListTags": self._list, "DeleteTags": self._delete}

    def add(self, arn: str, tags: list[JsonObject]) -> None:
        """Set tags."""
        self._tags.setdefault(arn, {}).update({tag["Key"]: tag["Value"] for tag in tags})

    def of(self, arn: str) -> list[JsonObject]:
        """Return the tags of a resource, sorted by key."""
        tags = sorted(self._tags.get(arn, {}).items())
        return [{"Key": key, "Value": value} for key, value in tags]

    def forget(self, arn: str) -> None:
        """Remove the tags of a deleted resource."""
        self._tags.pop(arn, None)

    def _checked(self, request: JsonObject) -> str:
        arn = str(request["ResourceArn"])
        if not self._exists(arn):
            raise refusal("tagged resource exists", arn=arn)
        return arn

    def _add(self, request: JsonObject) -> JsonObject:
        arn = self._checked(request)
        check_tags(request["Tags"])
        check_number_of_tags(arn, [*self._tags.get(arn, {}), *(t["Key"] for t in request["Tags"])])
        self.add(arn, request["Tags"])
        return {"Tags": self.of(arn)}

    def _list(self, request: JsonObject) -> JsonObject:
        return {"Tags": self.of(self._checked(request))}

    def _delete(self, request: JsonObject) -> JsonObject:
        arn = self._checked(request)
        for key in request["TagKeys"]:
            self._tags.get(arn, {}).pop(key, None)
        return {}
