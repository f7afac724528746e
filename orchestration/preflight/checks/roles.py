"""Roles: they exist, and the services that they are handed to may assume them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.deploy.own_role import admitted
from orchestration.deploy.permissions.patterns import ANY
from orchestration.deploy.permissions.requests import roles as in_request
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding
from orchestration.preflight.reader import looked
from orchestration.preflight.requests import Request

_SOURCES: Final = ("https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html",)
_SERVICES: Final = {
    "sagemaker": "sagemaker.amazonaws.com",
    "datasync": "datasync.amazonaws.com",
    "s3control": "batchoperations.s3.amazonaws.com",
}
"""The principals that services take roles as, by boto3's name of the service."""


def roles(examination: Examination) -> Iterator[Finding]:
    """Yield the roles that requests hand on and that their services can't assume."""
    seen: set[tuple[str, str]] = set()
    for request in examination.requests:
        service = _SERVICES.get(request.operation.service)
        for arn, tree in _handed(request):
            if service is None or (arn, service) in seen or ANY in arn:
                continue
            seen.add((arn, service))
            where = _where(examination, request, tree)
            look = _role(examination, arn, service, request, where)
            yield from looked("roles", where, f"role {arn}", look)


def _handed(request: Request) -> Iterator[tuple[str, object]]:
    written = in_request(request.operation.request)
    for value, tree in zip(in_request(request.values), written, strict=True):
        if isinstance(value, str):
            yield value, tree


def _where(examination: Examination, request: Request, tree: object) -> str:
    from orchestration.preflight.places import place

    return place(examination.pipeline, request.step, tree)  # type: ignore[arg-type]


def _role(
    examination: Examination, arn: str, service: str, request: Request, where: str
) -> Iterator[Finding]:
    name = arn.rpartition("/")[2]
    answer = examination.reader.ask("iam", "GetRole", absent=("NoSuchEntity",), RoleName=name)
    role = None if answer is None else answer["Role"]
    if role is None or role["Arn"] != arn:
        there = "" if role is None else f"; there is {role['Arn']}"
        yield _finding(
            where, request, f"role {arn} does not exist{there}", "create it, or name another"
        )
    elif service not in set(admitted(role["AssumeRolePolicyDocument"])):
        what = f"role {arn} does not trust {service}"
        yield _finding(
            where, request, what, f"let its trust policy allow sts:AssumeRole to {service}"
        )


def _finding(where: str, request: Request, what: str, mend: str) -> Finding:
    return Finding(
        check="roles",
        severity="fails",
        where=where,
        what=what,
        why="a service runs a job only under a role that it can assume",
        when=request.calls,
        mend=mend,
        sources=_SOURCES,
    )
