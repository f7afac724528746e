"""The rule of EventBridge that starts a pipeline after events, and what must send those.

What a rule's template inserts of an event is not escaped: a text with a quotation mark or a line
break in it leaves no JSON, and EventBridge starts nothing for such an event; a backslash begins an
escape.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orchestration.backends.stepfunctions.parameters import RUN
from orchestration.checks.requests import violations
from orchestration.deploy.account import Account, Clients, refusal
from orchestration.deploy.events.notices import Delivery
from orchestration.deploy.permissions.patterns import ANY
from orchestration.deploy.resources import Names, Role, Rule, Target
from orchestration.deploy.starting import Maker, ends
from orchestration.errors import Problem
from orchestration.expressions import Json, Tree
from orchestration.graph import ParameterSpec, TriggerSpec, Workflow
from orchestration.notices import SUCCESSES, Template

_FIELD: Final = re.compile(r"<([^<>]+)>")
_EVENT: Final = "id"


def name(pipeline: str) -> str:
    """Name the rule of a pipeline."""
    return f"{pipeline}-trigger"


def role_name(pipeline: str, account: Account) -> str:
    """Name the role with which the rule starts executions."""
    return f"{pipeline}-{account.region}-trigger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggered:
    """A rule and the role with which it starts executions."""

    role: Role | None = None
    rule: Rule | None = None


def desired(
    workflow: Workflow, names: Names, chosen: Mapping[str, Json], maker: Maker
) -> Triggered:
    """Compute the rule of a workflow and its role; without a trigger, none of it."""
    spec = workflow.trigger
    if spec is None:
        return Triggered()
    role = maker.starter(
        names.trigger_role,
        "StartTriggeredRuns",
        names.machine_arn,
        {"events.amazonaws.com": maker.account.arn("events", f"rule/{names.trigger}")},
        alias=names.alias,
    )
    target = Target(
        id="runs",
        arn=names.start_arn,
        role_arn=role.arn,
        template=_template(workflow, spec, chosen),
    )
    pattern = dict(spec.pattern)
    if spec.pipeline is not None:
        other = maker.account.arn("states", f"stateMachine:{spec.pipeline}")
        pattern = ends(other, SUCCESSES, without_skipped=True)
    rule = Rule(name=names.trigger, pattern=pattern, targets=(target,))
    asked: dict[str, Tree] = {"Rule": rule.name, "Targets": [target.request()]}
    if problems := violations("events", "PutTargets", asked):
        raise refusal(
            f"EventBridge refuses what would start runs of {workflow.name}",
            map(_remedied, problems),
        )
    return Triggered(role=role, rule=rule)


def _remedied(problem: Problem) -> str:
    is_text = problem.field.endswith("InputTemplate")
    return f"PutTargets {problem}{'; shorten the values of parameters' if is_text else ''}"


def run_values(workflow: Workflow) -> dict[str, Json]:
    """Return the parameters of triggered runs, as far as they are known before any event."""
    spec = workflow.trigger
    if spec is None:
        return {}
    known: dict[str, Json] = dict(spec.parameters)
    for parameter, text in spec.values.items():
        known[parameter] = _FIELD.sub(lambda match: _known(spec, match[1]), text)
    return known


def _known(spec: TriggerSpec, path: str) -> str:
    """Return the text of a field of the events, with :data:`ANY` for what only an event tells."""
    if spec.bucket is None:
        return ANY
    if path == "detail.bucket.name":
        return spec.bucket
    return f"{spec.prefix}{ANY}{spec.suffix}" if path == "detail.object.key" else ANY


def _template(workflow: Workflow, spec: TriggerSpec, chosen: Mapping[str, Json]) -> Template:
    """Return the template of an execution's input: parameters, and nothing else of the event.

    A run is named by its event, which EventBridge may deliver twice: both executions are then one
    run, and the second adopts the jobs of the first.
    """
    types = {parameter.name: parameter for parameter in workflow.parameters}
    paths: dict[str, str] = {}
    members = {
        key: _literal(value)
        for key, value in {**chosen, **spec.parameters}.items()
        if key not in spec.values
    }
    for key, text in spec.values.items():
        members[key] = _filled(text, types[key], paths)
    run = ParameterSpec(name=RUN)
    members[RUN] = _filled(f"{workflow.name}/<{_EVENT}>", run, paths)
    listed = ",\n".join(f"  {json.dumps(key)}: {text}" for key, text in members.items())
    return Template(paths=paths, text=f"{{\n{listed}\n}}")


def _filled(text: str, parameter: ParameterSpec, paths: dict[str, str]) -> str:
    """Return the JSON of a value, and note the places of the fields that it needs."""

    def placeholder(match: re.Match[str]) -> str:
        called = re.sub(r"\W", "_", match[1])
        paths[called] = f"$.{match[1]}"
        return f"<{called}>"

    written = _FIELD.sub(placeholder, text)
    # In quotation marks, a number becomes text.
    return f'"{written}"' if parameter.type == "string" else written


def _literal(value: Json) -> str:
    # EventBridge must take nothing in it for a placeholder.
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def delivery(spec: TriggerSpec | None, session: Clients, account: Account) -> Delivery:
    """Read whether the events of a trigger get to EventBridge at all."""
    if spec is None or spec.bucket is None:
        return Delivery()
    from botocore.exceptions import ClientError

    client = session.client("s3")
    try:
        configuration = client.get_bucket_notification_configuration(Bucket=spec.bucket)
        region = client.head_bucket(Bucket=spec.bucket).get("BucketRegion", account.region)
    except ClientError as error:
        code = str(error.response["Error"]["Code"])
        if code == "NoSuchBucket":
            return Delivery((f"bucket {spec.bucket} does not exist",))
        unread = f"the events of bucket {spec.bucket} can't be read ({code}): {_needs(spec.bucket)}"
        return Delivery((), (unread,))
    return Delivery(tuple(_obstacles(spec.bucket, configuration, region, account)))


def _obstacles(
    bucket: str, configuration: Mapping[str, Any], region: str, account: Account
) -> Iterator[str]:
    if region != account.region:
        yield (
            f"bucket {bucket} is in {region}, and its events go to EventBridge there; deploy to "
            f"{region}, or forward them to {account.region} by a rule of your own"
        )
    elif "EventBridgeConfiguration" not in configuration:
        kept = {key: value for key, value in configuration.items() if key != "ResponseMetadata"}
        whole = json.dumps({**kept, "EventBridgeConfiguration": {}})
        yield (
            f"bucket {bucket} sends no events to EventBridge; {_needs(bucket)}: `aws s3api "
            f"put-bucket-notification-configuration --bucket {bucket} "
            f"--notification-configuration '{whole}'`"
        )


def _needs(bucket: str) -> str:
    return f"the notifications of {bucket} must have EventBridgeConfiguration"
