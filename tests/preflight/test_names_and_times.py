"""Names that are taken, endpoints as they are, schedules that overlap, Airflow's connection."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import ROLE, TRAINING, Examine, Stubbed, pipeline, trust

DEFINITION = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Succeed"}}})
_KEPT = ("ScheduleExpression", "FlexibleTimeWindow")
NIGHTLY = ("stages:", "schedule: {cron: CRON, timezone: Europe/Berlin}\nstages:")


def test_free_names_are_no_finding(found: Examine) -> None:
    assert found(pipeline(), "names") == []


def test_names_that_others_have_are_found(aws: EmbeddedAws, found: Examine) -> None:
    states, iam = aws.client("stepfunctions"), aws.client("iam")
    machine = {"definition": DEFINITION, "roleArn": ROLE}
    states.create_state_machine(name="taken", **machine)
    other = [{"key": "orchestration:pipeline", "value": "other"}]
    states.create_state_machine(name="taken-companion", **machine, tags=other)
    iam.create_role(
        RoleName="taken-us-east-1-states", AssumeRolePolicyDocument=trust("states.amazonaws.com")
    )
    findings = found(pipeline(name="taken"), "names")
    assert sorted(each.what for each in findings) == [
        "role taken-us-east-1-states exists, and no pipeline owns it",
        "state machine taken exists, and no pipeline owns it",
        "state machine taken-companion exists, and belongs to pipeline other",
    ]
    assert {each.severity for each in findings} == {"may fail"}
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:taken"
    own = [{"key": "orchestration:pipeline", "value": "taken"}]
    states.tag_resource(resourceArn=arn, tags=own)
    assert not any("machine taken exists" in each.what for each in found(pipeline(name="taken")))


def test_a_schedule_of_something_else_is_found(aws: EmbeddedAws, found: Examine) -> None:
    aws.client("scheduler").create_schedule(
        Name="timed",
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": "arn:aws:states:us-east-1:123456789012:stateMachine:x", "RoleArn": ROLE},
    )
    daily = (NIGHTLY[1].replace("CRON", '"0 6 * * *"'),)
    [finding] = found(pipeline(TRAINING, (NIGHTLY[0], *daily), name="timed"), "names")
    assert finding.what.startswith("schedule timed exists, and starts arn:aws:states:")
    # Its own schedule may start it by an alias.
    scheduler, own = aws.client("scheduler"), "arn:aws:states:us-east-1:123456789012:stateMachine"
    there = {key: scheduler.get_schedule(Name="timed")[key] for key in _KEPT}
    target = {"Arn": f"{own}:timed:live", "RoleArn": ROLE}
    scheduler.update_schedule(Name="timed", **there, Target=target)
    assert found(pipeline(TRAINING, (NIGHTLY[0], *daily), name="timed"), "names") == []


MONITORED = """\
trigger: {event: {source: [shop]}}
step_functions:
  logging: {}
  alarms: {sns_topic: "arn:aws:sns:us-east-1:123456789012:alarms"}
stages:"""


def test_rules_log_groups_alarms_and_further_roles_of_others_are_found(
    aws: EmbeddedAws, found: Examine
) -> None:
    events, logs, alarms = aws.client("events"), aws.client("logs"), aws.client("cloudwatch")
    watched = pipeline(TRAINING, ("stages:", MONITORED), name="busy")
    assert found(watched, "names") == []
    aws.client("iam").create_role(
        RoleName="busy-us-east-1-trigger", AssumeRolePolicyDocument=trust("events.amazonaws.com")
    )
    other = "arn:aws:states:us-east-1:123456789012:stateMachine:other"
    for name in ("busy-trigger", "busy-companion"):
        events.put_rule(Name=name, EventPattern=json.dumps({"source": ["x"]}))
        events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": other, "RoleArn": ROLE}])
    logs.create_log_group(logGroupName="/aws/vendedlogs/states/busy")
    alarms.put_metric_alarm(
        AlarmName="busy-executions-failed", ComparisonOperator="GreaterThanThreshold", Threshold=1,
        EvaluationPeriods=1, MetricName="m", Namespace="n", Period=60, Statistic="Sum",
    )  # fmt: skip
    assert {each.what for each in found(watched, "names")} == {
        "role busy-us-east-1-trigger exists, and no pipeline owns it",
        f"rule busy-trigger exists, and starts {other}",
        f"rule busy-companion exists, and starts {other}",
        "log group /aws/vendedlogs/states/busy exists, and no pipeline owns it",
        "alarm busy-executions-failed exists, and no pipeline owns it",
    }


SERVING = """\
name: NAME
workspace: s3://workspace/work
stages:
  serve:
    kind: deployment
    model_data: s3://incoming/model
    image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1
    instance_type: ml.m5.large
    endpoint_name: shop
"""


def described(status: str, **more: str) -> tuple[str, dict[str, Any]]:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    answer: dict[str, Any] = {
        "EndpointName": "shop",
        "EndpointArn": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/shop",
        "EndpointStatus": status,
        "CreationTime": now,
        "LastModifiedTime": now,
        **more,
    }
    return "describe_endpoint", answer


def tags(owner: str) -> tuple[str, dict[str, Any]]:
    return "list_tags", {"Tags": [{"Key": "orchestration:pipeline", "Value": owner}]}


def test_an_endpoint_that_is_not_there_yet_is_no_finding(found: Examine) -> None:
    assert found(pipeline(SERVING), "endpoints") == []


@pytest.mark.parametrize(
    ("status", "severity", "what"),
    [
        ("Updating", "may fail", "endpoint shop is Updating: something else is changing it"),
        ("Failed", "fails", "endpoint shop is Failed (no machines)"),
        ("InService", None, ""),
    ],
)
def test_an_endpoint_is_told_as_it_is(
    aws: EmbeddedAws, found: Examine, status: str, severity: str | None, what: str
) -> None:
    more = {"FailureReason": "no machines"} if status == "Failed" else {}
    session = Stubbed(aws, "sagemaker", described(status, **more), tags("healthy"))
    findings = found(pipeline(SERVING), "endpoints", session)
    expected = [] if severity is None else [(severity, "stages.serve.endpoint_name", what)]
    assert [(each.severity, each.where, each.what) for each in findings] == expected


def test_an_endpoint_of_another_pipeline_is_told(aws: EmbeddedAws, found: Examine) -> None:
    session = Stubbed(aws, "sagemaker", described("InService"), tags("other"))
    [finding] = found(pipeline(SERVING), "endpoints", session)
    assert "endpoint shop exists, and pipeline other made it" in finding.what


@pytest.mark.parametrize(
    ("cron", "overlaps"),
    [("0 * * * *", False), ("*/30 * * * *", True), ("0 6 * * MON", False), ("0,50 6 * * *", True)],
)
def test_a_run_that_may_take_longer_than_the_time_to_the_next_is_found(
    found: Examine, cron: str, overlaps: bool
) -> None:
    scheduled = (NIGHTLY[0], NIGHTLY[1].replace("CRON", f'"{cron}"'))
    findings = found(pipeline(TRAINING, scheduled), "schedules")
    assert [each.where for each in findings] == (["schedule.cron"] if overlaps else [])


@pytest.mark.parametrize(
    ("overlap", "why"),
    [
        ("allow", "lets two runs pay side by side, share quotas, and deploy to the same endpoint"),
        ("queue", "lets the next run wait, so that it starts late"),
        ("skip", "ends the next run without doing anything"),
        ("stop_older", "stops the run before its end, and what it paid is lost"),
    ],
)
def test_runs_that_overlap_are_told_with_what_becomes_of_them(
    found: Examine, overlap: str, why: str
) -> None:
    often = f'overlap: {overlap}\nschedule: {{cron: "*/30 * * * *", timezone: UTC}}\nstages:'
    [finding] = found(pipeline(TRAINING, ("stages:", often)), "schedules")
    assert finding.why.startswith(f"overlap: {overlap} {why}")


def test_limits_of_stages_that_follow_each_other_add_up(found: Examine) -> None:
    after = "stages:\n  before:\n    kind: pause\n    duration_s: 600\n"
    scheduled = ("stages:\n", f'schedule: {{cron: "0 * * * *", timezone: UTC}}\n{after}')
    waiting = ("    kind: training_job\n", "    kind: training_job\n    after: [before]\n")
    [finding] = found(pipeline(TRAINING, scheduled, waiting), "schedules")
    assert "starts a run every 1 h, and a run may take 1.17 h" in finding.what


def test_the_connection_of_airflow_is_looked_up(
    found: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("airflow")
    [finding] = found(pipeline(), "connections", connection="aws_nobody")
    assert (finding.severity, finding.where) == ("may fail", "dag(aws_conn_id=…)")
    assert "Airflow has no connection aws_nobody" in finding.what
    for extra, kind, what in (
        ({"region_name": "us-east-1"}, "aws", None),
        ({"region_name": "eu-west-1"}, "aws", "is for eu-west-1, and runs are in us-east-1"),
        ({}, "http", "is of the type 'http'"),
    ):
        written = json.dumps({"conn_type": kind, "extra": extra})
        monkeypatch.setenv("AIRFLOW_CONN_AWS_OWN", written)
        findings = found(pipeline(), "connections", connection="aws_own")
        assert [what is not None and what in each.what for each in findings] == [True] * bool(what)
    monkeypatch.setenv(
        "AIRFLOW_CONN_AWS_OWN",
        json.dumps({"conn_type": "aws", "extra": {"region_name": "eu-west-1"}}),
    )
    placed = pipeline(TRAINING, ("name: healthy", "name: healthy\nregion: us-east-1"))
    assert found(placed, "connections", connection="aws_own") == []
