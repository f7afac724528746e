"""The account that a pipeline is deployed to, and errors of deployments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from orchestration.catalog.partitions import partition_of
from orchestration.errors import DeployError
from orchestration.execution.clients import mismatch

OWNER = "orchestration:pipeline"
"""The tag that marks a resource as deployed for a pipeline."""
_ROLE: Final = re.compile(r"arn:[\w-]+:iam::(\d{12}):role/.+")


class Clients(Protocol):
    """A factory of boto3 clients: a ``boto3.Session``, or the embedded AWS."""

    def client(self, service_name: str, /) -> Any:
        """Create a client for a service."""


class Regional(Protocol):
    """A pipeline, or what is known of one that is deployed."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def region(self) -> str | None:
        """Its region; ``None``: any, or unknown."""

    @property
    def role(self) -> object:
        """The role of its jobs: an ARN, or what a run gives; ``None``: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An AWS account in one region."""

    id: str
    region: str
    partition: str = "aws"

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource in this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.id}:{resource}"

    def role_arn(self, name: str) -> str:
        """Return the ARN of a role, which has no region."""
        return f"arn:{self.partition}:iam::{self.id}:role/{name}"

    @property
    def place(self) -> dict[str, str]:
        """The values for ``{partition}``, ``{region}`` and ``{account}`` in a permission."""
        return {"partition": self.partition, "region": self.region, "account": self.id}

    @classmethod
    def at(cls, id: str, region: str) -> Account:
        """Return the account in a region, whose name tells the partition; asks nobody."""
        return cls(id=id, region=region, partition=partition_of(region))

    @classmethod
    def of(cls, session: Clients) -> Account:
        """Look up the account of a session's credentials."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            region = session.client("stepfunctions").meta.region_name
            arn: str = session.client("sts").get_caller_identity()["Arn"]
        except (BotoCoreError, ClientError) as error:
            raise DeployError(
                f"AWS did not identify the account: {error}; choose a profile and a region "
                "(AWS_PROFILE, AWS_REGION), and sign in"
            ) from error
        parts = arn.split(":")
        return cls(id=parts[4], region=region, partition=parts[1])


def in_its_region(pipeline: Regional, region: str) -> None:
    """Raise a :class:`~orchestration.errors.DeployError` where the pipeline has another region."""
    wrong = mismatch(pipeline.name, pipeline.region, place="the session", other=region)
    if wrong is not None:
        raise DeployError(wrong)


def in_its_place(pipeline: Regional, account: Account) -> None:
    """Raise a :class:`~orchestration.errors.DeployError` for another region, or another account.

    A pipeline is of the account whose role it names: AWS passes no role to another one.
    """
    in_its_region(pipeline, account.region)
    owning(pipeline.name, [pipeline.role], account)


def passing_within(pipeline: str, policy: Mapping[str, Any], account: Account) -> None:
    """Raise :class:`DeployError` where a policy lets a role of another account be passed."""
    passed = [
        arn
        for statement in policy["Statement"]
        if "iam:PassRole" in statement["Action"]
        for arn in statement["Resource"]
    ]
    owning(pipeline, passed, account)


def owning(pipeline: str, roles: Iterable[object], account: Account) -> None:
    """Raise :class:`DeployError` where one of a pipeline's roles is of another account."""
    if not account.id.isdecimal():  # A placeholder of a template.
        return
    arns = (role for role in roles if isinstance(role, str))
    owners = {arn: match[1] for arn in arns if (match := _ROLE.fullmatch(arn))}
    foreign = {arn: owner for arn, owner in owners.items() if owner != account.id}
    if foreign:
        problems = (
            f"role {arn} is of account {owner}, and AWS passes no role to another account; use "
            f"credentials of account {owner}, or name a role of account {account.id}"
            for arn, owner in foreign.items()
        )
        raise refusal(f"pipeline {pipeline} can't use account {account.id}", problems)


def refusal(headline: str, problems: Iterable[str]) -> DeployError:
    """Create an error that reports all problems at once."""
    listed = list(problems)
    if len(listed) == 1:
        return DeployError(f"{headline}: {listed[0]}")
    return DeployError("\n".join([f"{headline}:", *(f"  - {problem}" for problem in listed)]))
