"""Needs of the roles that jobs and models run under, as SageMaker asks for them where they start.

https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, written down apart from what
derives policies: each is a check of the other. What is in S3 is decided where it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.local.account.protocol import ACCOUNT_ID, ServiceError
from orchestration.local.policies.deciding import permits
from orchestration.local.policies.evaluation import Need

_IMAGE: Final = re.compile(
    r"(?P<owner>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/"
    r"(?P<name>[^:@]+)"
)
_IMAGES: Final = ("Image", "ImageUri", "TrainingImage")
_PULL: Final = ("BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer")
_LOOKS: Final = ("DhcpOptions", "NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs")
_MOUNTS: Final = ("DescribeFileSystems", "DescribeMountTargets")
_OUTPUTS: Final = ("DataCaptureConfig", "OutputConfig", "OutputDataConfig", "TransformOutput")


def require(role: str, request: Mapping[str, Any], region: str) -> None:
    """Refuse a job or a model whose role lacks what its request needs outside S3."""
    if not role.startswith("arn:"):
        return
    refused = [need for need in dict.fromkeys(_needs(request, region)) if not _has(role, need)]
    if refused:
        name, need = role.rpartition("/")[2], refused[0]
        raise ServiceError(
            "AccessDeniedException",
            f"User: arn:aws:sts::{role.split(':')[4]}:assumed-role/{name}/SageMaker is not "
            f"authorized to perform: {need[0]} on resource: {need[1]} because no identity-based "
            f"policy allows the {need[0]} action",
        )


def lets_log(role: str, region: str, group: str, stream: str) -> bool:
    """Return whether a role may write a log; its metrics are sent with it, where it may do that."""
    if not role.startswith("arn:"):
        return True
    arn = f"arn:aws:logs:{region}:{ACCOUNT_ID}:log-group:{group}:log-stream:"
    namespace = re.sub(r"(/aws/sagemaker/[^/]+)/.*", r"\1", group)
    permits(role, Need("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": namespace}))
    found = [
        permits(role, Need(f"logs:{name}", arn))
        for name in ("CreateLogGroup", "DescribeLogStreams")
    ]
    written = [
        permits(role, Need(f"logs:{name}", f"{arn}{stream}"))
        for name in ("CreateLogStream", "PutLogEvents")
    ]
    return all([*found, *written])


_Plain = tuple[str, str, tuple[tuple[str, str], ...]]
"""A need that can be a key: action, resource, and condition keys with their values."""


def _has(role: str, need: _Plain) -> bool:
    action, resource, context = need
    return permits(role, Need(action, resource, dict(context)))


def _needs(tree: Any, region: str, inside: str = "") -> Iterator[_Plain]:
    if isinstance(tree, list):
        for each in tree:
            yield from _needs(each, region, inside)
    if not isinstance(tree, Mapping):
        return
    for name, value in tree.items():
        if name in _IMAGES and isinstance(value, str):
            yield from _pulled(value)
        elif name == "VpcConfig":
            yield from _joined(value, f"arn:aws:ec2:{region}:{ACCOUNT_ID}")
        elif name == "FileSystemDataSource":
            yield from _mounted(value, region)
        elif name.endswith("KmsKeyId") and value:
            yield from _encrypted(str(value), region, is_data=inside in _OUTPUTS)
        else:
            yield from _needs(value, region, inside if name == "S3Output" else name)


def _pulled(image: str) -> Iterator[_Plain]:
    match = _IMAGE.match(image)
    if match is not None:
        yield "ecr:GetAuthorizationToken", "*", ()
        arn = f"arn:aws:ecr:{match['region']}:{match['owner']}:repository/{match['name']}"
        for each in _PULL:
            yield f"ecr:{each}", arn, ()


def _joined(network: Mapping[str, Any], place: str) -> Iterator[_Plain]:
    interface = f"{place}:network-interface/eni-0123456789abcdef0"
    for each in _LOOKS:
        yield f"ec2:Describe{each}", "*", ()
    yield "ec2:CreateNetworkInterface", interface, ()
    for kind, field in (("subnet", "Subnets"), ("security-group", "SecurityGroupIds")):
        for name in network.get(field, ()):
            yield "ec2:CreateNetworkInterface", f"{place}:{kind}/{name}", ()
    for each in ("CreateNetworkInterfacePermission", "DeleteNetworkInterface"):
        yield f"ec2:{each}", interface, ()
    yield "ec2:DeleteNetworkInterfacePermission", interface, ()


def _mounted(source: Mapping[str, Any], region: str) -> Iterator[_Plain]:
    if source.get("FileSystemType") != "EFS":
        yield "fsx:DescribeFileSystems", "*", ()
        return
    arn = f"arn:aws:elasticfilesystem:{region}:{ACCOUNT_ID}:file-system/{source['FileSystemId']}"
    for each in _MOUNTS:
        yield f"elasticfilesystem:{each}", arn, ()


def _encrypted(key: str, region: str, *, is_data: bool) -> Iterator[_Plain]:
    arn = key if key.startswith("arn:") else f"arn:aws:kms:{region}:{ACCOUNT_ID}:key/{key}"
    if ":alias/" in arn or key.startswith("alias/"):
        return  # The key behind it is not known here.
    through = (("kms:ViaService", f"s3.{region}.amazonaws.com"),) if is_data else ()
    uses = ("GenerateDataKey", "Decrypt") if is_data else ("CreateGrant", "DescribeKey")
    for each in uses:
        yield f"kms:{each}", arn, through
