"""Rules of EventBridge that tell topics of SNS how executions end, and what those must allow.

A topic is not the pipeline's: it is neither made nor changed here. What EventBridge can't deliver
it drops without a word, so a deployment reads what the topic allows, and says what is missing.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html#eb-sns-permissions
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from orchestration.deploy.account import Account, Clients
from orchestration.deploy.monitoring.alarms import Alarm
from orchestration.deploy.resources import Rule, Target
from orchestration.deploy.starting import ends
from orchestration.graph import Workflow
from orchestration.notices import FAILURES, SUCCESSES, template

_EVENTS: Final = "events.amazonaws.com"
_ALARMS: Final = "cloudwatch.amazonaws.com"
_NAMES: Final = {_EVENTS: "EventBridge", _ALARMS: "CloudWatch"}
_FAILURE, _SUCCESS = "-failure", "-success"
_AWS_KEY: Final = "alias/aws/sns"


def names(pipeline: str) -> tuple[str, ...]:
    """Name the rules that a pipeline may have."""
    return (f"{pipeline}{_FAILURE}", f"{pipeline}{_SUCCESS}")


def desired(workflow: Workflow, account: Account) -> tuple[Rule, ...]:
    """Compute the rules of a workflow; none where nobody is told."""
    spec = workflow.notify
    if spec is None:
        return ()
    machine = account.arn("states", f"stateMachine:{workflow.name}")
    rules = []
    for suffix, topics, states in (
        (_FAILURE, spec.on_failure, FAILURES),
        (_SUCCESS, spec.on_success, SUCCESSES),
    ):
        text = template(
            workflow.name,
            failed=states is FAILURES,
            region=account.region,
            partition=account.partition,
        )
        targets = tuple(
            Target(id=f"topic-{number}", arn=arn, template=text)
            for number, arn in enumerate(topics, start=1)
        )
        if targets:
            name = f"{workflow.name}{suffix}"
            may_be_skipped = states is SUCCESSES and workflow.overlapping != "allow"
            pattern = ends(machine, states, without_skipped=may_be_skipped)
            rules.append(Rule(name=name, pattern=pattern, targets=targets))
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Obstacles between the rules and their topics."""

    problems: tuple[str, ...] = ()
    """Reasons for which nothing would be delivered."""
    warnings: tuple[str, ...] = ()
    """Conditions that can't be read."""


def delivery(
    rules: Iterable[Rule], session: Clients, account: Account, alarms: Iterable[Alarm] = ()
) -> Delivery:
    """Read whether the topics of the rules let EventBridge publish, and CloudWatch for alarms."""
    events: dict[str, list[str]] = {}
    for rule in rules:
        for target in rule.targets:
            events.setdefault(target.arn, []).append(account.arn("events", f"rule/{rule.name}"))
    alarmed: dict[str, list[str]] = {}
    for alarm in alarms:
        for topic in alarm.topics:
            alarmed.setdefault(topic, []).append(alarm.arn)
    both = [
        _delivery(events, _EVENTS, session, account),
        _delivery(alarmed, _ALARMS, session, account),
    ]
    return Delivery(
        tuple(text for each in both for text in each.problems),
        tuple(text for each in both for text in each.warnings),
    )


def _delivery(
    watching: Mapping[str, list[str]], service: str, session: Clients, account: Account
) -> Delivery:
    problems: list[str] = []
    warnings: list[str] = []
    for topic, arns in watching.items():
        if topic.split(":")[3:5] != [account.region, account.id]:
            problems.append(
                f"topic {topic} is not in {account.region} of account {account.id}; "
                f"{_NAMES[service]} delivers to topics of its own region and account"
            )
            continue
        attributes, refused = _attributes(topic, session)
        if attributes is not None:
            problems += _refusals(topic, attributes, arns, account, service)
            warnings += _own_key(topic, attributes, service)
        elif "NotFound" in refused:
            problems.append(f"topic {topic} does not exist")
        else:
            warnings.append(f"topic {topic} can't be read ({refused}): {_needs(topic, service)}")
    return Delivery(tuple(problems), tuple(warnings))


def _refusals(
    topic: str,
    attributes: Mapping[str, str],
    sources: Iterable[str],
    account: Account,
    service: str,
) -> Iterator[str]:
    if not all(_admits(attributes, topic, source, account, service) for source in sources):
        yield f"topic {topic} does not let {_NAMES[service]} publish; {_needs(topic, service)}"
    if attributes.get("KmsMasterKeyId", "").endswith(_AWS_KEY):
        yield (
            f"topic {topic} is encrypted with {_AWS_KEY}, which {_NAMES[service]} may not use; "
            "encrypt it with a key of your own"
        )


def _attributes(topic: str, session: Clients) -> tuple[Mapping[str, str] | None, str]:
    from botocore.exceptions import ClientError

    try:
        response = session.client("sns").get_topic_attributes(TopicArn=topic)
    except ClientError as error:
        return None, str(error.response["Error"]["Code"])
    return response["Attributes"], ""


def _needs(topic: str, service: str) -> str:
    statement = {
        "Sid": "PublishRunsEnds",
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sns:Publish",
        "Resource": topic,
    }
    return f"its access policy needs this statement: {json.dumps(statement)}"


def _admits(
    attributes: Mapping[str, str], topic: str, source: str, account: Account, service: str
) -> bool:
    policy = json.loads(attributes.get("Policy") or "{}")
    known = {"aws:sourcearn": source, "aws:sourceaccount": account.id}
    return any(_allows(each, topic, known, service) for each in _list(policy.get("Statement", [])))


def _allows(
    statement: Mapping[str, Any], topic: str, known: Mapping[str, str], service: str
) -> bool:
    principal = statement.get("Principal")
    # {"AWS": "*"} is everybody, as "*" is.
    kinds = principal.values() if isinstance(principal, dict) else [principal]
    principals = [each for kind in kinds for each in _list(kind)]
    actions = [str(action).lower() for action in _list(statement.get("Action", []))]
    resources = _list(statement.get("Resource", []))
    return (
        statement.get("Effect") == "Allow"
        and not {service, "*"}.isdisjoint(principals)
        and any(fnmatchcase("sns:publish", action) for action in actions)
        and any(fnmatchcase(topic, str(resource)) for resource in resources)
        and all(_holds(key, values, known) for key, values in _conditions(statement))
    )


def _conditions(statement: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for pairs in statement.get("Condition", {}).values():
        for key, values in pairs.items():
            yield key.lower(), [str(value) for value in _list(values)]


def _holds(key: str, values: list[str], known: Mapping[str, str]) -> bool:
    # Of an event's delivery EventBridge tells the rule and the account, and no more.
    return key in known and any(fnmatchcase(known[key], value) for value in values)


def _own_key(topic: str, attributes: Mapping[str, str], service: str) -> Iterator[str]:
    key = attributes.get("KmsMasterKeyId", "")
    if key and not key.endswith(_AWS_KEY):
        yield (
            f"topic {topic} is encrypted with {key}, whose policy must let {service} use "
            "kms:Decrypt and kms:GenerateDataKey"
        )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
