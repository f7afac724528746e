"""Questions to the model registry that several stages ask."""

from __future__ import annotations

from typing import Final

from orchestration.graph import Call, ErrorPattern, Operation, Output, Permission, Recovery
from orchestration.stages.values import Text

MOST_LISTED: Final = 100
"""Versions in one page of ListModelPackages."""
NO_GROUP: Final = ErrorPattern("ValidationException", "does not exist")


_OF_GROUP: Final = ":model-package-group/"


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


def latest_approved(name: str, group: Text, *, after: tuple[str, ...] = ()) -> Call:
    """Return the call that finds the ARN of a group's latest approved version: ``found``.

    It is empty where the group has none, or is missing. A group in another account is named by its
    ARN.
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
        operation=Operation("sagemaker", "ListModelPackages", request),
        outputs={"found": Output(path, kind="string", default="")},
        recoveries=(Recovery(NO_GROUP, {"found": ""}),),
        after=after,
    )
