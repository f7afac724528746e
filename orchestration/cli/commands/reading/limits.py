"""``orchestrate plan --account``: quotas and offerings of an account, which are only read."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    from orchestration.preflight.checks.quotas import values
    from orchestration.preflight.reader import Reader, Unread

    region = str(session.region_name)
    try:
        quotas = values(Reader(session))
        zones = _zones(session.client("ec2"))
    except (BotoCoreError, ClientError, Unread) as error:
        raise DeployError(f"the quotas of {region} can't be read: {error}") from error
    return AccountLimits(
        region=region,
        training=_quotas(quotas, spot=False),
        spot=_quotas(quotas, spot=True),
        zones=zones,
    )


def _quotas(values: Mapping[str, int], *, spot: bool) -> dict[str, int]:
    """Return the quotas of training jobs by instance type."""
    found = ((_QUOTA.fullmatch(name), value) for name, value in values.items())
    return {match[1]: value for match, value in found if match and bool(match[2]) is spot}


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
