"""Names: free for what a deployment makes, and endpoints that a run may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.deploy.account import OWNER
from orchestration.deploy.aliases.model import starts
from orchestration.deploy.composing import names_of
from orchestration.deploy.resources import GROUP
from orchestration.preflight.examination import Examination
from orchestration.preflight.findings import Finding, Severity
from orchestration.preflight.reader import looked
from orchestration.preflight.requests import Request, known

_DEPLOYING: Final = "orchestrate deploy step-functions is run"
_BUSY: Final = frozenset({"Creating", "RollingBack", "SystemUpdating", "Updating"})
_SOURCES: Final = (
    "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeEndpoint.html",
)


def names(examination: Examination) -> Iterator[Finding]:
    """Yield the names of a deployment that something else has."""
    named = names_of(examination.pipeline.name, examination.account)
    for machine in (named.machine_arn, named.companion.machine_arn):
        what = f"the name of state machine {machine.rpartition(':')[2]}"
        yield from looked("names", "name", what, _machine(examination, machine))
    for role in (named.role, named.companion.role):
        yield from looked("names", "name", f"the name of role {role}", _role(examination, role))
    if examination.workflow.schedule is not None:
        look = _schedule(examination, named.schedule, named.machine_arn)
        yield from looked("names", "schedule", f"the name of schedule {named.schedule}", look)


def endpoints(examination: Examination) -> Iterator[Finding]:
    """Yield the endpoints that a run can't change as they are now."""
    seen: set[str] = set()
    for request in examination.of("CreateEndpoint", "UpdateEndpoint"):
        name = request.at("EndpointName")
        if isinstance(name, str) and name not in seen:
            seen.add(name)
            where = examination.where(request, "EndpointName")
            look = _endpoint(examination, name, request, where)
            yield from looked("endpoints", where, f"endpoint {name}", look)


def _machine(examination: Examination, arn: str) -> Iterator[Finding]:
    reader = examination.reader
    absent = ("StateMachineDoesNotExist",)
    there = reader.ask("stepfunctions", "DescribeStateMachine", absent=absent, stateMachineArn=arn)
    if there is None:
        return
    answer = reader.ask("stepfunctions", "ListTagsForResource", resourceArn=arn)
    tags = {tag["key"]: tag["value"] for tag in answer["tags"]}
    yield from _owned(examination, "name", f"state machine {arn.rpartition(':')[2]}", tags)


def _role(examination: Examination, name: str) -> Iterator[Finding]:
    answer = examination.reader.ask("iam", "GetRole", absent=("NoSuchEntity",), RoleName=name)
    if answer is not None:
        tags = {tag["Key"]: tag["Value"] for tag in answer["Role"].get("Tags", ())}
        yield from _owned(examination, "name", f"role {name}", tags)


def _schedule(examination: Examination, name: str, machine: str) -> Iterator[Finding]:
    absent = ("ResourceNotFoundException",)
    there = examination.reader.ask(
        "scheduler", "GetSchedule", absent=absent, Name=name, GroupName=GROUP
    )
    if there is not None and not starts(there["Target"]["Arn"], machine):
        what = f"schedule {name} exists, and starts {there['Target']['Arn']}"
        yield _taken("schedule", what, "rename the pipeline, or delete the schedule")


def _owned(
    examination: Examination, where: str, what: str, tags: Mapping[str, str]
) -> Iterator[Finding]:
    owner = tags.get(OWNER)
    if owner is None:
        mend = "rename the pipeline, or take it over with `orchestrate deploy --adopt`"
        yield _taken(where, f"{what} exists, and no pipeline owns it", mend)
    elif owner != examination.pipeline.name:
        mend = "rename one of the two"
        yield _taken(where, f"{what} exists, and belongs to pipeline {owner}", mend)


def _taken(where: str, what: str, mend: str) -> Finding:
    return Finding(
        check="names",
        severity="may fail",
        where=where,
        what=what,
        why="a deployment changes only what carries the tag of its own pipeline",
        when=_DEPLOYING,
        mend=mend,
    )


def _endpoint(
    examination: Examination, name: str, request: Request, where: str
) -> Iterator[Finding]:
    reader = examination.reader
    # SageMaker has no code of its own for what does not exist.
    absent = ("ValidationException",)
    there = reader.ask("sagemaker", "DescribeEndpoint", absent=absent, EndpointName=name)
    if there is None:
        return
    status = there["EndpointStatus"]
    if status in _BUSY:
        what = f"endpoint {name} is {status}: something else is changing it"
        mend = "wait until it is InService, or give the stage `update: {while_busy: wait}`"
        yield _of_endpoint(request, where, "may fail", what, mend)
    elif status != "InService":
        reason = f" ({there['FailureReason']})" if there.get("FailureReason") else ""
        what = f"endpoint {name} is {status}{reason}"
        yield _of_endpoint(request, where, "fails", what, "delete it; the run creates it anew")
    answer = reader.ask("sagemaker", "ListTags", ResourceArn=there["EndpointArn"])
    owner = {tag["Key"]: tag["Value"] for tag in answer["Tags"]}.get(OWNER)
    if owner != examination.pipeline.name and known(name):
        whose = "no pipeline" if owner is None else f"pipeline {owner}"
        what = f"endpoint {name} exists, and {whose} made it: a run replaces what it serves"
        mend = "give the stage an endpoint_name of its own, unless that is meant"
        yield _of_endpoint(request, where, "may fail", what, mend)


def _of_endpoint(request: Request, where: str, severity: Severity, what: str, mend: str) -> Finding:
    return Finding(
        check="endpoints",
        severity=severity,
        where=where,
        what=what,
        why="only an endpoint that is InService can be updated",
        when=request.calls,
        mend=mend,
        sources=_SOURCES,
    )
