"""The role of DataSync: made where a stage names it, and no wider than the copy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration import DataStaging, ExistingFileSystem, S3Destination, parameter
from orchestration.deploy import Account, Change, Current, desired, difference
from orchestration.deploy.other_accounts import warnings
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


SOURCE_KEY = "arn:aws:kms:us-east-1:999988887777:key/4e5f6a7b"
COPY_KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d"


def staged(**destination: Any) -> Any:
    """What a deployment wants for a copy from another account."""
    fields = {"source_account": "999988887777", **destination}
    staging = DataStaging(
        name="staging", source=parameter("data"), destination=S3Destination(**fields)
    )
    return desired(copying(stages=(staging,)), ACCOUNT, parameters=PARAMETERS)


BY_DATASYNC = {"copy_by": "datasync", "datasync_role": OWN}


def test_datasync_may_use_the_keys_of_both_sides_through_s3_alone() -> None:
    made = staged(**BY_DATASYNC, source_kms_key=SOURCE_KEY, bucket_kms_key=COPY_KEY)
    policy, through = made.transfer_role.policy, {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
    for action, key, condition, expected in (
        ("kms:Decrypt", SOURCE_KEY, through, True),
        ("kms:GenerateDataKey", SOURCE_KEY, through, False),
        ("kms:GenerateDataKey", COPY_KEY, through, True),
        ("kms:Decrypt", COPY_KEY, through, True),
        ("kms:Decrypt", SOURCE_KEY, {}, False),
    ):
        assert _allowed(policy, Need(action, key, condition)) is expected
    # Whoever makes the locations reads nothing.
    assert "kms:" not in str(made.role.policy)


@pytest.mark.parametrize(
    ("fields", "reading"),
    [
        ({"copy_by": "objects"}, ["copying-us-east-1-states"]),
        (BY_DATASYNC, [OWN.rpartition("/")[2], "copying-us-east-1-states"]),
    ],
)
def test_a_deployment_says_what_a_bucket_of_another_account_has_to_allow(
    fields: dict[str, Any], reading: list[str]
) -> None:
    (said,) = warnings(staged(**fields))
    assert said.startswith("bucket incoming belongs to account 999988887777")
    statements = json.loads(said.partition("statements: ")[2])
    assert [s["Principal"]["AWS"].rpartition("/")[2] for s in statements[::2]] == reading
    lists, reads = statements[:2]
    assert "s3:ListBucket" in lists["Action"]
    assert lists["Resource"] == "arn:aws:s3:::incoming"
    assert {"s3:GetObject", "s3:GetObjectTagging"} <= set(reads["Action"])
    assert reads["Resource"] == "arn:aws:s3:::incoming/set/*"
    assert {s["Effect"] for s in statements} == {"Allow"}


def test_a_bucket_of_this_account_needs_no_policy() -> None:
    assert list(warnings(staged(source_account=ACCOUNT.id))) == []
    assert list(warnings(wanted())) == []
