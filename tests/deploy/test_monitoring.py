"""Logs and traces of a deployed pipeline: made, changed, and left or deleted with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.deploy import Clients, Deployment, destruction, step_functions
from orchestration.deploy.identities import identities
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws
from tests.deploy import pipelines
from tests.deploy.pipelines import ACCOUNT, PARAMETERS
from tests.deploy.test_destroying import CutOff, Cutting

pytestmark = pytest.mark.slow  # starts the embedded AWS

GROUP = "/aws/vendedlogs/states/copying"
LOGGED = {"logging": {"include_execution_data": True, "retention_days": 30}, "tracing": True}


@pytest.fixture(scope="module")
def account() -> Iterator[EmbeddedAws]:
    """An account that enforces IAM."""
    with EmbeddedAws(enforce_iam=True) as embedded:
        embedded.client("s3").create_bucket(Bucket=PARAMETERS["bucket"])
        yield embedded


@pytest.fixture
def aws(account: EmbeddedAws) -> Iterator[EmbeddedAws]:
    yield account
    destruction("copying", session=account, logs=True).apply()


def deploy(aws: Clients, options: dict[str, Any] | None, **more: Any) -> Deployment:
    made = pipelines.copying(step_functions=options)
    return step_functions(made, session=aws, parameters=PARAMETERS, sleep=_no_sleep, **more)


def _no_sleep(seconds: float) -> None:
    raise AssertionError(f"slept {seconds} s")


def machine(aws: EmbeddedAws) -> dict[str, Any]:
    arn = ACCOUNT.arn("states", "stateMachine:copying")
    found = aws.client("stepfunctions").describe_state_machine(stateMachineArn=arn)
    return {"logging": found["loggingConfiguration"], "tracing": found["tracingConfiguration"]}


def groups(aws: EmbeddedAws) -> dict[str, Any]:
    found = aws.client("logs").describe_log_groups(logGroupNamePrefix="/aws/vendedlogs")
    return {each["logGroupName"]: each.get("retentionInDays") for each in found["logGroups"]}


def test_a_deployment_logs_and_traces_under_its_own_role(aws: EmbeddedAws) -> None:
    """IAM is enforced: a role without the delivery of logs could not have the machine."""
    done = deploy(aws, LOGGED)
    assert [each.summary for each in done.changes][:3] == [
        "create role copying-us-east-1-states",
        f"create log group {GROUP}",
        "create state machine copying",
    ]
    assert groups(aws) == {GROUP: 30}
    destination = {"logGroupArn": f"{ACCOUNT.arn('logs', f'log-group:{GROUP}')}:*"}
    assert machine(aws) == {
        "logging": {
            "level": "ALL",
            "includeExecutionData": True,
            "destinations": [{"cloudWatchLogsLogGroup": destination}],
        },
        "tracing": {"enabled": True},
    }
    assert deploy(aws, LOGGED).changes == ()


def test_what_changes_is_shown_and_made(aws: EmbeddedAws) -> None:
    deploy(aws, LOGGED)
    options = {"logging": {"level": "ERROR", "retention_days": None}, "tracing": True}
    done = deploy(aws, options)
    assert [each.summary for each in done.changes] == [
        f"update log group {GROUP}: retention_days",
        "update state machine copying: definition, logging",
    ]
    assert groups(aws) == {GROUP: None}
    assert machine(aws)["logging"]["level"] == "ERROR"
    assert deploy(aws, options).changes == ()


def test_what_nobody_asks_for_any_more_is_turned_off(aws: EmbeddedAws) -> None:
    deploy(aws, LOGGED)
    done = deploy(aws, None)
    assert [each.summary for each in done.changes] == [
        "update role copying-us-east-1-states: permissions",
        "update state machine copying: definition, logging, tracing",
    ]
    assert machine(aws)["logging"]["level"] == "OFF"
    assert machine(aws)["tracing"] == {"enabled": False}
    # Its records may still be read.
    assert groups(aws) == {GROUP: 30}
    assert deploy(aws, None).changes == ()


def test_what_someone_else_set_stays(aws: EmbeddedAws) -> None:
    done = deploy(aws, None)
    aws.client("stepfunctions").update_state_machine(
        stateMachineArn=done.state_machine_arn, tracingConfiguration={"enabled": True}
    )
    assert deploy(aws, None).changes == ()
    assert [each.summary for each in deploy(aws, {"tracing": False}).changes] == [
        "update state machine copying: definition, tracing"
    ]


def test_a_log_group_of_somebody_else_is_refused(aws: EmbeddedAws) -> None:
    aws.client("logs").create_log_group(logGroupName="/aws/vendedlogs/states/stranger")
    made = pipelines.copying(name="stranger", step_functions=LOGGED)
    with pytest.raises(DeployError, match=r"log group \S+/stranger exists and is not this"):
        step_functions(made, session=aws, parameters=PARAMETERS)
    done = step_functions(made, session=aws, parameters=PARAMETERS, adopt=True, dry_run=True)
    assert done.changes[1].aspects == ("retention_days", "tags")
    aws.client("logs").delete_log_group(logGroupName="/aws/vendedlogs/states/stranger")


def test_the_log_group_outlives_a_deployment_unless_that_is_asked_for(aws: EmbeddedAws) -> None:
    deploy(aws, LOGGED)
    planned = destruction("copying", session=aws)
    assert planned.log_group == GROUP
    planned.apply()
    assert groups(aws) == {GROUP: 30}
    again = deploy(aws, LOGGED)
    assert "log group" not in [change.resource for change in again.changes]
    planned = destruction("copying", session=aws, logs=True)
    assert planned.changes[-1].summary == f"delete log group {GROUP}"
    planned.apply()
    assert groups(aws) == {}


def test_a_deployment_that_is_cut_off_at_each_call_is_finished_by_the_next(
    aws: EmbeddedAws,
) -> None:
    cutting = Cutting(aws)
    for _ in range(20):
        try:
            deploy(cutting, LOGGED)
        except CutOff:
            continue
        break
    cutting.release()
    # A log group without its retention, a role without its policy: each is made up for.
    assert cutting.made == [
        "CreateRole",
        "PutRolePolicy",
        "CreateLogGroup",
        "PutRetentionPolicy",
        "CreateStateMachine",
    ]
    assert deploy(aws, LOGGED).changes == ()


def test_failed_executions_raise_an_alarm(aws: EmbeddedAws) -> None:
    sns = aws.client("sns")
    topic = sns.create_topic(Name="pager")["TopicArn"]
    asked = {"alarms": {"sns_topic": topic}}
    with pytest.raises(DeployError, match="does not let CloudWatch publish"):
        deploy(aws, asked)
    publish = {"Effect": "Allow", "Action": "sns:Publish", "Resource": topic}
    policy = {"Statement": [{**publish, "Principal": {"Service": "cloudwatch.amazonaws.com"}}]}
    sns.set_topic_attributes(
        TopicArn=topic, AttributeName="Policy", AttributeValue=json.dumps(policy)
    )
    done = deploy(aws, asked)
    ends = ("failed", "timed-out", "aborted")
    assert [each.summary for each in done.changes][-3:] == [
        f"create alarm copying-executions-{end}" for end in ends
    ]
    found = aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert {each["MetricName"] for each in found} == {
        "ExecutionsFailed",
        "ExecutionsTimedOut",
        "ExecutionsAborted",
    }
    dimension = {"Name": "StateMachineArn", "Value": done.state_machine_arn}
    assert all(each["Dimensions"] == [dimension] for each in found)
    assert all(each["AlarmActions"] == [topic] for each in found)
    assert deploy(aws, asked).changes == ()
    gone = deploy(aws, None)
    assert [each.summary for each in gone.changes] == [
        "update state machine copying: definition",
        *(f"delete alarm copying-executions-{end}" for end in ends),
    ]


def test_an_alarm_that_nobody_would_hear_is_refused() -> None:
    with pytest.raises(DeployError, match=r"step_functions\.alarms: expected sns_topic"):
        identities(pipelines.copying(step_functions={"alarms": {}}), ACCOUNT, parameters=PARAMETERS)


def test_each_permission_says_what_it_is_for() -> None:
    pipeline: Pipeline = pipelines.copying(step_functions=LOGGED)
    [own] = [
        each
        for each in identities(pipeline, ACCOUNT, parameters=PARAMETERS)
        if each.who == "machine"
    ]
    text = json.dumps(own.policy)
    assert (text.count('"logs:'), text.count('"xray:')) == (8, 4)
    everywhere = [each for each in own.statements if each.resources == frozenset("*")]
    assert {name for each in everywhere for name in each.needed_by} == {"logging", "tracing"}
