"""The rule that starts a pipeline after events, its role, and buckets that tell nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from orchestration.deploy import Account, Current, desired, difference, own_role, step_functions
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws
from tests.deploy.pipelines import copying

ACCOUNT = Account(id="123456789012", region="us-east-1")
PARAMETERS = {"bucket": "workspace", "role": "arn:aws:iam::123456789012:role/r"}
OBJECTS = {
    "s3": {"bucket": "incoming", "prefix": "new/"},
    "parameters": {"data": {"event": "object_uri"}},
}
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:copying"


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as embedded:
        for bucket in ("workspace", "incoming"):
            embedded.client("s3").create_bucket(Bucket=bucket)
        yield embedded


def notify(aws: EmbeddedAws, **configuration: Any) -> None:
    aws.client("s3").put_bucket_notification_configuration(
        Bucket="incoming", NotificationConfiguration=configuration
    )


def wanted(trigger: Any = OBJECTS, **more: Any) -> Any:
    return desired(copying(trigger=trigger), ACCOUNT, parameters={**PARAMETERS, **more})


def deployed(aws: EmbeddedAws, trigger: Any = OBJECTS, name: str = "copying", **more: Any) -> Any:
    given = {**PARAMETERS, **({} if trigger else {"data": "s3://incoming/set"})}
    pipeline = copying(trigger=trigger, name=name)
    return step_functions(pipeline, session=aws, parameters=given, sleep=lambda _: None, **more)


def test_the_input_has_the_parameters_and_nothing_else_of_the_event() -> None:
    [target] = wanted().trigger.targets
    assert target.template.text == (
        "{\n"
        '  "bucket": "workspace",\n'
        '  "role": "arn:aws:iam::123456789012:role/r",\n'
        '  "data": "s3://<detail_bucket_name>/<detail_object_key>",\n'
        '  "orchestration:run": "copying/<id>"\n'
        "}"
    )
    assert target.template.paths == {
        "detail_bucket_name": "$.detail.bucket.name",
        "detail_object_key": "$.detail.object.key",
        "id": "$.id",
    }
    assert (target.arn, target.role_arn) == (MACHINE, wanted().trigger_role.arn)


def test_a_text_of_the_users_is_no_placeholder() -> None:
    [target] = wanted({**OBJECTS, "parameters": {"data": "a<id>\"b'"}}).trigger.targets
    assert "a<id>" not in target.template.text
    assert json.loads(target.template.text)["data"] == "a<id>\"b'"


def test_values_that_are_too_long_for_a_template_are_refused(aws: EmbeddedAws) -> None:
    long = {**OBJECTS, "parameters": {"data": "x" * 8000}}
    told = r"InputTemplate: has 8\d+ characters; the most is 8192; shorten the values of parameters"
    with pytest.raises(DeployError, match=told):
        wanted({**OBJECTS, "parameters": {"data": "x" * 8192}})
    [target] = wanted(long).trigger.targets
    aws.client("events").put_rule(Name="long", EventPattern='{"source": ["my.orders"]}')
    aws.client("events").put_targets(Rule="long", Targets=[target.request()])


def test_values_are_not_to_be_shortened_for_a_field_that_is_too_long() -> None:
    field = f"detail.{'x' * 260}"
    asked = {"event": {"source": ["my.orders"]}, "parameters": {"data": {"event": field}}}
    with pytest.raises(DeployError, match=r"has \d+ characters; the most is 256$"):
        wanted(asked)


def test_the_role_may_start_this_machine_and_do_nothing_else() -> None:
    role = wanted().trigger_role
    assert role.policy["Statement"] == [
        {
            "Sid": "StartTriggeredRuns",
            "Effect": "Allow",
            "Action": ["states:StartExecution"],
            "Resource": [MACHINE],
        }
    ]
    [trust] = role.trust["Statement"]
    assert trust["Principal"] == {"Service": "events.amazonaws.com"}
    rule = "arn:aws:events:us-east-1:123456789012:rule/copying-trigger"
    assert trust["Condition"]["ArnLike"] == {"aws:SourceArn": rule}


def test_triggered_runs_may_read_what_events_can_name_and_no_more() -> None:
    text = json.dumps(wanted().role.policy)
    assert "arn:aws:s3:::incoming/new/*" in text
    assert "arn:aws:s3:::*" not in text
    both = json.dumps(wanted(data="s3://other/set").role.policy)
    assert "arn:aws:s3:::other/set/*" in both
    assert "arn:aws:s3:::incoming/new/*" in both


def test_another_pipeline_is_heard_by_its_successes() -> None:
    pattern = wanted({"pipeline": "digits", "parameters": {"data": "s3://a/b"}}).trigger.pattern
    assert pattern["detail"] == {
        "status": ["SUCCEEDED"],
        "stateMachineArn": ["arn:aws:states:us-east-1:123456789012:stateMachine:digits"],
        "output": [{"anything-but": {"prefix": '{"orchestration:skipped"'}}, None],
    }


def test_what_nobody_gives_a_value_is_refused() -> None:
    with pytest.raises(DeployError, match=r"parameter 'data' has no value: .*triggered runs need"):
        wanted({**OBJECTS, "parameters": {}})


@pytest.mark.slow
def test_a_second_deployment_changes_nothing_and_one_without_removes_the_rule(
    aws: EmbeddedAws,
) -> None:
    notify(aws, EventBridgeConfiguration={})
    first = deployed(aws)
    made = ["create role copying-us-east-1-trigger", "create rule copying-trigger"]
    assert [change.summary for change in first.changes][-2:] == made
    assert deployed(aws).changes == ()
    assert [change.summary for change in deployed(aws, None).changes] == [
        "update role copying-us-east-1-states: permissions",
        # Nothing starts runs by itself any more, so they may overlap.
        "update state machine copying: definition",
        "delete rule copying-trigger",
        "delete role copying-us-east-1-trigger",
    ]
    assert aws.client("events").list_rules(NamePrefix="copying-")["Rules"] == []


def said_of_the_bucket(shown: Any) -> list[str]:
    """The warnings, but for that of another pipeline of this account with the same stages."""
    return [each for each in shown.warnings if "with the same stages" not in each]


@pytest.mark.slow
def test_a_bucket_that_tells_nobody_is_an_error_with_the_command(aws: EmbeddedAws) -> None:
    topic = aws.client("sns").create_topic(Name="news")["TopicArn"]
    notify(aws, TopicConfigurations=[{"TopicArn": topic, "Events": ["s3:ObjectCreated:*"]}])
    shown = deployed(aws, name="telling", dry_run=True)
    assert "create rule telling-trigger" in [change.summary for change in shown.changes]
    [warning] = said_of_the_bucket(shown)
    assert "bucket incoming sends no events to EventBridge" in warning
    configuration = json.loads(warning[warning.index("'") + 1 : warning.rindex("'")])
    assert configuration["EventBridgeConfiguration"] == {}
    assert configuration["TopicConfigurations"][0]["TopicArn"] == topic
    with pytest.raises(DeployError, match="nothing would start runs of telling: bucket incoming"):
        deployed(aws, name="telling")
    machines = aws.client("stepfunctions").list_state_machines()["stateMachines"]
    assert "telling" not in [machine["name"] for machine in machines]
    notify(aws, **configuration)
    assert said_of_the_bucket(deployed(aws, name="telling", dry_run=True)) == []


@pytest.mark.slow
def test_a_bucket_elsewhere_or_nowhere_is_an_error(aws: EmbeddedAws) -> None:
    with pytest.raises(DeployError, match="bucket nowhere does not exist"):
        deployed(aws, {**OBJECTS, "s3": {"bucket": "nowhere"}})
    aws.client("s3").create_bucket(
        Bucket="far-away", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    with pytest.raises(DeployError, match="bucket far-away is in eu-west-1, and its events go"):
        deployed(aws, {**OBJECTS, "s3": {"bucket": "far-away"}})


def test_somebody_elses_rule_of_the_name_is_left_alone() -> None:
    own = wanted()
    [target] = own.trigger.targets
    other = replace(own.trigger, targets=(replace(target, arn=f"{MACHINE}2"),))
    with pytest.raises(DeployError, match=r"rule copying-trigger exists and starts .*copying2"):
        difference(own, Current(trigger=other))
    without = desired(copying(), ACCOUNT, parameters={**PARAMETERS, "data": "s3://a/b"})
    assert other not in [change.before for change in difference(without, Current(trigger=other))]


def test_a_role_of_ones_own_starts_the_runs() -> None:
    arn = "arn:aws:iam::123456789012:role/own"
    found = own_role.under(wanted(), arn, ACCOUNT)
    assert found.trigger is not None
    assert (found.trigger_role, found.trigger.targets[0].role_arn) == (None, arn)
    assert "StartTriggeredRuns" in json.dumps(found.role.policy)
    assert "events.amazonaws.com" in json.dumps(found.role.trust)
