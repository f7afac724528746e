"""The rules of the model registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "ValidationException"
_TERRAFORM = (
    "issue: https://github.com/hashicorp/terraform-provider-aws/blob/main/internal/service/"
    "sagemaker/model_package_group.go; end of the wording"
)

REGISTRY: Final[Mapping[str, Rule]] = {
    "model groups once": Rule(
        _REFUSED,
        "Model Package Group already exists: {arn}",
        "model: CreateModelPackageGroup; wording as scripts that look for it quote it",
    ),
    "model groups exist": Rule(_REFUSED, "ModelPackageGroup {arn} does not exist.", _TERRAFORM),
    "groups of others are shared": Rule(
        "AccessDeniedException",
        "User: arn:aws:iam::{caller}:root is not authorized to perform: {action} on resource: "
        "{arn} because no resource-based policy allows the {action} action",
        "guide: https://docs.aws.amazon.com/sagemaker/latest/dg/"
        "model-registry-deploy-xaccount.html; "
        "wording: https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html",
    ),
    "policies of groups exist": Rule(
        _REFUSED,
        "Cannot find resource policy for: {arn}",
        "model: GetModelPackageGroupPolicy; wording assumed",
    ),
    "model groups are empty": Rule(
        _REFUSED,
        "ModelPackageGroup {arn} cannot be deleted: it has {count} model packages.",
        "model: DeleteModelPackageGroup; wording assumed",
    ),
    "packages or versions": Rule(
        _REFUSED,
        "Both ModelPackageName and ModelPackageGroupName are provided in the input. Cannot "
        "determine which one to use.",
        "issue: https://github.com/getmoto/moto/pull/7165",
    ),
    "packages have names": Rule(
        _REFUSED, "Missing ARN.", "issue: https://github.com/getmoto/moto/pull/7165"
    ),
    "tags of versions": Rule(
        _REFUSED,
        "Tags cannot be given for a version of the model package group {group}; tag the group.",
        "model: CreateModelPackageInput.Tags; wording assumed",
    ),
    "packages once": Rule(
        "ConflictException",
        "ModelPackage {arn} already exists.",
        "model: CreateModelPackage, ConflictException; wording assumed",
    ),
    "tokens of packages": Rule(
        "ConflictException",
        "ClientToken {token} was used with other parameters.",
        "model: CreateModelPackageInput.ClientToken; wording assumed",
    ),
    "packages exist": Rule(
        _REFUSED,
        "ModelPackage {arn} does not exist.",
        "model: DescribeModelPackage; wording of model package groups",
    ),
    "approved packages": Rule(
        _REFUSED,
        "ModelPackage {arn} is not approved for deployment.",
        "model: CreateModelPackageInput.ModelApprovalStatus; wording assumed",
    ),
}
