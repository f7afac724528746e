"""Schedules start what they name while time is moved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from orchestration.errors import LocalError
from orchestration.local import EmbeddedAws
from tests.local.breaking.hosting import endpoint, served
from tests.local.conftest import ROLE, prepare

pytestmark = pytest.mark.slow

PASSING = {"StartAt": "End", "States": {"End": {"Type": "Pass", "End": True}}}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.005) as embedded:
        yield embedded


@pytest.fixture(scope="module")
def machine(aws: EmbeddedAws) -> str:
    created = aws.client("stepfunctions").create_state_machine(
        name="nightly", definition=json.dumps(PASSING), roleArn=ROLE
    )
    return str(created["stateMachineArn"])


@pytest.fixture
def schedule(aws: EmbeddedAws, machine: str) -> Iterator[Any]:
    client, names = aws.client("scheduler"), []

    def make(name: str, expression: str, **more: Any) -> None:
        names.append(name)
        target = {"Arn": machine, "RoleArn": ROLE}
        target["Input"] = json.dumps({"of": name, "at": "<aws.scheduler.scheduled-time>"})
        client.create_schedule(
            Name=name,
            ScheduleExpression=expression,
            FlexibleTimeWindow={"Mode": "OFF"},
            Target=target,
            **more,
        )

    yield make
    for name in names:
        client.delete_schedule(Name=name)


def test_each_time_starts_an_execution_with_its_time(
    aws: EmbeddedAws, machine: str, schedule: Any
) -> None:
    schedule("mornings", "cron(30 6 ? * MON-FRI *)", ScheduleExpressionTimezone="Europe/Berlin")
    started = aws.pass_time(hours=7 * 24)
    assert len(started) == 5
    states = aws.client("stepfunctions")
    executions = states.list_executions(stateMachineArn=machine)["executions"]
    inputs = [
        json.loads(states.describe_execution(executionArn=each["executionArn"])["input"])
        for each in executions
    ]
    assert sorted(f"{each['of']} at {each['at']}" for each in inputs) == started
    # 6:30 in Berlin is 5:30 or 4:30 in UTC.
    assert {each["at"][-9:] for each in inputs} <= {"05:30:00Z", "04:30:00Z"}
    assert aws.pass_time(hours=0) == []


def test_rates_and_disabled_schedules(aws: EmbeddedAws, schedule: Any) -> None:
    schedule("sweep", "rate(2 hours)")
    schedule("off", "rate(1 hour)", State="DISABLED")
    aws.pass_time(hours=3)
    started = aws.pass_time(hours=6)
    assert {each.partition(" ")[0] for each in started} == {"sweep"}
    assert len(started) == 3


def test_bounds_and_single_times(aws: EmbeddedAws, schedule: Any) -> None:
    begin = datetime.now(tz=UTC).replace(minute=0, second=0, microsecond=0) + timedelta(days=30)
    local = begin.astimezone(ZoneInfo("Asia/Tokyo"))
    schedule("once", f"at({local:%Y-%m-%dT%H:%M:%S})", ScheduleExpressionTimezone="Asia/Tokyo")
    schedule("every", "rate(2 hours)", StartDate=begin, EndDate=begin + timedelta(hours=5))
    schedule("hourly", "cron(0 * * * ? *)", EndDate=begin - timedelta(days=29))
    assert {each.partition(" ")[0] for each in aws.pass_time(hours=48)} <= {"hourly"}
    started = aws.pass_time(hours=40 * 24)
    hours = [begin + timedelta(hours=each) for each in (0, 2, 4)]
    assert [each for each in started if "once" in each] == [f"once at {begin:%Y-%m-%dT%H:%M:%SZ}"]
    assert [each for each in started if "every" in each] == [
        f"every at {moment:%Y-%m-%dT%H:%M:%SZ}" for moment in hours
    ]


def test_too_many_starts_are_refused_before_the_first(aws: EmbeddedAws, schedule: Any) -> None:
    schedule("often", "rate(1 minute)")
    with pytest.raises(LocalError, match="move time by less"):
        aws.pass_time(hours=24 * 7)


def test_bounds_of_scaling_change_at_their_times(aws: EmbeddedAws) -> None:
    prepare(aws)
    name = endpoint(aws, served(aws), status="InService")
    target: dict[str, Any] = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{name}/variant/all",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling = aws.client("application-autoscaling")
    scaling.register_scalable_target(MinCapacity=1, MaxCapacity=2, **target)
    for action, hour, least, most in (("morning", 7, 4, 8), ("evening", 20, 1, 2)):
        scaling.put_scheduled_action(
            ScheduledActionName=action,
            Schedule=f"cron(0 {hour} * * ? *)",
            Timezone="Europe/Berlin",
            ScalableTargetAction={"MinCapacity": least, "MaxCapacity": most},
            **target,
        )
    seen: list[tuple[str, int]] = []
    for _ in range(24):
        for started in aws.pass_time(hours=2):
            described = aws.client("sagemaker").describe_endpoint(EndpointName=name)
            [variant] = described["ProductionVariants"]
            seen.append((started.split()[0], variant["CurrentInstanceCount"]))
    # One that comes first finds the endpoint as it was made.
    assert (("morning", 4), ("evening", 2)) in pairwise(seen)
    [bounds] = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    wanted = {"morning": (4, 8), "evening": (1, 2)}[seen[-1][0]]
    assert (bounds["MinCapacity"], bounds["MaxCapacity"]) == wanted
