"""The services that may assume a role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.deploy.account import Account


def trust(account: Account, services: Mapping[str, str | list[str]]) -> dict[str, Any]:
    """Let services assume a role, each for resources of this account only.

    ``services`` are patterns of the ARNs for which each may, by the service's principal:
    ``{"states.amazonaws.com": "arn:aws:states:us-east-1:111122223333:stateMachine:digits"}``.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html
    """
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": service},
                "Action": "sts:AssumeRole",
                "Condition": {
                    "StringEquals": {"aws:SourceAccount": account.id},
                    "ArnLike": {"aws:SourceArn": sources},
                },
            }
            for service, sources in services.items()
        ],
    }
