"""The role of S3 Batch Operations: made where a stage names it, and no wider than the copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration import DataStaging, S3Destination, parameter
from orchestration.deploy import Change, Current, desired, difference
from orchestration.deploy.other_accounts import warnings
from orchestration.errors import DeployError
from tests.deploy.permissions.policy import Need, _allowed
from tests.deploy.pipelines import copying
from tests.deploy.test_transfers import ACCOUNT, PARAMETERS

OWN = "arn:aws:iam::123456789012:role/copying-us-east-1-batch"
REPORT = "arn:aws:s3:::workspace/copying/0123456789ab/staging.report/job-1/manifest.json"
SOURCE_KEY = "arn:aws:kms:us-east-1:123456789012:key/source"
TARGET_KEY = "arn:aws:kms:us-east-1:123456789012:key/target"
THROUGH_S3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}


def wanted(role: Any = OWN, /, **fields: Any) -> Any:
    given: dict[str, Any] = {"manifest": "s3://lists/digits.csv", "batch_role": role, **fields}
    destination = S3Destination(copy_by="batch", **given)
    staging = DataStaging(name="staging", source=parameter("data"), destination=destination)
    return desired(copying(stages=(staging,)), ACCOUNT, parameters=PARAMETERS)


@pytest.mark.parametrize(
    ("action", "resource", "expected"),
    [
        ("s3:GetObject", "arn:aws:s3:::incoming/set/one.csv", True),
        ("s3:GetObjectVersion", "arn:aws:s3:::incoming/set/one.csv", False),
        ("s3:GetObject", "arn:aws:s3:::incoming/settings/one.csv", False),
        ("s3:PutObject", "arn:aws:s3:::incoming/set/one.csv", False),
        ("s3:PutObject", "arn:aws:s3:::workspace/copying/0123456789ab/staging/set/one.csv", True),
        ("s3:PutObject", "arn:aws:s3:::workspace/another/one.csv", False),
        ("s3:DeleteObject", "arn:aws:s3:::workspace/copying/0123456789ab/staging/set/a", False),
        ("s3:GetObject", "arn:aws:s3:::lists/digits.csv", True),
        ("s3:GetObject", "arn:aws:s3:::lists/others.csv", False),
        ("s3:PutObject", REPORT, True),
        ("s3:GetObject", REPORT, False),
    ],
)
def test_the_role_reads_source_and_manifest_and_writes_copy_and_report(
    action: str, resource: str, expected: bool
) -> None:
    assert _allowed(wanted().batch_role.policy, Need(action, resource, {})) is expected


def test_versions_are_read_where_the_manifest_names_them() -> None:
    policy = wanted(manifest_versions=True).batch_role.policy
    resource = "arn:aws:s3:::incoming/set/one.csv"
    assert _allowed(policy, Need("s3:GetObjectVersion", resource, {}))


def test_the_service_alone_assumes_it_under_no_condition_that_it_may_not_meet() -> None:
    [statement] = wanted().batch_role.trust["Statement"]
    assert statement["Principal"] == {"Service": "batchoperations.s3.amazonaws.com"}
    assert "Condition" not in statement


def test_the_role_comes_before_the_machine_and_goes_with_the_copy() -> None:
    summaries = [change.summary for change in difference(wanted(), Current())]
    role, machine = "create role copying-us-east-1-batch", "create state machine copying"
    assert summaries.index(role) < summaries.index(machine)
    made = wanted().batch_role
    after = desired(copying(), ACCOUNT, parameters=PARAMETERS)
    assert Change(made, None) in difference(after, Current(batch_role=made))


@pytest.mark.parametrize("role", [None, "arn:aws:iam::123456789012:role/Mine"])
def test_somebodys_own_role_is_not_made(role: str | None) -> None:
    assert wanted(role).batch_role is None


def test_a_role_of_someone_else_is_not_taken_over() -> None:
    other = replace(wanted().batch_role, tags={})
    with pytest.raises(DeployError, match="role copying-us-east-1-batch exists and is not"):
        difference(wanted(), Current(batch_role=other))


def test_the_machine_creates_and_cancels_its_own_jobs_alone() -> None:
    policy = wanted().role.policy
    own, others = "copying", "another"
    job = "arn:aws:s3:us-east-1:123456789012:job/1"
    deletes = {
        "aws:RequestTag/orchestration:pipeline": own,
        "s3:RequestJobOperation": "S3DeleteObjectTagging",
    }
    assert not _allowed(policy, Need("s3:CreateJob", "*", deletes))
    for pipeline, expected in ((own, True), (others, False)):
        asked = {"aws:RequestTag/orchestration:pipeline": pipeline}
        there = {"aws:ResourceTag/orchestration:pipeline": pipeline}
        copying = {**asked, "s3:RequestJobOperation": "S3PutObjectCopy"}
        assert _allowed(policy, Need("s3:CreateJob", "*", copying)) is expected
        assert _allowed(policy, Need("s3:PutJobTagging", job, asked)) is expected
        assert _allowed(policy, Need("s3:UpdateJobStatus", job, there)) is expected
        assert _allowed(policy, Need("s3:DescribeJob", job, there)) is expected
    service = {"iam:PassedToService": "batchoperations.s3.amazonaws.com"}
    assert _allowed(policy, Need("iam:PassRole", OWN, service))
    assert not _allowed(policy, Need("iam:PassRole", OWN, {"iam:PassedToService": "ec2"}))


def test_the_keys_of_both_sides_are_the_roles_to_use() -> None:
    made = wanted(source_kms_key=SOURCE_KEY, kms_key=TARGET_KEY)
    policy = made.batch_role.policy
    assert _allowed(policy, Need("kms:Decrypt", SOURCE_KEY, THROUGH_S3))
    assert not _allowed(policy, Need("kms:GenerateDataKey", SOURCE_KEY, THROUGH_S3))
    assert _allowed(policy, Need("kms:GenerateDataKey", TARGET_KEY, THROUGH_S3))
    assert not _allowed(made.role.policy, Need("kms:Decrypt", TARGET_KEY, THROUGH_S3))


def test_the_companion_cancels_jobs_of_the_pipeline_alone() -> None:
    policy = wanted().companion.role.policy
    job = "arn:aws:s3:us-east-1:123456789012:job/1"
    for pipeline, expected in (("copying", True), ("another", False)):
        there = {"aws:ResourceTag/orchestration:pipeline": pipeline}
        assert _allowed(policy, Need("s3:UpdateJobStatus", job, there)) is expected
    assert _allowed(policy, Need("s3:ListJobs", "*", {}))


def test_the_owner_of_another_accounts_bucket_is_told_what_to_allow() -> None:
    [warning] = warnings(wanted(source_account="999988887777"))
    assert OWN in warning
    assert "arn:aws:s3:::incoming/set/*" in warning


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("copying/0123456789ab/staging.report/job-1/results/1.csv", True),
        ("copying/0123456789ab/staging/set/one.csv", False),
        ("another/one.csv", False),
    ],
)
def test_the_machine_reads_reports_of_jobs_alone(key: str, expected: bool) -> None:
    policy = wanted().role.policy
    need = Need("s3:GetObject", f"arn:aws:s3:::workspace/{key}", {})
    assert _allowed(policy, need) is expected
