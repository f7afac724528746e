"""The roles that requests hand on to services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from orchestration.deploy.permissions.patterns import ANY
from orchestration.deploy.permissions.requests import roles
from orchestration.preflight.examination import Examination
from orchestration.preflight.places import place
from orchestration.preflight.requests import Request

_SERVICES: Final = {
    "sagemaker": "sagemaker.amazonaws.com",
    "datasync": "datasync.amazonaws.com",
    "s3control": "batchoperations.s3.amazonaws.com",
}
"""The principals that services take roles as, by boto3's name of the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A role that a request hands to a service."""

    arn: str
    service: str
    """The service's principal: ``sagemaker.amazonaws.com``."""
    request: Request
    where: str


def handed(examination: Examination) -> Iterator[Handed]:
    """Yield each role with each service that gets it, as far as roles are known before a run."""
    seen: set[tuple[str, str]] = set()
    for request in examination.requests:
        service = _SERVICES.get(request.operation.service)
        written = roles(request.operation.request)
        for arn, tree in zip(roles(request.values), written, strict=True):
            known = isinstance(arn, str) and bool(arn) and ANY not in arn
            if service is None or not known or (str(arn), service) in seen:
                continue
            seen.add((str(arn), service))
            where = place(examination.pipeline, request.step, tree)
            yield Handed(arn=str(arn), service=service, request=request, where=where)
