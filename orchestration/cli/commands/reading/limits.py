"""``orchestrate plan --account``: quotas, offerings and past spot jobs, which are only read."""

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
    """Read the limits of a session's account and region, and what its spot jobs saved.

    Raises:
        DeployError: the account does not let the limits be read. Jobs are not needed.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from orchestration.catalog.spot import histories
    from orchestration.cli.commands.reading.spot_jobs import spot_jobs
    from orchestration.planning.search.asked.account import AccountLimits
    from orchestration.preflight.checks.quotas import values
    from orchestration.preflight.reader import Reader, Unread

    region = str(session.region_name)
    reader = Reader(session)
    try:
        quotas = values(reader)
        zones = _zones(session.client("ec2"))
    except (BotoCoreError, ClientError, Unread) as error:
        raise DeployError(f"the quotas of {region} can't be read: {error}") from error
    jobs, unread = [], ""
    try:
        jobs = list(spot_jobs(reader))
    except Unread as error:
        unread = f"{error.action}: {error}"
    return AccountLimits(
        region=region,
        training=_quotas(quotas, spot=False),
        spot=_quotas(quotas, spot=True),
        zones=zones,
        spot_history=histories(jobs),
        unread=unread,
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
