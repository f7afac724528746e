"""The roles that services run under: those that requests hand on, and one of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from orchestration.deploy import own_role
from orchestration.deploy.permissions.patterns import ANY
from orchestration.deploy.permissions.requests import roles
from orchestration.preflight.examination import Examination
from orchestration.preflight.places import beside, place

_SERVICES: Final = {
    "sagemaker": "sagemaker.amazonaws.com",
    "datasync": "datasync.amazonaws.com",
    "s3control": "batchoperations.s3.amazonaws.com",
}
"""The principals that services take roles as, by boto3's name of the service."""
_STATES: Final = "states.amazonaws.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """A role that a service runs something under."""

    arn: str
    service: str
    """The service's principal: ``sagemaker.amazonaws.com``."""
    where: str
    when: str
    """The moment at which the service needs it."""


def handed(examination: Examination) -> Iterator[Handed]:
    """Yield each role with each service that gets it, as far as roles are known before a run."""
    own = own_role.named(examination.pipeline, examination.role)
    if own is not None:
        where = "step_functions.role" if examination.role is None else "--role"
        yield Handed(arn=own, service=_STATES, where=where, when="an execution starts")
    seen: set[tuple[str, str]] = set()
    for request in examination.requests:
        service = _SERVICES.get(request.operation.service)
        written = roles(request.operation.request)
        for arn, tree in beside(roles(request.values), written):
            known = isinstance(arn, str) and bool(arn) and ANY not in arn
            if service is None or not known or (str(arn), service) in seen:
                continue
            seen.add((str(arn), service))
            where = place(examination.pipeline, request.step, tree)
            yield Handed(arn=str(arn), service=service, where=where, when=request.calls)
