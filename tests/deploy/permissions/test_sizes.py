"""A policy is refused before its deployment if it is longer than IAM takes, and not before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import DataStaging, S3Destination
from orchestration.deploy import Account, desired
from orchestration.deploy.permissions.policies import check_size
from orchestration.errors import UnsupportedError
from orchestration.local import EmbeddedAws
from tests.deploy.pipelines import copying

ACCOUNT = Account(id="123456789012", region="us-east-1")
COPIER = "arn:aws:iam::123456789012:role/copying-us-east-1-datasync"
SERVICE = {"Service": "states.amazonaws.com"}


def policy(size: int) -> dict[str, Any]:
    """Return a policy of a size without its blanks."""
    statement: dict[str, Any] = {"Sid": "", "Effect": "Allow", "Action": "s3:GetObject"}
    written: dict[str, Any] = {
        "Version": "2012-10-17",
        "Statement": [{**statement, "Resource": "arn:aws:s3:::b/"}],
    }
    missing = size - len(json.dumps(written, separators=(",", ":")))
    written["Statement"][0]["Resource"] += "x" * missing
    return written


@pytest.fixture(scope="module")
def iam() -> Iterator[Any]:
    with EmbeddedAws() as aws:
        client = aws.client("iam")
        trust = {"Effect": "Allow", "Principal": SERVICE, "Action": "sts:AssumeRole"}
        document = {"Version": "2012-10-17", "Statement": [trust]}
        client.create_role(RoleName="role", AssumeRolePolicyDocument=json.dumps(document))
        yield client


def test_the_longest_policy_that_iam_takes_is_let_through(iam: Any) -> None:
    longest = policy(10_240)
    check_size(longest, "the role")
    iam.put_role_policy(RoleName="role", PolicyName="p", PolicyDocument=json.dumps(longest))


def test_one_character_more_is_refused_as_by_iam(iam: Any) -> None:
    longer = policy(10_241)
    with pytest.raises(UnsupportedError, match="the policy of the role has 10241 characters"):
        check_size(longer, "the role")
    with pytest.raises(iam.exceptions.LimitExceededException):
        iam.put_role_policy(RoleName="role", PolicyName="p", PolicyDocument=json.dumps(longer))


def test_the_policy_of_the_role_that_copies_is_measured_too() -> None:
    destination = S3Destination(copy_by="datasync", datasync_role=COPIER)
    folder = "x" * 850
    stages = tuple(
        DataStaging(
            name=f"staging_{number}",
            source=f"s3://incoming-{number}/{folder}",
            destination=destination,
        )
        for number in range(12)
    )
    parameters = {"bucket": "workspace", "role": "arn:aws:iam::123456789012:role/SageMaker"}
    with pytest.raises(UnsupportedError, match="role copying-us-east-1-datasync has 1"):
        desired(copying(stages=stages), ACCOUNT, parameters=parameters)
