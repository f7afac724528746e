"""What the roles of jobs may do, against what the requests of their steps need."""

from __future__ import annotations

import json

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import TRAINING, Examine, pipeline, role, trust

ACCOUNT = "arn:aws:iam::123456789012:role/"


def test_a_role_that_may_do_everything_is_no_finding(found: Examine) -> None:
    assert found(pipeline(), "permissions") == []


def test_each_statement_that_a_role_lacks_is_a_finding(aws: EmbeddedAws, found: Examine) -> None:
    arn = role(aws, f"{ACCOUNT}reader", "s3:GetObject", "s3:ListBucket")
    by_action = {each.what.split()[4]: each for each in found(pipeline(), "permissions", role=arn)}
    written = by_action["s3:PutObject"]
    assert (written.severity, written.where) == ("fails", "parameters.role")
    assert "arn:aws:s3:::workspace/work/" in written.what
    assert written.when.startswith("train.job needs it")
    assert by_action["ecr:GetAuthorizationToken"].severity == "fails"


def test_a_missing_log_does_not_fail_a_run(aws: EmbeddedAws, found: Examine) -> None:
    arn = role(aws, f"{ACCOUNT}silent", "s3:*", "ecr:*")
    findings = found(pipeline(), "permissions", role=arn)
    assert findings
    assert {each.severity for each in findings} == {"may fail"}


def test_the_policy_of_a_bucket_may_allow_what_the_role_does_not(
    aws: EmbeddedAws, found: Examine
) -> None:
    arn = role(aws, f"{ACCOUNT}guest", "s3:PutObject", "ecr:*", "logs:*", "cloudwatch:*")
    s3 = aws.client("s3")
    assert {each.severity for each in found(pipeline(), "permissions", role=arn)} == {"fails"}
    allowed = {"Effect": "Allow", "Principal": {"AWS": arn}, "Action": "s3:*"}
    policy = {"Version": "2012-10-17", "Statement": [{**allowed, "Resource": "arn:aws:s3:::*"}]}
    s3.put_bucket_policy(Bucket="incoming", Policy=json.dumps(policy))
    findings = found(pipeline(), "permissions", role=arn)
    s3.delete_bucket_policy(Bucket="incoming")
    assert {each.severity for each in findings} == {"may fail"}


def test_a_denial_fails_whatever_else_is_allowed(aws: EmbeddedAws, found: Examine) -> None:
    iam = aws.client("iam")
    iam.create_role(RoleName="denied", AssumeRolePolicyDocument=trust("sagemaker.amazonaws.com"))
    statements = [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::workspace/*"},
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName="denied", PolicyName="own", PolicyDocument=document)
    [finding] = found(pipeline(), "permissions", role=f"{ACCOUNT}denied")
    assert (finding.severity, finding.why) == ("fails", "a policy of it denies that")


def test_a_role_of_ones_own_for_the_state_machine_is_looked_at_too(
    aws: EmbeddedAws, found: Examine
) -> None:
    arn = role(aws, f"{ACCOUNT}runner", "sagemaker:*", service="states.amazonaws.com")
    checked = pipeline(TRAINING, ("stages:", f'step_functions: {{role: "{arn}"}}\nstages:'))
    assert found(checked, "roles") == []
    findings = found(checked, "permissions")
    assert {(each.severity, each.where) for each in findings} == {("fails", "step_functions.role")}
    [passing] = [each for each in findings if "iam:PassRole" in each.what]
    assert passing.when.startswith("train.job needs it")
    missing = pipeline(TRAINING, ("stages:", f'step_functions: {{role: "{ACCOUNT}none"}}\nstages:'))
    [finding] = found(missing, "roles")
    assert (finding.where, finding.when) == ("step_functions.role", "an execution starts")
