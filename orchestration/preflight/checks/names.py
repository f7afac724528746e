"""Names: free for what a deployment makes, and endpoints that a run may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from orchestration.deploy import batch_copies, transfers
from orchestration.deploy.account import OWNER
from orchestration.deploy.aliases.model import starts
from orchestration.deploy.composing import names_of
from orchestration.deploy.monitoring import composing as monitoring
from orchestration.deploy.monitoring.logs import LogGroup
from orchestration.deploy.resources import GROUP, Names
from orchestration.deploy.starting import Maker
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
    for role in _roles(examination, named):
        yield from looked("names", "name", f"the name of role {role}", _role(examination, role))
    own, companion = named.machine_arn, named.companion.machine_arn
    workflow = examination.workflow
    schedules = [(named.companion.name, companion)]
    schedules += [(named.schedule, own)] if workflow.schedule is not None else []
    for name, machine in schedules:
        look = _schedule(examination, name, machine)
        yield from looked("names", "schedule", f"the name of schedule {name}", look)
    rules = [(named.companion.name, companion)]
    rules += [(named.trigger, own)] if workflow.trigger is not None else []
    for name, machine in rules:
        look = _rule(examination, name, machine)
        yield from looked("names", "name", f"the name of rule {name}", look)
    yield from _monitoring(examination)


def _roles(examination: Examination, named: Names) -> Iterator[str]:
    """Yield the names of the roles that a deployment makes."""
    workflow = examination.workflow
    yield from (named.role, named.companion.role, named.companion.starter)
    if workflow.schedule is not None:
        yield named.schedule_role
    if workflow.trigger is not None:
        yield named.trigger_role
    maker = Maker(account=examination.account, tags={})
    for copying in (transfers, batch_copies):
        role = copying.desired(workflow, maker, examination.runs)
        if role is not None:
            yield role.name


def _monitoring(examination: Examination) -> Iterator[Finding]:
    pipeline, account = examination.pipeline, examination.account
    group = monitoring.log_group(pipeline, account, {})
    if group is not None:
        look = _log_group(examination, group)
        yield from looked("names", "step_functions.logging", f"log group {group.name}", look)
    names = [alarm.name for alarm in monitoring.alarms(pipeline, account, {})]
    if names:
        look = _alarms(examination, names)
        yield from looked("names", "step_functions.alarms", f"alarms {' and '.join(names)}", look)


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


def _rule(examination: Examination, name: str, machine: str) -> Iterator[Finding]:
    reader, absent = examination.reader, ("ResourceNotFoundException",)
    if reader.ask("events", "DescribeRule", absent=absent, Name=name) is None:
        return
    targets = reader.ask("events", "ListTargetsByRule", Rule=name)["Targets"]
    others = [each["Arn"] for each in targets if not starts(each["Arn"], machine)]
    if others:
        what = f"rule {name} exists, and starts {' and '.join(others)}"
        yield _taken("name", what, "rename the pipeline, or delete the rule")


def _log_group(examination: Examination, group: LogGroup) -> Iterator[Finding]:
    reader = examination.reader
    found = reader.ask("logs", "DescribeLogGroups", logGroupNamePrefix=group.name)["logGroups"]
    if any(each["logGroupName"] == group.name for each in found):
        tags = reader.ask("logs", "ListTagsForResource", resourceArn=group.arn).get("tags", {})
        where, what = "step_functions.logging", f"log group {group.name}"
        yield from _owned(examination, where, what, tags)


def _alarms(examination: Examination, names: list[str]) -> Iterator[Finding]:
    reader = examination.reader
    for each in reader.ask("cloudwatch", "DescribeAlarms", AlarmNames=names)["MetricAlarms"]:
        answer = reader.ask("cloudwatch", "ListTagsForResource", ResourceARN=each["AlarmArn"])
        tags = {tag["Key"]: tag["Value"] for tag in answer.get("Tags", ())}
        what = f"alarm {each['AlarmName']}"
        yield from _owned(examination, "step_functions.alarms", what, tags)


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
