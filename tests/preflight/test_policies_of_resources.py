"""Policies of buckets and keys, and the keys of buckets: what they let the roles of jobs do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import ROLE, TRAINING, Examine, pipeline, role

ROOT = "arn:aws:iam::123456789012:root"
ACCOUNT = "arn:aws:iam::123456789012:role/"
KEYED = ("instance_count: 2", "instance_count: 2, volume_kms_key: KEY")


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@pytest.fixture
def denying(aws: EmbeddedAws) -> Iterator[Any]:
    """Give the workspace's bucket a policy of one denial, for the length of a test."""
    s3 = aws.client("s3")

    def deny(**statement: Any) -> None:
        whole = {"Effect": "Deny", "Resource": "arn:aws:s3:::workspace/*", **statement}
        s3.put_bucket_policy(Bucket="workspace", Policy=policy(whole))

    yield deny
    s3.delete_bucket_policy(Bucket="workspace")


@pytest.mark.parametrize(
    "about",
    [
        {"Principal": "*"},
        {"NotPrincipal": {"AWS": ROOT}},
        {"NotPrincipal": {"AWS": [f"{ACCOUNT}other", ROOT]}},
        {"NotPrincipal": {"AWS": [ROLE]}},
    ],
)
def test_a_bucket_whose_policy_denies_the_role_fails_the_run(
    about: dict[str, Any], denying: Any, found: Examine
) -> None:
    denying(**about, Action="s3:PutObject")
    [finding] = found(pipeline(), "buckets")
    assert (finding.severity, finding.where) == ("fails", "parameters.bucket")
    denied = f"the policy of bucket workspace denies {ROLE} s3:PutObject on arn:aws:s3:::workspace/"
    assert finding.what.startswith(denied)
    assert finding.when == "train.job needs it"


@pytest.mark.parametrize(
    "statement",
    [
        {"Principal": {"AWS": f"{ACCOUNT}other"}, "Action": "s3:PutObject"},
        {"NotPrincipal": {"AWS": [ROLE, ROOT]}, "Action": "s3:PutObject"},
        {"Principal": "*", "Action": "s3:DeleteObject"},
        {
            "Principal": "*",
            "Action": "s3:*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
        {
            "Principal": "*",
            "Action": "s3:*",
            "Condition": {"StringNotEquals": {"aws:PrincipalAccount": "123456789012"}},
        },
    ],
)
def test_a_denial_of_something_else_is_no_finding(
    statement: dict[str, Any], denying: Any, found: Examine
) -> None:
    denying(**statement)
    assert found(pipeline(), "buckets") == []


def test_a_denial_that_depends_on_the_call_may_fail_the_run(denying: Any, found: Examine) -> None:
    only = {"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}
    denying(Principal={"AWS": "*"}, Action="s3:Put*", Condition=only)
    [finding] = found(pipeline(), "buckets")
    assert finding.severity == "may fail"
    assert finding.what.endswith(", unless the call has another aws:SourceVpce")


def test_a_key_whose_policy_leaves_the_role_out_fails_the_run(
    aws: EmbeddedAws, found: Examine
) -> None:
    kms = aws.client("kms")
    anyone = {"Effect": "Allow", "Principal": {"AWS": ROOT}, "Action": "kms:*", "Resource": "*"}
    key = kms.create_key(Policy=policy(anyone))["KeyMetadata"]["Arn"]
    checked = pipeline(TRAINING, KEYED, ("KEY", f'"{key}"'))
    assert found(checked, "keys") == []
    admins = {**anyone, "Principal": {"AWS": f"{ACCOUNT}admin"}}
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=policy(admins))
    findings = found(checked, "keys")
    assert {(each.severity, each.where) for each in findings} == {
        ("fails", "stages.train.cluster.volume_kms_key")
    }
    refused = f"the policy of key {key} does not allow {ROLE} kms:CreateGrant"
    assert refused in [each.what for each in findings]
    operations = ["CreateGrant", "DescribeKey"]
    kms.create_grant(KeyId=key, GranteePrincipal=ROLE, Operations=operations)
    assert found(checked, "keys") == []
    denial = {**anyone, "Effect": "Deny", "Action": "kms:CreateGrant"}
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=policy(anyone, denial))
    [finding] = found(checked, "keys")
    assert finding.what == f"the policy of key {key} denies {ROLE} kms:CreateGrant"


def test_the_key_that_a_bucket_encrypts_with_is_looked_at(aws: EmbeddedAws, found: Examine) -> None:
    kms, s3 = aws.client("kms"), aws.client("s3")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    s3.put_bucket_encryption(
        Bucket="workspace",
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": default}]
        },
    )
    try:
        assert found(pipeline(), "keys") == []
        arn = role(aws, f"{ACCOUNT}keyless", "s3:*", "ecr:*", "logs:*", "cloudwatch:*")
        [finding] = found(pipeline(), "keys", role=arn)
        assert (finding.severity, finding.where) == ("may fail", "parameters.bucket")
        assert "may not kms:Decrypt, kms:GenerateDataKey with" in finding.what
        kms.disable_key(KeyId=key.rpartition("/")[2])
        [finding] = found(pipeline(), "keys")
        assert (finding.severity, finding.what) == ("fails", f"key {key} is Disabled")
    finally:
        s3.delete_bucket_encryption(Bucket="workspace")
