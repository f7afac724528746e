"""The services that may assume a role."""

from __future__ import annotations

from typing import Any

from orchestration.deploy.account import Account


def trust(account: Account, *services: str, sources: str | None = None) -> dict[str, Any]:
    """Let services assume a role, for resources of this account only.

    ``sources`` is a pattern of the ARNs for which they may.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html
    """
    principal = services[0] if len(services) == 1 else list(services)
    condition: dict[str, Any] = {"StringEquals": {"aws:SourceAccount": account.id}}
    if sources is not None:
        condition["ArnLike"] = {"aws:SourceArn": sources}
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": principal},
                "Action": "sts:AssumeRole",
                "Condition": condition,
            }
        ],
    }
