"""The rules that hold for jobs, models and endpoints alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_VPC = "model: VpcConfig; wording assumed"
_TAGS = "guide: https://docs.aws.amazon.com/tag-editor/latest/userguide/tagging.html"

SHARED: Final[Mapping[str, Rule]] = {
    "role": Rule(
        "ValidationException",
        "Could not assume role {role}. Please ensure that the role exists and allows principal "
        "'sagemaker.amazonaws.com' to assume the role.",
        "issue: https://github.com/awslabs/predictive-maintenance-using-machine-learning/issues/3",
    ),
    "subnets exist": Rule("ValidationException", "The subnet ID '{subnet}' does not exist.", _VPC),
    "security groups exist": Rule(
        "ValidationException", "The security group '{group}' does not exist.", _VPC
    ),
    "tag keys of AWS": Rule(
        "ValidationException",
        "aws: prefixed tag key names are not allowed for external use.",
        f"{_TAGS}; wording assumed (that of CloudFormation)",
    ),
    "tag keys once": Rule(
        "ValidationException",
        "Duplicate tag keys found: {key}.",
        f"{_TAGS}; wording assumed",
    ),
    "tags at most": Rule(
        "ValidationException",
        "A resource can have 50 tags at most; {arn} would have {count}.",
        f"{_TAGS}; wording assumed",
    ),
    "tagged resource exists": Rule(
        "ValidationException", "Could not find resource '{arn}'.", "model: AddTags; wording assumed"
    ),
}
