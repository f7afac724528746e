"""``orchestrate plan --account``: quotas and offerings of an account, which are only read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from orchestration.errors import DeployError

if TYPE_CHECKING:
    from orchestration.planning.search.asked.account import AccountLimits

_QUOTA: Final = re.compile(r"(ml\.\S+) for (spot )?training job usage")
"""Names of SageMaker's quotas of training jobs.

https://docs.aws.amazon.com/general/latest/gr/sagemaker.html
"""


def limits(session: Any) -> AccountLimits:
    """Read the limits of a session's account and region.

    Raises:
        DeployError: the account does not let them be read.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from orchestration.planning.search.asked.account import AccountLimits

    region = str(session.region_name)
    try:
        quotas = _quotas(session.client("service-quotas"))
        zones = _zones(session.client("ec2"))
    except (BotoCoreError, ClientError) as error:
        raise DeployError(f"the quotas of {region} can't be read: {error}") from error
    return AccountLimits(
        region=region,
        training={name: most for (name, spot), most in quotas.items() if not spot},
        spot={name: most for (name, spot), most in quotas.items() if spot},
        zones=zones,
    )


def _quotas(client: Any) -> Mapping[tuple[str, bool], int]:
    """Return the quotas of training jobs by instance type, and whether they are of spot.

    The values of the account leave out those that nobody changed, which the defaults have.
    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_ListServiceQuotas.html
    """
    found: dict[tuple[str, bool], int] = {}
    for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
        for page in client.get_paginator(operation).paginate(ServiceCode="sagemaker"):
            found.update(_named(page["Quotas"]))
    return found


def _named(quotas: list[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, bool], int]]:
    for quota in quotas:
        if match := _QUOTA.fullmatch(quota["QuotaName"]):
            yield (match[1], match[2] is not None), int(quota["Value"])


def _zones(client: Any) -> dict[str, tuple[str, ...]]:
    """Return the zones in which EC2 offers the instances of SageMaker's types."""
    pages = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone"
    )
    found: dict[str, set[str]] = {}
    for page in pages:
        for offering in page["InstanceTypeOfferings"]:
            found.setdefault(f"ml.{offering['InstanceType']}", set()).add(offering["Location"])
    return {name: tuple(sorted(zones)) for name, zones in found.items()}
