"""Checks of what a request names in the account: roles, images, networks, objects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from orchestration.local.account import roles, storage
from orchestration.local.account.account import Account
from orchestration.local.account.protocol import JsonObject, ServiceError
from orchestration.local.account.storage import Caller, Location
from orchestration.local.sagemaker.rules import refusal

_ECR = re.compile(r"\d{12}\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com")
_SERVICE = "sagemaker.amazonaws.com"
_MOST_TAGS = 50


def check_role(arn: str) -> None:
    """Refuse a role that does not exist or that SageMaker may not assume."""
    if not roles.trusts(arn, _SERVICE):
        raise refusal("role", role=arn)


def check_image(account: Account, image: str, rule: str) -> None:
    """Refuse an image of another region."""
    match = _ECR.match(image)
    if match and match["region"] != account.region:
        raise refusal(rule, image=image, other=match["region"], region=account.region)


def check_network(account: Account, request: JsonObject) -> None:
    """Refuse subnets and security groups that do not exist."""
    config = request.get("VpcConfig", request.get("NetworkConfig", {}).get("VpcConfig", {}))
    for subnet in config.get("Subnets", []):
        if account.networks.zone(subnet) is None:
            raise refusal("subnets exist", subnet=subnet)
    for group in config.get("SecurityGroupIds", []):
        if not account.networks.has_group(group):
            raise refusal("security groups exist", group=group)


def check_tags(tags: Sequence[JsonObject]) -> None:
    """Refuse tag keys that AWS reserves, and keys given twice."""
    keys = [tag["Key"] for tag in tags]
    if any(key.lower().startswith("aws:") for key in keys):
        raise refusal("tag keys of AWS")
    for key in repeated(keys):
        raise refusal("tag keys once", key=key)


def check_number_of_tags(arn: str, keys: Iterable[str]) -> None:
    """Refuse more tags than a resource may have."""
    count = len(set(keys))
    if count > _MOST_TAGS:
        raise refusal("tags at most", arn=arn, count=count)


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def caller(account: Account, role: str) -> Caller:
    """Return who SageMaker is for S3: the role that it was given, in the region of the account."""
    return Caller(role, account.region)


def check_objects(account: Account, uri: str, role: str) -> None:
    """Refuse S3 data that does not exist, is in another region, or may not be listed."""
    place = Location.parse(uri, caller(account, role))
    try:
        there = storage.has_objects(place)
    except ServiceError:
        there = False
    if not there:
        raise refusal(
            "objects in S3", uri=uri, region=account.region, role=role, bucket=place.bucket
        )


def not_simulated(what: Iterable[str]) -> None:
    """Refuse what the embedded AWS does not simulate, instead of leaving it out."""
    names = list(what)
    if names:
        raise ServiceError(
            "ValidationException", f"the embedded AWS does not simulate {', '.join(names)}"
        )
