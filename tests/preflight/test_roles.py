"""Roles that requests hand on: there, and assumed by the service that gets them."""

from __future__ import annotations

import json
from typing import Any

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from tests.preflight.conftest import ROLE, Examine, pipeline, role

UNTRUSTED = "arn:aws:iam::123456789012:role/untrusted"


def test_a_role_that_sagemaker_may_assume_is_no_finding(found: Examine) -> None:
    assert found(pipeline(), "roles") == []


def test_a_missing_role_fails_the_run(found: Examine) -> None:
    arn = "arn:aws:iam::123456789012:role/missing"
    [finding] = found(pipeline(), "roles", role=arn)
    assert (finding.severity, finding.where) == ("fails", "parameters.role")
    assert finding.what == f"role {arn} does not exist"


def test_a_role_under_another_path_is_another_role(found: Examine) -> None:
    [finding] = found(pipeline(), "roles", role="arn:aws:iam::123456789012:role/team/jobs")
    assert "does not exist; there is arn:aws:iam::123456789012:role/jobs" in finding.what


def test_a_role_that_trusts_another_service_fails_the_run(aws: EmbeddedAws, found: Examine) -> None:
    role(aws, UNTRUSTED, service="ec2.amazonaws.com")
    [finding] = found(pipeline(), "roles", role=UNTRUSTED)
    assert finding.severity == "fails"
    assert finding.what == f"role {UNTRUSTED} does not trust sagemaker.amazonaws.com"


def test_a_role_of_another_account_fails_the_run(found: Examine) -> None:
    arn = "arn:aws:iam::111122223333:role/jobs"
    [finding] = found(pipeline(), "roles", role=arn)
    assert finding.what == f"role {arn} is not in account 123456789012"


GROUP = "arn:aws:sagemaker:us-east-1:{account}:model-package-group/prices"


def reading(account: str, name: str = "registry") -> Pipeline:
    """Deploy from the registry of an account, by a role there."""
    stage = {
        "kind": "deployment",
        "package_group": GROUP.format(account=account),
        "registry_role": f"arn:aws:iam::{account}:role/{name}",
        "instance_type": "ml.m5.large",
    }
    return Pipeline.parse(
        {
            "name": "p",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "role": {"parameter": "role"},
            "parameters": {"role": {"default": ROLE}},
            "stages": {"deploy": stage},
        }
    )


def test_a_role_that_is_assumed_in_another_account_is_named(found: Examine) -> None:
    [finding] = found(reading("444455556666"), "roles")
    assert (finding.severity, finding.where) == ("not checked", "stages.deploy.registry_role")
    assert "arn:aws:iam::444455556666:role/registry is of another account" in finding.what
    assert "`orchestrate iam` prints its trust policy" in finding.mend


def test_a_role_that_is_assumed_exists_and_trusts_the_account(
    aws: EmbeddedAws, found: Examine
) -> None:
    [missing] = found(reading("123456789012", "absent"), "roles")
    assert missing.severity == "fails"
    assert missing.what.endswith(":role/absent does not exist")
    closed = role(aws, "arn:aws:iam::123456789012:role/closed", service="ec2.amazonaws.com")
    [finding] = found(reading("123456789012", "closed"), "roles")
    assert finding.what == f"role {closed} trusts nobody of account 123456789012"
    iam = aws.client("iam")
    trusted: dict[str, Any] = {
        "account": {"AWS": "arn:aws:iam::123456789012:root"},
        "anyone": "*",
        "anyone-of-aws": {"AWS": "*"},
    }
    for name, principal in trusted.items():
        allowed = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
        trust = {"Version": "2012-10-17", "Statement": [allowed]}
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
        assert found(reading("123456789012", name), "roles") == [], name
