"""Where a pipeline is deployed to, and what comes of a deployment that can't go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from orchestration.errors import DeployError

OWNER = "orchestration:pipeline"
"""The tag by which what was deployed is known to be a pipeline's own."""


class Clients(Protocol):
    """Whatever makes boto3 clients: a ``boto3.Session``, or the embedded AWS."""

    def client(self, service_name: str, /) -> Any:
        """A client for a service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An AWS account in one region."""

    id: str
    region: str
    partition: str = "aws"

    def arn(self, service: str, resource: str) -> str:
        """The ARN of a resource in this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.id}:{resource}"

    def role_arn(self, name: str) -> str:
        """The ARN of a role, which belongs to no region."""
        return f"arn:{self.partition}:iam::{self.id}:role/{name}"

    @classmethod
    def of(cls, session: Clients) -> Account:
        """The account that a session's credentials are for."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            region = session.client("stepfunctions").meta.region_name
            arn: str = session.client("sts").get_caller_identity()["Arn"]
        except (BotoCoreError, ClientError) as error:
            raise DeployError(
                f"AWS does not say whose account this is: {error}; choose a profile and a region "
                "(AWS_PROFILE, AWS_REGION), and sign in"
            ) from error
        parts = arn.split(":")
        return cls(id=parts[4], region=region, partition=parts[1])


def refusal(headline: str, problems: Iterable[str]) -> DeployError:
    """An error that reports all problems at once."""
    found = list(problems)
    if len(found) == 1:
        return DeployError(f"{headline}: {found[0]}")
    return DeployError("\n".join([f"{headline}:", *(f"  - {problem}" for problem in found)]))
