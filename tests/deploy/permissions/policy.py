"""Whether an IAM policy lets a call through, by the judge of the embedded AWS.

It does not know how policies are made: what a call needs is written down a second time there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.local.iam.needs import needs
from orchestration.local.policies import evaluation
from orchestration.local.policies.evaluation import Need, matches

__all__ = ["Need", "_allowed", "allows", "denied", "matches", "needs"]


def allows(
    policy: Mapping[str, Any],
    service: str,
    operation: str,
    request: Mapping[str, Any],
    account: str,
    region: str,
    *,
    resource_tags: Mapping[str, str] | None = None,
) -> bool:
    """Whether the policy allows everything that a call needs.

    ``service`` is boto3's name. ``resource_tags`` are those of the resource that the call is about.
    """
    return not denied(
        policy, service, operation, request, account, region, resource_tags=resource_tags
    )


def denied(
    policy: Mapping[str, Any],
    service: str,
    operation: str,
    request: Mapping[str, Any],
    account: str,
    region: str,
    *,
    resource_tags: Mapping[str, str] | None = None,
) -> list[Need]:
    """What a call needs and the policy does not allow."""
    tags = {f"aws:ResourceTag/{key}": value for key, value in (resource_tags or {}).items()}
    return [
        need
        for need in needs(service, operation, request, account, region)
        if not _allowed(policy, Need(need.action, need.resource, {**tags, **need.context}))
    ]


def _allowed(policy: Mapping[str, Any], need: Need) -> bool:
    return evaluation.allows([policy], need)
