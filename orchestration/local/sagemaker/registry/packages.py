"""Model packages: the versions of groups, and those with a name of their own.

A package is made at once, and is ``Completed``: its image is not scanned, and its model's files are
looked for only when a model is made of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, Operation, now
from orchestration.local.sagemaker.checks.surroundings import not_simulated
from orchestration.local.sagemaker.registry.groups import Groups
from orchestration.local.sagemaker.responses import response_members
from orchestration.local.sagemaker.rules import refusal

_SUMMARY: Final = (
    "ModelPackageName",
    "ModelPackageGroupName",
    "ModelPackageVersion",
    "ModelPackageArn",
    "ModelPackageDescription",
    "CreationTime",
    "ModelPackageStatus",
    "ModelApprovalStatus",
)
_PLAIN: Final = ("ModelApprovalStatus", "ApprovalDescription", "InferenceSpecification")
_PROPERTIES: Final = "CustomerMetadataProperties"


def untold(package: JsonObject) -> None:
    """Tell nobody of a package."""


class Packages:
    """The model packages of an account; `tell` hears of each that is made or changed."""

    def __init__(
        self, account: Account, groups: Groups, tell: Callable[[JsonObject], None] = untold
    ) -> None:
        self._account = account
        self._groups = groups
        self._tell = tell
        self._made: dict[str, JsonObject] = {}
        """What is there; each is replaced as a whole, and not changed under who reads it."""
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[JsonObject, str]] = {}

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        return {
            "CreateModelPackage": self._create,
            "DescribeModelPackage": self._describe,
            "UpdateModelPackage": self._update,
            "DeleteModelPackage": self._delete,
            "ListModelPackages": self._list,
        }

    def get(self, name: str) -> JsonObject:
        """Return a package by its name or ARN; raise `ServiceError` if it is missing."""
        arn = self._arn(name.partition(":model-package/")[2] or name)
        if arn not in self._made:
            raise refusal("packages exist", arn=arn)
        return self._made[arn]

    def deployable(self, name: str) -> JsonObject:
        """Return a package that models can be made of; raise `ServiceError` for any other."""
        package = self.get(name)
        # A version without a status is not held back: the registry's user did not ask for approval.
        if package.get("ModelApprovalStatus", "Approved") != "Approved":
            raise refusal("approved packages", arn=package["ModelPackageArn"])
        return package

    def state(self) -> JsonObject:
        """Return all of them as in Describe responses."""
        return {arn: self._described(made) for arn, made in sorted(self._made.items())}

    def _arn(self, name: str) -> str:
        return self._account.arn("sagemaker", f"model-package/{name.lower()}")

    def _create(self, request: JsonObject) -> JsonObject:
        token = request.get("ClientToken")
        with self._lock:
            if token in self._tokens:
                before, arn = self._tokens[token]
                if before != request:
                    raise refusal("tokens of packages", token=token)
                return {"ModelPackageArn": arn}
            named = self._named(request)
            arn = named["ModelPackageArn"]
            kept = {key: value for key, value in request.items() if key != "ClientToken"}
            made = self._made[arn] = {
                **kept,
                **named,
                "CreationTime": now(),
                "ModelPackageStatus": "Completed",
                "ModelPackageStatusDetails": {"ValidationStatuses": [], "ImageScanStatuses": []},
            }
            if token is not None:
                self._tokens[token] = (request, arn)
        self._tell(made)
        return {"ModelPackageArn": arn}

    def _named(self, request: JsonObject) -> JsonObject:
        """Return the name of a new package, or its group and version, and its ARN."""
        name, group = request.get("ModelPackageName"), request.get("ModelPackageGroupName")
        if name and group:
            raise refusal("packages or versions")
        if name:
            arn = self._arn(name)
            if arn in self._made:
                raise refusal("packages once", arn=arn)
            return {"ModelPackageName": name, "ModelPackageArn": arn}
        if not group:
            raise refusal("packages have names")
        group = self._groups.get(group)["ModelPackageGroupName"]
        if request.get("Tags"):
            raise refusal("tags of versions", group=group)
        version = self._groups.versions.get(group, 0) + 1
        self._groups.versions[group] = version
        self._groups.sizes[group] += 1
        return {
            "ModelPackageGroupName": group,
            "ModelPackageVersion": version,
            "ModelPackageArn": self._arn(f"{group}/{version}"),
        }

    def _described(self, made: JsonObject) -> JsonObject:
        members = response_members("DescribeModelPackage")
        return {key: value for key, value in made.items() if key in members}

    def _describe(self, request: JsonObject) -> JsonObject:
        return self._described(self.get(request["ModelPackageName"]))

    def _update(self, request: JsonObject) -> JsonObject:
        known = ("ModelPackageArn", *_PLAIN, _PROPERTIES, f"{_PROPERTIES}ToRemove")
        not_simulated(f"UpdateModelPackage's {name}" for name in request if name not in known)
        with self._lock:
            package = self.get(request["ModelPackageArn"])
            properties = {**package.get(_PROPERTIES, {}), **request.get(_PROPERTIES, {})}
            for key in request.get(f"{_PROPERTIES}ToRemove", []):
                properties.pop(key, None)
            package = self._made[package["ModelPackageArn"]] = {
                **package,
                **{key: request[key] for key in _PLAIN if key in request},
                _PROPERTIES: properties,
                "LastModifiedTime": now(),
            }
        self._tell(package)
        return {"ModelPackageArn": package["ModelPackageArn"]}

    def _delete(self, request: JsonObject) -> JsonObject:
        with self._lock:
            package = self.get(request["ModelPackageName"])
            del self._made[package["ModelPackageArn"]]
            self._groups.sizes[package.get("ModelPackageGroupName", "")] -= 1
        return {}

    def _list(self, request: JsonObject) -> JsonObject:
        not_simulated(f"ListModelPackages by {name}" for name in request if "CreationTime" in name)
        rows = [made for made in list(self._made.values()) if _is_listed(made, request)]
        # Of one moment, the later version counts as newer.
        rows.sort(
            key=lambda made: (made["CreationTime"], made.get("ModelPackageVersion", 0)),
            reverse=request.get("SortOrder", "Ascending") == "Descending",
        )
        start = int(request.get("NextToken", 0))
        end = start + request.get("MaxResults", 100)
        page: list[Any] = [{key: row[key] for key in _SUMMARY if key in row} for row in rows]
        rest = {"NextToken": str(end)} if end < len(rows) else {}
        return {"ModelPackageSummaryList": page[start:end], **rest}


def _is_listed(made: JsonObject, request: JsonObject) -> bool:
    group = request.get("ModelPackageGroupName")
    own = made.get("ModelPackageGroupName")
    default = "Unversioned" if group is None else "Versioned"
    kind = request.get("ModelPackageType", default)
    status = request.get("ModelApprovalStatus")
    part = request.get("NameContains", "")
    return (
        (group is None or own == group.rpartition("/")[2])
        and (kind == "Both" or (own is not None) == (kind == "Versioned"))
        and (status is None or made.get("ModelApprovalStatus") == status)
        and part in (own or made["ModelPackageName"])
    )
