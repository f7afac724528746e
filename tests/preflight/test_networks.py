"""Subnets, security groups and zones of a pipeline's jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import TRAINING, Examine, Stubbed, pipeline

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


def test_a_type_that_ec2_offers_nowhere_may_fail_the_run(
    aws: EmbeddedAws, found: Examine, vpc: Mapping[str, str]
) -> None:
    [subnet] = aws.client("ec2").describe_subnets(SubnetIds=[vpc["a"]])["Subnets"]
    session = Stubbed(aws, "ec2", *[
        ("describe_subnets", {"Subnets": [subnet]}),
        ("describe_instance_type_offerings", {"InstanceTypeOfferings": []}),
    ])  # fmt: skip
    [finding] = found(inside([vpc["a"]], [vpc["group"]]), "zones", session)
    assert finding.severity == "may fail"
    assert finding.what.endswith("(us-east-1a); nowhere in the region")


ALL = {"IpProtocol": "-1"}
LARGE = ("ml.c5.xlarge", "ml.p4d.24xlarge")


def test_fast_machines_need_groups_that_are_open_to_themselves(
    aws: EmbeddedAws, found: Examine, vpc: Mapping[str, str]
) -> None:
    ec2 = aws.client("ec2")
    made = ec2.create_security_group(GroupName="efa", Description="efa", VpcId=vpc["vpc"])
    group = made["GroupId"]
    checked = inside([vpc["a"]], [group], LARGE)
    first, second = found(checked, "efa")
    assert {first.severity, second.severity} == {"fails"}
    assert first.where == "stages.train.vpc.security_groups.0"
    assert f"no inbound rule of {group} allows all traffic from the group itself" in first.what
    # The rule to 0.0.0.0/0, which each new group has, is no way out for EFA.
    assert f"no outbound rule of {group} allows all traffic to the group itself" in second.what
    itself = [{**ALL, "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
    assert [each.what.split()[1] for each in found(checked, "efa")] == ["outbound"]
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
    assert found(checked, "efa") == []
    assert found(inside([vpc["a"]], [vpc["group"]]), "efa") == []


def test_a_private_subnet_needs_a_way_to_the_services(
    aws: EmbeddedAws, found: Examine, vpc: Mapping[str, str]
) -> None:
    ec2 = aws.client("ec2")
    made = ec2.create_subnet(VpcId=vpc["vpc"], CidrBlock="10.0.48.0/20")["Subnet"]["SubnetId"]
    table = ec2.create_route_table(VpcId=vpc["vpc"])["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=made)
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc["vpc"])
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    checked = inside([made], [vpc["group"]])

    def lacking() -> dict[str, str]:
        return {
            each.what.rpartition(" ")[2]: each.severity for each in found(checked, "vpc endpoints")
        }

    telling = dict.fromkeys(["ecr.api", "ecr.dkr", "logs"], "may fail")
    assert lacking() == {"s3": "fails", **telling}
    place = "com.amazonaws.us-east-1"
    ec2.create_vpc_endpoint(
        VpcId=vpc["vpc"],
        ServiceName=f"{place}.s3",
        VpcEndpointType="Gateway",
        RouteTableIds=[table],
    )
    ec2.create_vpc_endpoint(
        VpcId=vpc["vpc"], ServiceName=f"{place}.logs", VpcEndpointType="Interface"
    )
    assert lacking() == dict.fromkeys(["ecr.api", "ecr.dkr"], "may fail")
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=vpc["a"], AllocationId=address)["NatGateway"]
    ec2.delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")
    ec2.create_route(
        RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat["NatGatewayId"]
    )
    assert lacking() == {}


CHANNEL = '{training: "s3://incoming/set"}'


def mounting(system: str, subnets: list[str], groups: list[str], kind: str = "fsx_lustre") -> Any:
    channel = f"{{training: {{kind: {kind}, file_system_id: {system}, path: /fsx/set}}}}"
    return inside(subnets, groups, (CHANNEL, channel))


@pytest.mark.parametrize("kind", ["fsx_lustre", "efs"])
def test_a_missing_file_system_fails_the_run(
    found: Examine, vpc: Mapping[str, str], kind: str
) -> None:
    checked = mounting("fs-0123456789abcdef0", [vpc["a"]], [vpc["group"]], kind)
    [finding] = found(checked, "file systems")
    assert (finding.severity, finding.where) == (
        "fails",
        "stages.train.channels.training.file_system_id",
    )
    assert finding.what == "file system fs-0123456789abcdef0 does not exist in us-east-1"


def test_a_file_system_that_is_not_ready_or_elsewhere_fails_the_run(
    aws: EmbeddedAws, found: Examine, vpc: Mapping[str, str]
) -> None:
    name = "fs-0123456789abcdef0"
    system = {"FileSystemId": name, "Lifecycle": "MISCONFIGURED", "SubnetIds": [vpc["e"]]}
    session = Stubbed(aws, "fsx", ("describe_file_systems", {"FileSystems": [system]}))
    checked = mounting(name, [vpc["a"]], [vpc["group"]])
    first, second = found(checked, "file systems", session)
    assert {first.severity, second.severity} == {"fails"}
    assert first.what == f"file system {name} is MISCONFIGURED"
    assert second.what == (
        f"file system {name} is in zone us-east-1e, and the job's subnets are in us-east-1a"
    )


def test_the_mount_targets_of_an_elastic_file_system_are_in_the_zone(
    aws: EmbeddedAws, found: Examine, vpc: Mapping[str, str]
) -> None:
    name = aws.client("efs").create_file_system(CreationToken="own")["FileSystemId"]
    checked = mounting(name, [vpc["a"]], [vpc["group"]], "efs")
    [finding] = found(checked, "file systems")
    assert finding.what == f"file system {name} has no mount target"
    aws.client("efs").create_mount_target(FileSystemId=name, SubnetId=vpc["abroad"])
    [finding] = found(checked, "file systems")
    assert finding.what.startswith(f"file system {name} is in VPC vpc-")


STAGED = """\
name: NAME
parameters: {own: {}, job: {}, group: {}}
workspace: s3://workspace/work
stages:
  staging:
    kind: data_staging
    source: s3://incoming/set
    destination:
      kind: fsx_lustre
      subnet: {parameter: own}
      security_groups: [{parameter: group}]
  train:
    kind: training_job
    image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1
    entrypoint: [python3, train.py]
    channels: {training: {kind: fsx_lustre, file_system: {ref: staging.file_system}}}
    cluster: {instance_type: ml.c5.xlarge}
    vpc: {subnets: [{parameter: job}], security_groups: [{parameter: group}]}
"""


def test_a_file_system_of_the_run_is_in_the_zone_of_the_job_and_let_in(
    aws: EmbeddedAws, found: Examine, vpc: Mapping[str, str]
) -> None:
    ec2 = aws.client("ec2")
    made = ec2.create_security_group(GroupName="lustre", Description="own", VpcId=vpc["vpc"])
    group = made["GroupId"]
    values = {"own": vpc["e"], "job": vpc["a"], "group": group}
    first, second, third = found(pipeline(STAGED), "file systems", **values)
    assert [first.severity, second.severity, third.severity] == ["fails", "fails", "may fail"]
    whats = {each.what for each in (first, second, third)}
    assert whats == {
        "the file system is in zone us-east-1e, and the job's subnets are in us-east-1a",
        f"no inbound rule of {group} lets TCP 988 in from the group itself",
        f"no inbound rule of {group} lets TCP 1018-1023 in from the group itself",
    }
    for low, high in ((988, 988), (1018, 1023)):
        rule = {"IpProtocol": "tcp", "FromPort": low, "ToPort": high}
        ec2.authorize_security_group_ingress(
            GroupId=group, IpPermissions=[{**rule, "UserIdGroupPairs": [{"GroupId": group}]}]
        )
    assert found(pipeline(STAGED), "file systems", **{**values, "own": vpc["a"]}) == []
