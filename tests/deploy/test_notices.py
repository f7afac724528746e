"""Rules that tell how executions end, and topics that may not hear of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.events.models import EventPattern

from orchestration.deploy import (
    Account,
    Change,
    Current,
    apply,
    desired,
    difference,
    step_functions,
)
from orchestration.deploy.events.notices import delivery
from orchestration.errors import DeployError
from tests.deploy.pipelines import copying

ACCOUNT = Account(id="123456789012", region="us-east-1")
TOPIC = "arn:aws:sns:us-east-1:123456789012:alerts"
PARAMETERS = {
    "bucket": "workspace",
    "data": "s3://incoming/set",
    "role": "arn:aws:iam::123456789012:role/r",
}
NOTIFY = {"on_failure": {"sns_topic": TOPIC}}
RULE = "arn:aws:events:us-east-1:123456789012:rule/copying-failure"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        made = boto3.Session(region_name="us-east-1")
        made.client("sns").create_topic(Name="alerts")
        yield made


def allow(session: boto3.Session, **changed: Any) -> None:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": TOPIC,
    }
    policy = {"Version": "2012-10-17", "Statement": [{**statement, **changed}]}
    session.client("sns").set_topic_attributes(
        TopicArn=TOPIC, AttributeName="Policy", AttributeValue=json.dumps(policy)
    )


def wanted(**notify: Any) -> Any:
    return desired(copying(notify=notify or None), ACCOUNT, parameters=PARAMETERS)


def problems(session: boto3.Session, topic: str = TOPIC) -> tuple[str, ...]:
    rules = wanted(on_failure={"sns_topic": topic}).notices
    return delivery(rules, session, ACCOUNT).problems


def test_each_end_has_a_rule_with_its_topics() -> None:
    other = f"{TOPIC}-too"
    rules = wanted(**NOTIFY, on_success={"sns_topic": [TOPIC, other]}).notices
    assert [(rule.name, [t.arn for t in rule.targets]) for rule in rules] == [
        ("copying-failure", [TOPIC]),
        ("copying-success", [TOPIC, other]),
    ]
    failures, successes = (rule.pattern["detail"] for rule in rules)
    assert failures["status"] == ["ABORTED", "FAILED", "TIMED_OUT"]
    assert successes["status"] == ["SUCCEEDED"]
    machine = "arn:aws:states:us-east-1:123456789012:stateMachine:copying"
    assert failures["stateMachineArn"] == successes["stateMachineArn"] == [machine]


def test_no_state_is_added_to_the_machine() -> None:
    # But for the pipeline's file, which the definition holds and no execution reads.
    assert wanted(**NOTIFY).machine.executed() == wanted().machine.executed()
    assert wanted(**NOTIFY).role == wanted().role


def test_who_is_told_no_more_loses_the_rule() -> None:
    before = wanted(**NOTIFY)
    current = Current(role=before.role, machine=before.machine, notices=before.notices)
    machine = Change(before.machine, wanted().machine)
    assert machine.aspects == ("definition",)
    assert difference(wanted(), current) == (machine, Change(before.notices[0], None))


def test_somebody_elses_rule_of_the_name_is_left_alone() -> None:
    [own] = wanted(**NOTIFY).notices
    other = replace(own, pattern={"source": ["aws.ec2"]})
    assert not [c for c in difference(wanted(), Current(notices=(other,))) if c.kind == "delete"]
    with pytest.raises(DeployError, match="rule copying-failure exists and is about something"):
        difference(wanted(**NOTIFY), Current(notices=(other,)))


def test_a_topic_that_lets_nobody_in_is_an_error_with_the_statement(
    session: boto3.Session,
) -> None:
    [problem] = problems(session)
    assert f"topic {TOPIC} does not let EventBridge publish" in problem
    statement = json.loads(problem[problem.index("{") :])
    allow(session, **statement)
    assert problems(session) == ()


@pytest.mark.parametrize(
    ("changed", "admitted"),
    [
        pytest.param({"Action": ["SNS:GetTopicAttributes", "SNS:Pub*"]}, True, id="wildcard"),
        pytest.param({"Principal": "*"}, True, id="everybody"),
        pytest.param({"Principal": {"AWS": "*"}}, True, id="everybody by another name"),
        pytest.param({"Principal": {"AWS": "123456789012"}}, False, id="an account"),
        pytest.param({"Effect": "Deny"}, False, id="denied"),
        pytest.param({"Action": "sns:Subscribe"}, False, id="another action"),
        pytest.param({"Resource": f"{TOPIC}-too"}, False, id="another topic"),
        pytest.param({"Condition": {"ArnLike": {"aws:SourceArn": RULE}}}, True, id="the rule"),
        pytest.param({"Condition": {"ArnLike": {"aws:SourceArn": "x"}}}, False, id="another rule"),
        pytest.param(
            {"Condition": {"StringEquals": {"AWS:SourceAccount": ["123456789012"]}}},
            True,
            id="the account",
        ),
        pytest.param(
            {"Condition": {"StringEquals": {"aws:SourceOwner": "123456789012"}}},
            False,
            id="a condition that no event meets",
        ),
    ],
)
def test_a_topics_policy_is_read_as_sns_reads_it(
    session: boto3.Session, changed: dict[str, Any], admitted: bool
) -> None:
    allow(session, **changed)
    assert (problems(session) == ()) is admitted


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        (f"{TOPIC}-too", "does not exist"),
        (TOPIC.replace("us-east-1", "eu-west-1"), "is not in us-east-1 of account 123456789012"),
        (TOPIC.replace("123456789012", "111122223333"), "is not in us-east-1 of account 1234567"),
    ],
)
def test_a_topic_that_is_not_there_is_an_error(
    session: boto3.Session, topic: str, problem: str
) -> None:
    [found] = problems(session, topic)
    assert problem in found


def test_keys_of_topics(session: boto3.Session) -> None:
    allow(session)
    sns = session.client("sns")
    for key, kind in (("alias/aws/sns", "problems"), ("alias/mine", "warnings")):
        sns.set_topic_attributes(TopicArn=TOPIC, AttributeName="KmsMasterKeyId", AttributeValue=key)
        found = delivery(wanted(**NOTIFY).notices, session, ACCOUNT)
        [text] = getattr(found, kind)
        assert f"is encrypted with {key}" in text


def test_a_dry_run_shows_the_rule_and_what_the_topic_lacks(session: boto3.Session) -> None:
    pipeline = copying(notify=NOTIFY)
    shown = step_functions(pipeline, session=session, parameters=PARAMETERS, dry_run=True)
    assert "create rule copying-failure" in [change.summary for change in shown.changes]
    [warning] = shown.warnings
    assert "does not let EventBridge publish" in warning
    with pytest.raises(DeployError, match="nobody would hear how runs of copying end"):
        step_functions(pipeline, session=session, parameters=PARAMETERS)
    machines = session.client("stepfunctions").list_state_machines()["stateMachines"]
    assert machines == []


def test_a_second_deployment_changes_nothing(session: boto3.Session) -> None:
    allow(session)
    session.client("s3").create_bucket(Bucket="workspace")
    pipeline = copying(notify=NOTIFY)
    first = step_functions(pipeline, session=session, parameters=PARAMETERS)
    assert first.warnings == ()
    assert step_functions(pipeline, session=session, parameters=PARAMETERS).changes == ()
    without = step_functions(copying(), session=session, parameters=PARAMETERS, dry_run=True)
    machine, rule = without.changes
    assert machine.summary == "update state machine copying: definition"
    assert rule.summary == "delete rule copying-failure"
    apply((rule,), session)  # moto lacks what an update of a machine needs.
    assert session.client("events").list_rules()["Rules"] == []


def test_a_topic_that_can_not_be_read_is_a_warning() -> None:
    class Refusing:
        def client(self, name: str, /) -> Any:
            client = boto3.client(
                name,
                region_name="us-east-1",
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
            )
            return stubbed(client)

    found = delivery(wanted(**NOTIFY).notices, Refusing(), ACCOUNT)
    assert found.problems == ()
    [warning] = found.warnings
    assert "can't be read (AuthorizationError): its access policy needs" in warning


def stubbed(client: Any) -> Any:
    from botocore.stub import Stubber

    stubber = Stubber(client)
    stubber.add_client_error("get_topic_attributes", "AuthorizationError", "no")
    stubber.activate()
    return client


@pytest.mark.parametrize(
    ("output", "told"),
    [('{"orchestration:skipped":"arn"}', False), ('{"train":{}}', True), (None, True)],
)
def test_nobody_hears_of_a_run_that_was_skipped_as_of_a_success(
    output: str | None, told: bool
) -> None:
    [rule] = desired(
        copying(notify={"on_success": {"sns_topic": TOPIC}}, overlap="skip"),
        ACCOUNT,
        parameters=PARAMETERS,
    ).notices
    machine = "arn:aws:states:us-east-1:123456789012:stateMachine:copying"
    detail = {"status": "SUCCEEDED", "stateMachineArn": machine, "output": output}
    event: Any = {"source": "aws.states", "detail-type": rule.pattern["detail-type"][0]}
    event["detail"] = detail
    assert EventPattern(None, dict(rule.pattern)).matches_event(event) is told
