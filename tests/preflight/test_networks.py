"""Subnets, security groups and zones of a pipeline's jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import TRAINING, Examine, pipeline

GONE = "subnet-00000000000000000"


@pytest.fixture(scope="session")
def vpc(aws: EmbeddedAws) -> dict[str, str]:
    """A VPC with a subnet in two zones, a small one, and another VPC."""
    ec2 = aws.client("ec2")
    own = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    other = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]

    def subnet(vpc: str, cidr: str, zone: str) -> str:
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=f"us-east-1{zone}")
        return str(made["Subnet"]["SubnetId"])

    def group(vpc: str) -> str:
        made = ec2.create_security_group(GroupName="jobs", Description="jobs", VpcId=vpc)
        return str(made["GroupId"])

    return {
        "vpc": own,
        "a": subnet(own, "10.0.0.0/20", "a"),
        "e": subnet(own, "10.0.16.0/20", "e"),
        "small": subnet(own, "10.0.32.0/28", "a"),
        "abroad": subnet(other, "10.1.0.0/20", "a"),
        "group": group(own),
        "other group": group(other),
    }


def inside(subnets: list[str], groups: list[str], *changes: tuple[str, str]) -> Any:
    vpc = f"vpc: {json.dumps({'subnets': subnets, 'security_groups': groups})}"
    return pipeline(TRAINING, *changes, ("max_runtime_s: 3600", f"max_runtime_s: 3600\n    {vpc}"))


def test_a_network_that_fits_is_no_finding(found: Examine, vpc: Mapping[str, str]) -> None:
    checked = inside([vpc["a"]], [vpc["group"]])
    assert found(checked, "subnets") + found(checked, "zones") == []


def test_a_missing_subnet_and_a_missing_group_are_found_where_they_stand(
    found: Examine, vpc: Mapping[str, str]
) -> None:
    first, second = found(inside([vpc["a"], GONE], ["sg-00000000"]), "subnets")
    assert [first.where, second.where] == [
        "stages.train.vpc.security_groups.0",
        "stages.train.vpc.subnets.1",
    ]
    assert second.what == f"subnet {GONE} does not exist in us-east-1"
    assert {first.severity, second.severity} == {"fails"}


def test_subnets_of_several_vpcs_fail_the_run(found: Examine, vpc: Mapping[str, str]) -> None:
    [finding] = found(inside([vpc["a"], vpc["abroad"]], [vpc["group"]]), "subnets")
    assert finding.severity == "fails"
    assert finding.what.startswith("the subnets are in several VPCs: ")


def test_a_group_of_another_vpc_fails_the_run(found: Examine, vpc: Mapping[str, str]) -> None:
    [finding] = found(inside([vpc["a"]], [vpc["other group"]]), "subnets")
    assert finding.where == "stages.train.vpc.security_groups.0"
    assert finding.what.endswith(f"and the subnets are in {vpc['vpc']}")


def test_a_small_subnet_has_too_few_addresses(found: Examine, vpc: Mapping[str, str]) -> None:
    many = ("instance_count: 2", "instance_count: 8")
    [finding] = found(inside([vpc["small"]], [vpc["group"]], many), "subnets")
    assert finding.severity == "may fail"
    assert finding.what == f"8 x ml.c5.xlarge take 16 addresses, and there are 11 in {vpc['small']}"


def test_a_type_that_no_zone_of_the_subnets_offers_fails_the_run(
    aws: EmbeddedAws, found: Examine, vpc: Mapping[str, str]
) -> None:
    fast = ("ml.c5.xlarge", "ml.p4d.24xlarge")
    checked = inside([vpc["e"]], [vpc["group"]], fast)
    [finding] = found(checked, "zones")
    assert (finding.severity, finding.where) == ("fails", "stages.train.cluster.instance_type")
    assert f"not offered in the zone of {vpc['e']} (us-east-1e); only in us-east-1" in finding.what
