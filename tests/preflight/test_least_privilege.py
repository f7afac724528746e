"""The identity of the doctor: enough for every check, and each statement of it needed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from orchestration import Pipeline
from orchestration.deploy import Account
from orchestration.deploy.identities import Identity, identities
from orchestration.local import EmbeddedAws
from orchestration.preflight import Finding, examine
from tests.preflight.conftest import ROLE, TRAINING, pipeline, push, role, trust

DEPLOYED = """\
schedule: {cron: "0 6 * * *", timezone: UTC}
trigger: {event: {source: [shop]}}
step_functions:
  logging: {}
  alarms: {sns_topic: "arn:aws:sns:us-east-1:123456789012:alarms"}
"""
DOCTOR = "arn:aws:iam::123456789012:role/doctor"


@pytest.fixture(scope="module")
def enforcing() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(enforce_iam=True) as embedded:
        for bucket in ("workspace", "incoming"):
            embedded.client("s3").create_bucket(Bucket=bucket)
        embedded.client("ecr").create_repository(repositoryName="train")
        push(embedded, "1")
        # Whether it fits is asked of EC2.
        push(embedded, "both", "amd64", "arm64")
        own = embedded.client("kms").create_key()["KeyMetadata"]["Arn"]
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": own}
        rules = [{"ApplyServerSideEncryptionByDefault": default}]
        embedded.client("s3").put_bucket_encryption(
            Bucket="workspace", ServerSideEncryptionConfiguration={"Rules": rules}
        )
        # Whose it is is asked of what is there.
        embedded.client("logs").create_log_group(logGroupName="/aws/vendedlogs/states/healthy")
        # Not s3:GetObject, so that the policies of buckets are asked for.
        role(embedded, ROLE, "s3:PutObject", "ecr:*", "logs:*", "cloudwatch:*", "kms:*")
        iam = embedded.client("iam")
        iam.create_role(RoleName="doctor", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
        yield embedded


def checked(aws: EmbeddedAws) -> Pipeline:
    """A pipeline whose requests name a network, a key and an image."""
    ec2 = aws.client("ec2")
    [vpc] = [each for each in ec2.describe_vpcs()["Vpcs"] if each["IsDefault"]]
    inside = [{"Name": "vpc-id", "Values": [vpc["VpcId"]]}]
    subnet = ec2.describe_subnets(Filters=inside)["Subnets"][0]["SubnetId"]
    group = ec2.describe_security_groups(Filters=inside)["SecurityGroups"][0]["GroupId"]
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    return pipeline(
        TRAINING,
        (
            "max_runtime_s: 3600",
            f"max_runtime_s: 3600\n    vpc: {{subnets: [{subnet}], security_groups: [{group}]}}",
        ),
        ("/train:1", "/train:both"),
        ("instance_count: 2", f'instance_count: 2, volume_kms_key: "{key}"'),
        ("stages:", f"{DEPLOYED}stages:"),
    )


def unread(aws: EmbeddedAws, examined: Pipeline, statements: list[object]) -> list[Finding]:
    """What the doctor can't look at with these statements."""
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    aws.client("iam").put_role_policy(RoleName="doctor", PolicyName="own", PolicyDocument=document)
    _, findings = examine(examined, aws.acting_as(DOCTOR), {})
    return [each for each in findings if each.severity == "not checked"]


def own_identity(examined: Pipeline) -> Identity:
    account = Account.at("123456789012", "us-east-1")
    [own] = [each for each in identities(examined, account) if each.who == "doctor"]
    return own


def test_its_policy_is_enough_and_no_statement_too_many(enforcing: EmbeddedAws) -> None:
    examined = checked(enforcing)
    statements = own_identity(examined).policy["Statement"]
    assert unread(enforcing, examined, statements) == []
    for number, without in enumerate(statements):
        left = [*statements[:number], *statements[number + 1 :]]
        findings = unread(enforcing, examined, left)
        assert findings, without["Sid"]


def test_what_is_denied_is_told_with_the_permission_that_it_needs(
    enforcing: EmbeddedAws,
) -> None:
    findings = unread(enforcing, checked(enforcing), [
        {"Effect": "Allow", "Action": "iam:GetRole", "Resource": "*"}
    ])  # fmt: skip
    [quotas] = [each for each in findings if each.check == "quotas"]
    needed = "it needs permission servicequotas:ListAWSDefaultServiceQuotas"
    assert quotas.what.endswith(needed)
    assert "`orchestrate iam --for doctor` prints all that it needs" in quotas.mend
    assert {"buckets", "images", "keys", "permissions", "subnets", "vpc endpoints"} <= {
        each.check for each in findings
    }
