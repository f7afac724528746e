"""The permissions by which a job reads, writes, pulls, decrypts and joins a network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.deploy.account import Account
from orchestration.deploy.identities.touched import Touched
from orchestration.deploy.permissions import Statement
from orchestration.deploy.permissions.operations import KEYS
from orchestration.deploy.permissions.patterns import ANY, Known, iam, pattern, s3
from orchestration.deploy.permissions.policies import for_key
from orchestration.expressions import Tree

_PULL: Final = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetDownloadUrlForLayer",
)
IMAGE: Final = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[\w-]+)\.[\w.]+/(?P<name>[^:@]+).*"
)
"""Images in ECR."""
_LOOKS: Final = ("DhcpOptions", "NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs")


class Unknown(Exception):
    """A need that only a run can tell; the text says which."""


def needs(touch: Touched, known: Known, account: Account) -> Iterator[Statement]:
    """Yield the statements of one use of one thing; raise :class:`Unknown` for what none allows."""
    text = "" if isinstance(touch.value, Mapping) else pattern(touch.value, known)
    match touch.use:
        case "read":
            yield from _read(text.strip('"'), account, whole=touch.whole)
        case "write":
            yield from _write(text, account)
        case "image":
            yield from _image(text, account)
        case "volume key":
            yield for_key(KEYS["sagemaker"], text, account.place)
        case "data key":
            yield for_key(KEYS["s3"], text, account.place)
        case "topic":
            yield _topic(text, account)
        case "files":
            yield _files(touch.value, known, account)
        case "network":
            yield from _network(touch.value, known, account)


def _read(uri: str, account: Account, *, whole: bool) -> Iterator[Statement]:
    place = _place(uri, "reads")
    if place is None:
        return
    bucket, key = place
    arn = f"arn:{account.partition}:s3:::{iam(bucket)}"
    keys = iam(key if whole else key + ANY)
    yield Statement("ReadObjects", frozenset(["s3:GetObject"]), frozenset([f"{arn}/{keys}"]))
    if not whole:
        condition = ("StringLike", "s3:prefix", frozenset([keys]))
        yield Statement("ListObjects", frozenset(["s3:ListBucket"]), frozenset([arn]), (condition,))


def _write(uri: str, account: Account) -> Iterator[Statement]:
    place = _place(uri, "writes")
    if place is None:
        return
    bucket, key = place
    inside = iam(key.removesuffix("/") + "/" + ANY) if key else "*"
    arn = f"arn:{account.partition}:s3:::{iam(bucket)}/{inside}"
    yield Statement("WriteObjects", frozenset(["s3:PutObject"]), frozenset([arn]))


def _place(uri: str, verb: str) -> tuple[str, str] | None:
    """Return the patterns of bucket and key; None for a place that is not in S3."""
    if not uri.startswith("s3://") and ANY not in uri:
        return None
    bucket, key = s3(uri)
    if ANY in bucket:
        raise Unknown(f"it {verb} a bucket that only a run knows; add s3 actions for it yourself")
    return bucket, key


def _image(image: str, account: Account) -> Iterator[Statement]:
    match = IMAGE.fullmatch(image)
    if match is None and ANY not in image:
        return  # From a registry outside AWS.
    if match is None:
        arn = account.arn("ecr", "repository/*")
    else:
        registry = f"arn:{account.partition}:ecr:{match['region']}:{match['account']}"
        arn = f"{registry}:repository/{iam(match['name'])}"
    yield Statement("PullImages", frozenset(_PULL), frozenset([arn]))
    yield _anywhere("EnterRegistry", "ecr:GetAuthorizationToken")


def _topic(topic: str, account: Account) -> Statement:
    arn = iam(topic) if topic.startswith("arn:") else account.arn("sns", "*")
    return Statement("TellTopics", frozenset(["sns:Publish"]), frozenset([arn]))


def _files(source: Tree, known: Known, account: Account) -> Statement:
    """Return how a job finds the file system of a channel.

    https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonSageMakerFullAccess.html
    """
    fields = source if isinstance(source, Mapping) else {}
    if fields.get("FileSystemType") != "EFS":
        return _anywhere("FindFileSystem", "fsx:DescribeFileSystems")
    name = iam(pattern(fields.get("FileSystemId"), known))
    actions = ("DescribeFileSystems", "DescribeMountTargets")
    return Statement(
        "FindFileSystem",
        frozenset(f"elasticfilesystem:{each}" for each in actions),
        frozenset([account.arn("elasticfilesystem", f"file-system/{name}")]),
    )


def _network(config: Tree, known: Known, account: Account) -> Iterator[Statement]:
    """Yield what the network interfaces of a job need.

    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html
    """
    fields = config if isinstance(config, Mapping) else {}
    joined = {
        account.arn("ec2", f"{kind}/{iam(name)}")
        for field, kind in (("Subnets", "subnet"), ("SecurityGroupIds", "security-group"))
        for name in _names(fields.get(field), known)
    }
    interfaces = account.arn("ec2", "network-interface/*")
    yield _anywhere("SeeNetwork", *(f"ec2:Describe{each}" for each in _LOOKS))
    actions = ("CreateNetworkInterfacePermission", "DeleteNetworkInterface")
    yield Statement(
        "JoinNetwork",
        frozenset(f"ec2:{each}" for each in (*actions, "DeleteNetworkInterfacePermission")),
        frozenset([interfaces]),
    )
    yield Statement(
        "CreateInterfaces",
        frozenset(["ec2:CreateNetworkInterface"]),
        frozenset([interfaces, *joined]),
    )


def _names(values: Tree, known: Known) -> list[str]:
    listed = values if isinstance(values, list | tuple) else [values]
    return [pattern(value, known) for value in listed]


def _anywhere(sid: str, *actions: str) -> Statement:
    """Return the statement of actions for which IAM knows no resource."""
    return Statement(sid, frozenset(actions), frozenset(["*"]))
