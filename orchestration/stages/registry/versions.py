"""Questions to the model registry that several stages ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from orchestration.errors import Problem
from orchestration.graph import Call, ErrorPattern, Operation, Output, Permission, Recovery
from orchestration.stages.options.step_functions import ROLE
from orchestration.stages.values import Text

MOST_LISTED: Final = 100
"""Versions in one page of ListModelPackages."""
NO_GROUP: Final = ErrorPattern("ValidationException", "does not exist")


_OF_GROUP: Final = ":model-package-group/"
_FIELD: Final = "registry_role"


def is_elsewhere(group: Text) -> bool:
    """Return whether a group is named by its ARN, as those of other accounts are."""
    return isinstance(group, str) and group.startswith("arn:")


def permissions(group: Text, *actions: str) -> tuple[Permission, ...]:
    """Return the need for actions on the versions of a group that is named by its ARN.

    Requests name versions by ARNs that only a run knows, so the policy would allow those of the
    role's own account.
    """
    if not isinstance(group, str) or not is_elsewhere(group):
        return ()
    versions = group.replace(_OF_GROUP, ":model-package/") + "/*"
    return (Permission(actions=actions, resources=(versions,)),)


def role_problems(role: Text | None, group: Text | None = None) -> Iterator[Problem]:
    """Yield what keeps a role from being assumed in the account of a registry."""
    if not isinstance(role, str):
        return
    if re.fullmatch(ROLE, role) is None:
        yield Problem(_FIELD, f"expected arn:aws:iam::<account>:role/<name>, got {role!r}")
        return
    if not isinstance(group, str):
        return
    if not is_elsewhere(group):
        wanted = f"arn:aws:sagemaker:<region>:{role.split(':')[4]}:model-package-group/{group}"
        yield Problem("package_group", f"is of the role's account; name it by its ARN, {wanted}")
        return
    owners = [(arn.split(":")[1], arn.split(":")[4]) for arn in (role, group)]
    if owners[0] != owners[1]:
        (_, assumed), (_, owner) = owners
        message = f"is of account {assumed}, and the group of account {owner}"
        if assumed == owner:
            message = f"is of partition {owners[0][0]}, and the group of partition {owners[1][0]}"
        yield Problem(_FIELD, f"{message}; name a role of the group's account")


def latest_approved(
    name: str, group: Text, role: Text | None, *, after: tuple[str, ...] = ()
) -> Call:
    """Return the call that finds the ARN of a group's latest approved version: ``found``.

    It is empty where the group has none, or is missing. A group in another account is named by its
    ARN, and maybe read as a role of that account.
    """
    request = {
        "ModelPackageGroupName": group,
        "ModelApprovalStatus": "Approved",
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        "MaxResults": 1,
    }
    path = ("ModelPackageSummaryList", 0, "ModelPackageArn")
    return Call(
        name=name,
        operation=Operation("sagemaker", "ListModelPackages", request, assumes=role),
        outputs={"found": Output(path, kind="string", default="")},
        recoveries=(Recovery(NO_GROUP, {"found": ""}),),
        after=after,
    )
