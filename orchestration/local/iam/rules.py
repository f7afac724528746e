"""The rules of STS and of IAM that a pipeline can break; moto enforces none of them."""

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

_QUOTAS = "number: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"

IAM: Final[Mapping[str, Rule]] = {
    "inline policies at most": Rule(
        "LimitExceeded",
        "Maximum policy size of {most} bytes exceeded for {kind} {name}",
        f"issue: https://github.com/serverless/serverless/issues/7643; {_QUOTAS}",
        409,
    ),
    "managed policies at most": Rule(
        "LimitExceeded",
        "Cannot exceed quota for PolicySize: {most}",
        "issue: https://github.com/ministryofjustice/cloud-platform-environments/pull/14473; "
        f"{_QUOTAS}",
        409,
    ),
    "trust policies at most": Rule(
        "LimitExceeded",
        "Cannot exceed quota for ACLSizePerRole: {most}",
        f"issue: https://github.com/kubeflow/kubeflow/issues/6687; {_QUOTAS}",
        409,
    ),
}
