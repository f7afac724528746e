"""The rules of STS that a pipeline can break; moto enforces none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

RULES: Final[Mapping[str, Rule]] = {
    "roles trust who assumes them": Rule(
        "AccessDenied",
        "User: {caller} is not authorized to perform: sts:AssumeRole on resource: {role}",
        "issue: https://github.com/aws/aws-cli/issues/7216; rule: "
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_update-role-trust-policy.html",
        403,
    ),
}
