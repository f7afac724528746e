"""A deployment starts the runs that a new schedule has missed, and each of them once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestration import Parameter, Pipeline
from orchestration.deploy import plan, step_functions
from orchestration.errors import DeployError, StartError
from orchestration.local import EmbeddedAws
from tests.deploy import pipelines
from tests.deploy.pipelines import ACCOUNT
from tests.deploy.test_deployer import ARN, allow, deployer
from tests.deploy.test_destroying import CutOff, Cutting
from tests.local.conftest import wait

pytestmark = pytest.mark.slow  # starts the embedded AWS

GIVEN = {"bucket": "workspace", "data": "s3://incoming/set"}
MONTH = datetime.now(tz=UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def back(months: int) -> datetime:
    """The beginning of a month that is over."""
    years, month = divmod(MONTH.year * 12 + MONTH.month - 1 - months, 12)
    return MONTH.replace(year=years, month=month + 1)


TIMES = [back(3), back(2), back(1), back(0)]


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.005) as embedded:
        yield embedded


def monthly(name: str, *, months: int = 3, **fields: Any) -> Pipeline:
    """A pipeline that should have run at the beginning of so many months, and of this one."""
    schedule = {
        "cron": "0 0 1 * *",
        "start": f"{back(months):%Y-%m-%dT%H:%M}",
        "catchup": True,
        "time_parameter": "until",
        "parameters": {"data": "s3://monthly/set"},
    }
    given: dict[str, Any] = {
        "name": name,
        "schedule": schedule,
        "parameters": {"bucket": Parameter(), "data": Parameter(), "until": Parameter()},
    }
    return pipelines.resting(**{**given, **fields})


def inputs(aws: EmbeddedAws, name: str) -> list[dict[str, Any]]:
    """What the executions were started with, in the order of their times."""
    states = aws.client("stepfunctions")
    arn = ACCOUNT.arn("states", f"stateMachine:{name}")
    found = states.list_executions(stateMachineArn=arn)["executions"]
    described = (states.describe_execution(executionArn=each["executionArn"]) for each in found)
    given = (json.loads(each["input"]) for each in described)
    return sorted(given, key=lambda each: str(each["until"]))


def text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def wanted(name: str) -> list[dict[str, Any]]:
    """The inputs that EventBridge Scheduler would have given them."""
    return [
        {
            "bucket": "workspace",
            "data": "s3://monthly/set",
            "until": text(each),
            "orchestration:run": f"{name}/{text(each)}",
        }
        for each in TIMES
    ]


def deploy(aws: Any, pipeline: Pipeline, **more: Any) -> list[str]:
    """Deploy, and return the changes that were made."""
    made = step_functions(
        pipeline, session=aws, parameters=GIVEN, sleep=lambda _: None, **more
    ).changes
    return [each.summary for each in made]


@pytest.mark.parametrize("overlap", ["queue", "allow"])
def test_what_a_new_schedule_has_missed_is_started_before_it_is_made(
    aws: EmbeddedAws, overlap: str
) -> None:
    name = f"monthly-{overlap}"
    pipeline = monthly(name, overlap=overlap)
    made = deploy(aws, pipeline)
    runs = f"create runs for 4 times of {name} that were missed"
    assert made.index(runs) == made.index(f"create schedule {name}") - 2  # Behind its role.
    assert inputs(aws, name) == wanted(name)
    assert deploy(aws, pipeline) == []
    moved = pipeline.schedule.model_copy(update={"cron": "30 0 1 * *"})  # type: ignore[union-attr]
    later = pipeline.model_copy(update={"schedule": moved})
    assert deploy(aws, later)[-1] == f"update schedule {name}: expression, catch-up"
    assert deploy(aws, later) == []
    assert len(inputs(aws, name)) == 4


def test_what_ran_under_an_earlier_schedule_is_not_started_again(aws: EmbeddedAws) -> None:
    pipeline = monthly("resumed")
    deploy(aws, pipeline.model_copy(update={"schedule": None}))
    # EventBridge Scheduler names executions at random.
    aws.client("stepfunctions").start_execution(
        stateMachineArn=ACCOUNT.arn("states", "stateMachine:resumed"),
        input=json.dumps(wanted("resumed")[1]),
    )
    assert "create runs for 3 times of resumed that were missed" in deploy(aws, pipeline)
    assert inputs(aws, "resumed") == wanted("resumed")


def test_nothing_is_started_where_nobody_wants_it(aws: EmbeddedAws) -> None:
    pipeline = monthly("declined")
    assert not [each for each in deploy(aws, pipeline, catch_up=False) if "runs for" in each]
    assert deploy(aws, pipeline) == []  # Declined once, declined for good.
    assert inputs(aws, "declined") == []
    plain = pipeline.schedule.model_copy(update={"catchup": False})  # type: ignore[union-attr]
    deploy(aws, monthly("plain", schedule=plain))
    assert inputs(aws, "plain") == []


def test_a_new_name_takes_its_times_over(aws: EmbeddedAws) -> None:
    deploy(aws, monthly("earlier"), catch_up=False)
    deploy(aws, monthly("later"), renamed_from="earlier")
    assert inputs(aws, "later") == []


@pytest.mark.parametrize(("overlap", "most"), [("queue", 200), ("allow", 16)])
def test_too_many_are_refused_before_anything_is_changed(
    aws: EmbeddedAws, overlap: str, most: int
) -> None:
    pipeline = monthly(f"many-{overlap}", months=most, overlap=overlap)
    refused = f"{most + 1} times since .* with overlap: {overlap} a deployment starts {most} at"
    with pytest.raises(DeployError, match=refused):
        deploy(aws, pipeline)
    assert plan(pipeline, session=aws, parameters=GIVEN).deployment.changes != ()
    assert deploy(aws, pipeline, catch_up=False) != []


def test_cut_off_anywhere_each_run_is_started_once(aws: EmbeddedAws) -> None:
    pipeline = monthly("cut")
    cutting, last = Cutting(aws), []
    try:
        for calls in itertools.count(1):
            cutting.cuts = frozenset([len(cutting.made) + calls])
            try:
                deploy(cutting, pipeline)
            except CutOff:
                last.append(cutting.made[-1])
            else:
                break
    finally:
        cutting.release()
    assert "StartExecution" in last
    assert inputs(aws, "cut") == wanted("cut")
    assert deploy(aws, pipeline) == []


class Late(datetime):
    """A clock that is late, so that times fall between what it says and the account's own."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) - timedelta(seconds=150)


def minutely(name: str) -> Pipeline:
    """A pipeline that should have run every minute for some minutes."""
    start = datetime.now(tz=UTC).replace(second=0, microsecond=0) - timedelta(minutes=9)
    schedule = {
        "cron": "* * * * *",
        "start": f"{start:%Y-%m-%dT%H:%M}",
        "catchup": True,
        "time_parameter": "until",
        "parameters": {"data": "s3://monthly/set"},
    }
    return monthly(name, schedule=schedule, overlap="allow")


def test_times_while_the_schedule_is_made_have_their_runs_wherever_it_is_cut_off(
    aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, lost = [], 0
    for calls in itertools.count(1):
        pipeline, cutting = minutely(f"minutely-{calls}"), Cutting(aws, cuts=frozenset([calls]))
        begin = datetime.fromisoformat(f"{pipeline.schedule.start}Z")  # type: ignore[union-attr]
        try:
            deploy_late(cutting, pipeline, monkeypatch)
        except CutOff:
            last.append(cutting.made[-1])
        else:
            break
        finally:
            cutting.release()
        before = runs_of(aws, pipeline.name)
        deploy(aws, pipeline)
        found = runs_of(aws, pipeline.name)
        described = aws.client("scheduler").get_schedule(Name=pipeline.name)
        needed = {text(each) for each in minutes(begin, described["CreationDate"])}
        assert needed <= {*found}
        assert len(found) == len({*found})
        assert {*found} <= {text(each) for each in minutes(begin, datetime.now(tz=UTC))}
        assert deploy(aws, pipeline) == []
        lost += last[-1] == "CreateSchedule" and len(found) > len(before)
    assert lost


def deploy_late(aws: Any, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deploy a schedule that is there minutes after its times were looked for."""
    with monkeypatch.context() as late:
        late.setattr("orchestration.deploy.datetime", Late)
        late.setattr("orchestration.deploy.applying.changes.datetime", Late)
        deploy(aws, pipeline)


def before_made(aws: EmbeddedAws, name: str) -> list[str]:
    """The runs for times before the schedule was made."""
    made = aws.client("scheduler").get_schedule(Name=name)["CreationDate"]
    return [each for each in runs_of(aws, name) if each < text(made)]


@pytest.mark.parametrize(
    ("former", "then"),
    [
        ({"cron": "30 0 1 1 *"}, {"cron": "* * * * *"}),
        ({"rate": "2 minutes"}, {"rate": "2 minutes"}),
    ],
    ids=["cron", "rate"],
)
def test_a_changed_schedule_has_missed_nothing_while_the_former_was_made(
    aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch, former: Any, then: Any
) -> None:
    name = f"changed-{'-'.join(former)}"
    now = datetime.now(tz=UTC)
    given = {
        "start": f"{now - timedelta(minutes=9):%Y-%m-%dT%H:%M}",
        "catchup": True,
        "time_parameter": "until",
        "parameters": {"data": "s3://monthly/set"},
    }
    deploy_late(aws, monthly(name, schedule={**given, **former}, overlap="allow"), monkeypatch)
    before = before_made(aws, name)
    given["start"] = f"{now - timedelta(minutes=10):%Y-%m-%dT%H:%M}"
    changed = monthly(name, schedule={**given, **then}, overlap="allow")
    assert "catch-up" in deploy(aws, changed)[-1]
    assert deploy(aws, changed) == []
    assert before_made(aws, name) == before


def test_with_another_state_machine_nothing_is_started_again(
    aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = minutely("replaced")
    deploy_late(aws, pipeline, monkeypatch)
    assert any("runs for" in each for each in deploy(aws, pipeline))
    arn = ACCOUNT.arn("states", "stateMachine:replaced")
    aws.client("stepfunctions").delete_state_machine(stateMachineArn=arn)
    wait(lambda: runs_of(aws, "replaced"), lambda found: not found)
    made = deploy(aws, pipeline)
    assert "create state machine replaced" in made
    assert made[-1] == "update schedule replaced: catch-up"
    assert deploy(aws, pipeline) == []
    assert before_made(aws, "replaced") == []


def minutes(begin: datetime, end: datetime) -> Iterator[datetime]:
    while begin < end:
        yield begin
        begin += timedelta(minutes=1)


def runs_of(aws: EmbeddedAws, name: str) -> list[str]:
    """The times that have runs."""
    try:
        return [each["until"] for each in inputs(aws, name)]
    except aws.client("stepfunctions").exceptions.StateMachineDoesNotExist:
        return []


def test_runs_that_wait_for_each_other_go_one_at_a_time_the_oldest_first(aws: EmbeddedAws) -> None:
    deploy(aws, monthly("queued", overlap="queue"))
    states = aws.client("stepfunctions")
    arn = ACCOUNT.arn("states", "stateMachine:queued")
    wait(
        lambda: states.list_executions(stateMachineArn=arn, statusFilter="RUNNING")["executions"],
        lambda running: not running,
    )
    found = states.list_executions(stateMachineArn=arn)["executions"]
    spans = sorted(span(states, each["executionArn"]) for each in found)
    assert [run for run, _, _ in spans] == [each["orchestration:run"] for each in wanted("queued")]
    for (_, _, ended), (_, begun, _) in itertools.pairwise(spans):
        assert ended <= begun


def span(states: Any, arn: str) -> tuple[str, datetime, datetime]:
    """The run of an execution, when its first stage began, and when it ended."""
    pages = states.get_paginator("get_execution_history").paginate(executionArn=arn)
    events = [event for page in pages for event in page["events"]]
    details = "stateEnteredEventDetails"
    [begun] = [e["timestamp"] for e in events if e.get(details, {}).get("name") == "rest-wait"]
    given = json.loads(events[0]["executionStartedEventDetails"]["input"])
    return given["orchestration:run"], begun, events[-1]["timestamp"]


def test_whoever_deploys_needs_to_find_and_to_start_the_runs() -> None:
    pipeline = monthly("least")
    policy = deployer(pipeline).policy
    with EmbeddedAws(enforce_iam=True, time_scale=0.005) as aws:
        aws.provide(roles=[ARN])
        session = aws.acting_as(ARN)
        deploy(aws, pipeline.model_copy(update={"schedule": None}))
        begun = ACCOUNT.arn("states", "stateMachine:least")
        aws.client("stepfunctions").start_execution(
            stateMachineArn=begun, input=json.dumps(wanted("least")[0])
        )
        for action in ("states:DescribeExecution", "states:StartExecution"):
            allow(aws, denying(policy, action))
            with pytest.raises(
                (DeployError, StartError), match=f"not authorized to perform: {action}"
            ):
                deploy(session, pipeline)
        allow(aws, policy)
        assert "create schedule least" in deploy(session, pipeline)
        assert inputs(aws, "least") == wanted("least")


def denying(policy: dict[str, Any], action: str) -> dict[str, Any]:
    """A policy with an explicit denial of one action."""
    denied = {"Effect": "Deny", "Action": action, "Resource": "*"}
    return {**policy, "Statement": [*policy["Statement"], denied]}
