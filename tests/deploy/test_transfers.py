"""The role of DataSync: made where a stage names it, and no wider than the copy."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import DataStaging, ExistingFileSystem, S3Destination, parameter
from orchestration.deploy import Account, Change, Current, desired, difference
from orchestration.errors import DeployError
from tests.deploy.permissions.policy import Need, _allowed
from tests.deploy.pipelines import copying

ACCOUNT = Account(id="123456789012", region="us-east-1")
OWN = "arn:aws:iam::123456789012:role/copying-us-east-1-datasync"
PARAMETERS = {
    "bucket": "workspace",
    "data": "s3://incoming/set",
    "role": "arn:aws:iam::123456789012:role/SageMaker",
}


def wanted(role: Any = OWN, /, **given: Any) -> Any:
    destination = S3Destination(copy_by="datasync", datasync_role=role)
    staging = DataStaging(name="staging", source=parameter("data"), destination=destination)
    return desired(copying(stages=(staging,)), ACCOUNT, parameters={**PARAMETERS, **given})


def allowed(action: str, resource: str) -> bool:
    policy = wanted().transfer_role.policy
    return _allowed(policy, Need(action, resource, {}))


@pytest.mark.parametrize(
    ("action", "resource", "expected"),
    [
        ("s3:ListBucket", "arn:aws:s3:::incoming", True),
        ("s3:GetObject", "arn:aws:s3:::incoming/set/one.csv", True),
        ("s3:GetObject", "arn:aws:s3:::incoming/other/one.csv", False),
        ("s3:PutObject", "arn:aws:s3:::incoming/set/one.csv", False),
        ("s3:DeleteObject", "arn:aws:s3:::incoming/set/one.csv", False),
        ("s3:PutObject", "arn:aws:s3:::workspace/copying/0123456789ab/staging/one.csv", True),
        ("s3:PutObject", "arn:aws:s3:::workspace/another/one.csv", False),
        ("s3:ListBucket", "arn:aws:s3:::another", False),
    ],
)
def test_the_role_reads_the_source_and_writes_the_copy(
    action: str, resource: str, expected: bool
) -> None:
    assert allowed(action, resource) is expected


def test_datasync_alone_assumes_it_for_transfers_of_this_account() -> None:
    [statement] = wanted().transfer_role.trust["Statement"]
    assert statement["Principal"] == {"Service": "datasync.amazonaws.com"}
    assert statement["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "123456789012"},
        "ArnLike": {"aws:SourceArn": "arn:aws:datasync:us-east-1:123456789012:*"},
    }


def test_the_role_comes_before_the_machine_and_goes_with_the_transfer() -> None:
    summaries = [change.summary for change in difference(wanted(), Current())]
    role, machine = "create role copying-us-east-1-datasync", "create state machine copying"
    assert summaries.index(role) < summaries.index(machine)
    made = wanted().transfer_role
    after = desired(copying(), ACCOUNT, parameters=PARAMETERS)
    assert Change(made, None) in difference(after, Current(transfer_role=made))


@pytest.mark.parametrize("role", [None, "arn:aws:iam::123456789012:role/Mine"])
def test_somebodys_own_role_is_not_made(role: str | None) -> None:
    assert wanted(role).transfer_role is None


def test_a_role_of_the_name_that_is_somebody_elses_is_refused() -> None:
    from dataclasses import replace

    other = replace(wanted().transfer_role, tags={})
    with pytest.raises(DeployError, match="role copying-us-east-1-datasync exists and is not"):
        difference(wanted(), Current(transfer_role=other))
    after = desired(copying(), ACCOUNT, parameters=PARAMETERS)
    assert Change(other, None) not in difference(after, Current(transfer_role=other))


def test_a_parameter_may_name_it() -> None:
    named = wanted(parameter("role"), role=OWN)
    assert named.transfer_role.arn == OWN


def test_onto_a_file_system_the_role_reads_and_its_caller_reaches_the_network() -> None:
    destination = ExistingFileSystem(
        file_system_id="fs-0123456789abcdef0", security_groups=("sg-1",), datasync_role=OWN
    )
    staging = DataStaging(name="staging", source=parameter("data"), destination=destination)
    pipeline = copying(stages=(staging,), region="us-east-1")
    made = desired(pipeline, ACCOUNT, parameters=PARAMETERS)
    assert made.transfer_role is not None
    reading = made.transfer_role.policy
    assert _allowed(reading, Need("s3:GetObject", "arn:aws:s3:::incoming/set/one.csv", {}))
    assert not _allowed(reading, Need("s3:PutObject", "arn:aws:s3:::incoming/set/one.csv", {}))
    ec2 = "arn:aws:ec2:us-east-1:123456789012"
    for resource in ("network-interface/eni-1", "security-group/sg-1", "subnet/subnet-1"):
        need = Need("ec2:CreateNetworkInterface", f"{ec2}:{resource}", {})
        assert _allowed(made.role.policy, need)
    elsewhere = Need("ec2:DeleteNetworkInterface", f"{ec2[:-1]}3:network-interface/eni-1", {})
    assert not _allowed(made.role.policy, elsewhere)
