"""Private subnets: a way to S3, to ECR and to CloudWatch Logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding
from orchestration.preflight.networks import Network, networks, subnets
from orchestration.preflight.reader import Reader, looked

_SOURCES: Final = (
    "https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html",
    "https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-endpoints-s3.html",
)
_ANYWHERE: Final = ("0.0.0.0/0", "::/0")
_WAYS_OUT: Final = (
    "CarrierGatewayId",
    "CoreNetworkArn",
    "EgressOnlyInternetGatewayId",
    "InstanceId",
    "LocalGatewayId",
    "NatGatewayId",
    "NetworkInterfaceId",
    "TransitGatewayId",
    "VpcPeeringConnectionId",
)
"""Targets of routes by which an interface without a public address reaches the internet."""
_NEEDED: Final = {
    "s3": "data, checkpoints and models",
    "ecr.api": "what asks for images in the container's network",
    "ecr.dkr": "what pulls images in the container's network",
    "logs": "what writes to CloudWatch Logs in the container's network",
}
"""Services by the end of their endpoints' names, and what goes there. SageMaker itself pulls the
image and ships the log of a job outside of the VPC."""


def vpc_endpoints(examination: Examination) -> Iterator[Finding]:
    """Yield the services that jobs can't reach from their subnets."""
    for request in examination.requests:
        if request.operation.service != "sagemaker":
            continue
        for network in networks(request):
            where = examination.where(request, *next(iter(network.subnets.values())))
            what = f"the routes of {', '.join(network.subnets)}"
            yield from looked("vpc endpoints", where, what, _cut_off(examination, network))


def _cut_off(examination: Examination, network: Network) -> Iterator[Finding]:
    reader = examination.reader
    lacking: dict[str, list[str]] = {}
    for name, subnet in subnets(reader, network.subnets).items():
        table = _table(reader, name, str(subnet["VpcId"]))
        if table is None or any(map(_leads_out, table.get("Routes", ()))):
            continue
        reached = _reached(reader, str(subnet["VpcId"]), str(table["RouteTableId"]))
        for service in _NEEDED:
            ending = f".{examination.account.region}.{service}"
            if not any(each.endswith(ending) for each in reached):
                lacking.setdefault(service, []).append(name)
    for service, names in lacking.items():
        yield _finding(examination, network, service, names)


def _table(reader: Reader, subnet: str, vpc: str) -> Mapping[str, Any] | None:
    """Return the route table of a subnet: its own, or the main one of its VPC."""
    own = [{"Name": "association.subnet-id", "Values": [subnet]}]
    main = [
        {"Name": "vpc-id", "Values": [vpc]},
        {"Name": "association.main", "Values": ["true"]},
    ]
    for filters in (own, main):
        for table in reader.every("ec2", "DescribeRouteTables", "RouteTables", Filters=filters):
            return table
    return None


def _leads_out(route: Mapping[str, Any]) -> bool:
    target = route.get("DestinationCidrBlock") or route.get("DestinationIpv6CidrBlock")
    balancer = str(route.get("GatewayId", "")).startswith(("vgw-", "vpce-"))
    working = route.get("State", "active") == "active"
    return target in _ANYWHERE and working and (balancer or any(map(route.get, _WAYS_OUT)))


def _reached(reader: Reader, vpc: str, table: str) -> set[str]:
    """Return the names of the services that a VPC has endpoints for, as its route table has it."""
    filters = [{"Name": "vpc-id", "Values": [vpc]}]
    every = reader.every("ec2", "DescribeVpcEndpoints", "VpcEndpoints", Filters=filters)
    return {
        str(each["ServiceName"])
        for each in every
        if str(each.get("State", "available")).lower() == "available"
        and (each.get("VpcEndpointType") != "Gateway" or table in each.get("RouteTableIds", ()))
    }


def _finding(examination: Examination, network: Network, service: str, names: list[str]) -> Finding:
    return Finding(
        check="vpc endpoints",
        severity="fails" if service == "s3" else "may fail",
        where=examination.where(network.request, *network.subnets[names[0]]),
        what=f"{', '.join(names)} has neither a NAT route nor a VPC endpoint for {service}",
        why=f"{_NEEDED[service]} can't be reached; an internet gateway is no way out for "
        "interfaces without public addresses",
        when=network.request.calls,
        mend=f"add {'a gateway' if service == 's3' else 'an interface'} endpoint for "
        f"com.amazonaws.{examination.account.region}.{service} to the VPC"
        + (" and its route table" if service == "s3" else "")
        + ", or a route to a NAT gateway",
        sources=_SOURCES,
    )
