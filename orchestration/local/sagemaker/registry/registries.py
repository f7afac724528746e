"""The registries of several accounts, and what each lets the others do with its groups.

A group is shared by its resource policy:
https://docs.aws.amazon.com/sagemaker/latest/dg/model-registry-deploy-xaccount.html
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import ACCOUNT_ID, JsonObject, Operation
from orchestration.local.account.sharing import meant_for
from orchestration.local.policies.evaluation import Need, allows
from orchestration.local.sagemaker.registry.groups import Groups
from orchestration.local.sagemaker.registry.packages import Packages, untold
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.tags import Tags

_NAMES: Final = ("ModelPackageArn", "ModelPackageName", "ModelPackageGroupName")
"""The fields of requests that name what they are about, maybe by its ARN."""
_CALLER: Final[ContextVar[str]] = ContextVar("caller", default=ACCOUNT_ID)
_POLICY: Final = "ResourcePolicy"


class Registries:
    """The model registry of each account that calls, or is named."""

    def __init__(self, account: Account, tags: Tags, tell: Callable[[JsonObject], None]) -> None:
        self._account = account
        self._tags = tags
        self.groups = Groups(account, tags)
        """Those of the embedded account itself."""
        self.packages = Packages(account, self.groups, tell)
        self._of = {ACCOUNT_ID: (self.groups, self.packages)}
        self._policies: dict[str, str] = {}

    @contextmanager
    def called_by(self, account: str) -> Iterator[None]:
        """Answer what is asked meanwhile as an account's own registry does."""
        token = _CALLER.set(account)
        try:
            yield
        finally:
            _CALLER.reset(token)

    def operations(self) -> dict[str, Operation]:
        """Return the operations by name."""
        names = {**self.groups.operations(), **self.packages.operations()}
        return {
            **{name: self._routed(name) for name in names},
            "PutModelPackageGroupPolicy": self._put_policy,
            "GetModelPackageGroupPolicy": self._get_policy,
            "DeleteModelPackageGroupPolicy": self._delete_policy,
        }

    def deployable(self, name: str) -> JsonObject:
        """Return a package that models can be made of; raise `ServiceError` for any other."""
        return self._holding("CreateModel", name)[1].deployable(name)

    def _routed(self, operation: str) -> Operation:
        def answer(request: JsonObject) -> JsonObject:
            named = next((request[name] for name in _NAMES if name in request), "")
            groups, packages = self._holding(operation, named)
            return {**groups.operations(), **packages.operations()}[operation](request)

        return answer

    def _holding(self, operation: str, name: str) -> tuple[Groups, Packages]:
        """Return the registry that holds something; raise `ServiceError` where it is not shared."""
        caller = _CALLER.get()
        holder = name.split(":")[4] if name.startswith("arn:") else caller
        if holder != caller:
            self._require(operation, name, caller)
        if holder not in self._of:
            account = copy.copy(self._account)
            account.id = holder
            groups = Groups(account, self._tags)
            # Events of another account's packages are not this one's.
            self._of.setdefault(holder, (groups, Packages(account, groups, untold)))
        return self._of[holder]

    def _require(self, operation: str, arn: str, caller: str) -> None:
        place, _, name = arn.partition(":model-package")
        group = f"{place}:model-package-group/{name.split('/')[1]}"
        policy = json.loads(self._policies.get(group, '{"Statement": []}'))
        action = f"sagemaker:{operation}"
        if not allows([{"Statement": meant_for(caller, policy)}], Need(action, arn)):
            raise refusal("groups of others are shared", caller=caller, action=action, arn=arn)

    def _put_policy(self, request: JsonObject) -> JsonObject:
        arn = self._group(request)
        self._policies[arn] = request[_POLICY]
        return {"ModelPackageGroupArn": arn}

    def _get_policy(self, request: JsonObject) -> JsonObject:
        arn = self._group(request)
        if arn not in self._policies:
            raise refusal("policies of groups exist", arn=arn)
        return {_POLICY: self._policies[arn]}

    def _delete_policy(self, request: JsonObject) -> JsonObject:
        self._policies.pop(self._group(request), None)
        return {}

    def _group(self, request: JsonObject) -> str:
        """Return the ARN of the caller's own group."""
        name = request["ModelPackageGroupName"]
        made: str = self._holding("Policy", name)[0].get(name)["ModelPackageGroupArn"]
        return made
