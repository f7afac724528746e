"""Service Quotas: enough machines for every cluster, fallback and endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from orchestration.graph import stage_of
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding
from orchestration.preflight.machines import ASKING, Machines, machines
from orchestration.preflight.reader import Reader, looked
from orchestration.preflight.requests import known

_SOURCES: Final = (
    "https://docs.aws.amazon.com/general/latest/gr/sagemaker.html",
    "https://docs.aws.amazon.com/servicequotas/latest/userguide/request-quota-increase.html",
)
_INSTANCES: Final = "sagemaker:variant:DesiredInstanceCount"
_EXCEEDED: Final = "SageMaker refuses what exceeds a quota with ResourceLimitExceeded"


def quotas(examination: Examination) -> Iterator[Finding]:
    """Yield the machines for which the account's quotas are too small."""
    asked = [each for request in examination.of(*ASKING) for each in machines(request)]
    if asked:
        names = ", ".join(dict.fromkeys(each.quota for each in asked))
        yield from looked("quotas", "", names, _compared(examination, asked))


def values(reader: Reader) -> dict[str, int]:
    """Return SageMaker's quotas in the account by their names.

    The values of the account leave out those that nobody changed, which the defaults have.
    https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_ListServiceQuotas.html
    """
    found: dict[str, int] = {}
    for operation in ("ListAWSDefaultServiceQuotas", "ListServiceQuotas"):
        for quota in reader.every("service-quotas", operation, "Quotas", ServiceCode="sagemaker"):
            found[quota["QuotaName"]] = int(quota["Value"])
    return found


def _compared(examination: Examination, asked: list[Machines]) -> Iterator[Finding]:
    limits = values(examination.reader)
    scaled = _scaled(examination)
    for each in asked:
        most = max(each.most, scaled.get((stage_of(each.request.step), each.variant), 0))
        limit = limits.get(each.quota)
        if limit is None:
            yield _finding(examination, each, "not checked", "the account lists no such quota")
        elif limit < each.count:
            others = _alternatives(each, asked, limits)
            severity = "may fail" if others else "fails"
            yield _finding(examination, each, severity, f"the quota is {limit}", others)
        elif limit < each.count * each.at_once:
            what = f"up to {each.at_once} of these run at once, and the quota is {limit}"
            yield _finding(examination, each, "may fail", what)
        elif limit < most:
            what = f"scaling may make {most} of them, and the quota is {limit}"
            yield _finding(examination, replace(each, most=most), "may fail", what)


def _scaled(examination: Examination) -> dict[tuple[str, str], int]:
    """Return the most instances that scaling may make, by stage and variant of its endpoint."""
    found: dict[tuple[str, str], int] = {}
    for request in examination.of("RegisterScalableTarget"):
        most, resource = request.at("MaxCapacity"), request.values.get("ResourceId")
        if request.at("ScalableDimension") == _INSTANCES and isinstance(most, int):
            # A deployment keeps the name that the endpoint has, which only a run sees.
            variant = known(str(resource).rpartition("/")[2]) or ""
            found[stage_of(request.step), variant] = most
    return found


def _alternatives(each: Machines, asked: list[Machines], limits: Mapping[str, int]) -> list[str]:
    """Return the other clusters of the same step that the quotas allow."""
    own = each.request
    return [
        f"{other.count} x {other.type}"
        for other in asked
        if other.request.step == own.step
        and (other.request.turn != own.turn or (other.choice and other.path != each.path))
        and limits.get(other.quota, 0) >= other.count
    ]


def _finding(
    examination: Examination,
    each: Machines,
    severity: str,
    what: str,
    others: list[str] | None = None,
) -> Finding:
    number = f"quota {each.quota!r}"
    left = f"; {' and '.join(others)} would still be tried" if others else ""
    known = severity != "not checked"
    return Finding(
        check="quotas",
        severity="fails" if severity == "fails" else "may fail" if known else "not checked",
        where=examination.where(each.request, *each.path),
        what=f"{each.count} x {each.type} asked for, and {what} ({number}){left}",
        why=_EXCEEDED,
        when=each.request.calls,
        mend=f"request an increase of {number} in {examination.account.region} to at least "
        f"{max(each.count * each.at_once, each.most)}, or take another instance type",
        sources=_SOURCES,
    )
