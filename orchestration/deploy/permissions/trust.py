"""The services that may assume a role."""

from __future__ import annotations

from typing import Any

from orchestration.deploy.account import Account


def trust(account: Account, *services: str) -> dict[str, Any]:
    """Let services assume a role, for resources of this account only.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html
    """
    principal = services[0] if len(services) == 1 else list(services)
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": principal},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"aws:SourceAccount": account.id}},
            }
        ],
    }
