"""Requests to IAM that break its rules, each of them once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws

_TRUST = {"Effect": "Allow", "Principal": {"AWS": []}, "Action": "sts:AssumeRole"}


def _policy(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=8)


def _reading(buckets: int) -> str:
    places = [f"arn:aws:s3:::bucket-{number:04}/*" for number in range(buckets)]
    return _policy({"Effect": "Allow", "Action": "s3:GetObject", "Resource": places})


def _trusting(accounts: int) -> str:
    roots = [f"arn:aws:iam::{10**11 + number}:root" for number in range(accounts)]
    return _policy({**_TRUST, "Principal": {"AWS": roots}})


def _role(aws: EmbeddedAws, accounts: int = 1) -> str:
    name = f"role-{uuid.uuid4().hex[:8]}"
    aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=_trusting(accounts))
    return name


def _inline(*buckets: int) -> Callable[[EmbeddedAws], None]:
    def put(aws: EmbeddedAws) -> None:
        role = _role(aws)
        for number, each in enumerate(buckets):
            aws.client("iam").put_role_policy(
                RoleName=role, PolicyName=f"policy{number}", PolicyDocument=_reading(each)
            )

    return put


def _of_user(aws: EmbeddedAws) -> None:
    iam, name = aws.client("iam"), f"user-{uuid.uuid4().hex[:8]}"
    iam.create_user(UserName=name)
    for number in range(2):
        iam.put_user_policy(
            UserName=name, PolicyName=f"policy{number}", PolicyDocument=_reading(40)
        )


def _of_group(aws: EmbeddedAws) -> None:
    iam, name = aws.client("iam"), f"group-{uuid.uuid4().hex[:8]}"
    iam.create_group(GroupName=name)
    for number in range(2):
        iam.put_group_policy(
            GroupName=name, PolicyName=f"policy{number}", PolicyDocument=_reading(100)
        )


def _version(aws: EmbeddedAws) -> None:
    iam, name = aws.client("iam"), f"policy-{uuid.uuid4().hex[:8]}"
    made = iam.create_policy(PolicyName=name, PolicyDocument=_reading(150))["Policy"]
    iam.create_policy_version(PolicyArn=made["Arn"], PolicyDocument=_reading(230))


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "inline policies at most": _inline(380),
    "managed policies at most": lambda aws: aws.client("iam").create_policy(
        PolicyName="reading", PolicyDocument=_reading(230)
    ),
    "trust policies at most": lambda aws: _role(aws, 60),
}
ALSO: dict[str, tuple[str, Callable[[EmbeddedAws], Any]]] = {
    "inline policies together": ("inline policies at most", _inline(190, 190)),
    "inline policies of a user": ("inline policies at most", _of_user),
    "inline policies of a group": ("inline policies at most", _of_group),
    "versions of policies": ("managed policies at most", _version),
    "a trust that is changed": (
        "trust policies at most",
        lambda aws: aws.client("iam").update_assume_role_policy(
            RoleName=_role(aws), PolicyDocument=_trusting(60)
        ),
    ),
}
