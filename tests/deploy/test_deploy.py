"""Deployment against the embedded AWS: what it sends is what is looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline, Schedule
from orchestration.deploy import Deployment, apply, step_functions
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws, RecordedCall
from tests.deploy import pipelines
from tests.deploy.pipelines import PARAMETERS
from tests.patience import PATIENCE_S

_READS = ("Get", "Describe", "List", "Head")
NIGHTLY = Schedule(cron="30 6 * * 1-5", timezone="Europe/Berlin")


class Account:
    """The embedded AWS, and what deployments sent to it."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws = aws
        self._seen = 0

    def deploy(self, pipeline: Pipeline, **more: Any) -> Deployment:
        given = {"parameters": PARAMETERS, **more}
        return step_functions(pipeline, session=self.aws, sleep=_no_sleep, **given)

    def calls(self) -> list[RecordedCall]:
        """The calls since this was last asked."""
        every = self.aws.calls(include_jobs=True)
        new = every[self._seen :]
        self._seen = len(every)
        return new

    def writes(self) -> list[str]:
        return [c.operation for c in self.calls() if not c.operation.startswith(_READS)]


def _no_sleep(seconds: float) -> None:
    raise AssertionError(f"slept {seconds} s though every role is known at once here")


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as embedded:
        embedded.client("s3").create_bucket(Bucket=PARAMETERS["bucket"])
        yield embedded


@pytest.fixture
def account(aws: EmbeddedAws) -> Iterator[Account]:
    found = Account(aws)
    found.calls()
    yield found
    iam, states, scheduler = (aws.client(n) for n in ("iam", "stepfunctions", "scheduler"))
    for machine in states.list_state_machines()["stateMachines"]:
        states.delete_state_machine(stateMachineArn=machine["stateMachineArn"])
    events = aws.client("events")
    for rule in events.list_rules()["Rules"]:
        events.remove_targets(Rule=rule["Name"], Ids=["companion"])
        events.delete_rule(Name=rule["Name"])
    for schedule in scheduler.list_schedules()["Schedules"]:
        scheduler.delete_schedule(Name=schedule["Name"])
    s3 = aws.client("s3")
    for item in s3.list_objects_v2(Bucket=PARAMETERS["bucket"]).get("Contents", []):
        s3.delete_object(Bucket=PARAMETERS["bucket"], Key=item["Key"])
    for role in iam.list_roles()["Roles"]:
        for policy in iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]:
            iam.delete_role_policy(RoleName=role["RoleName"], PolicyName=policy)
        iam.delete_role(RoleName=role["RoleName"])


@pytest.fixture
def code(tmp_path: Path) -> Path:
    return pipelines.source_folder(tmp_path / "code")


def summaries(deployment: Deployment) -> list[str]:
    return [change.summary for change in deployment.changes]


def test_the_first_deployment_creates_everything(account: Account, code: Path) -> None:
    pipeline = pipelines.digits(code, schedule=NIGHTLY, tags={"team": "vision"})
    done = account.deploy(pipeline)
    assert {change.kind for change in done.changes} == {"create"}
    assert summaries(done)[1:] == [
        "create role digits-us-east-1-states",
        "create state machine digits",
        "create role digits-us-east-1-companion",
        "create state machine digits-companion",
        "create role digits-us-east-1-sweep",
        "create rule digits-companion",
        "create schedule digits-companion",
        "create role digits-us-east-1-schedule",
        "create schedule digits",
    ]
    machine = account.aws.client("stepfunctions").describe_state_machine(
        stateMachineArn=done.state_machine_arn
    )
    assert machine["type"] == "STANDARD"
    assert machine["roleArn"] == "arn:aws:iam::123456789012:role/digits-us-east-1-states"
    assert json.loads(machine["definition"]) == done.desired.machine.definition


def test_the_second_deployment_changes_nothing(account: Account, code: Path) -> None:
    pipeline = pipelines.digits(code, schedule=NIGHTLY)
    account.deploy(pipeline)
    account.calls()
    again = account.deploy(pipeline)
    assert again.changes == ()
    assert account.writes() == []


def test_a_companion_goes_when_nothing_is_left_to_clean_up(account: Account, code: Path) -> None:
    account.deploy(pipelines.digits(code, name="copying"))
    done = account.deploy(pipelines.copying())
    assert [change.summary for change in done.changes if change.kind == "delete"] == [
        "delete schedule copying-companion",
        "delete rule copying-companion",
        "delete role copying-us-east-1-sweep",
        "delete state machine copying-companion",
        "delete role copying-us-east-1-companion",
    ]
    assert account.deploy(pipelines.copying()).changes == ()


def test_a_rule_changed_by_hand_is_a_change(account: Account, code: Path) -> None:
    pipeline = pipelines.digits(code)
    account.deploy(pipeline)
    account.aws.client("events").disable_rule(Name="digits-companion")
    done = account.deploy(pipeline, sweep_every_h=6)
    assert summaries(done) == [
        "update rule digits-companion: state",
        "update schedule digits-companion: expression",
    ]
    assert account.deploy(pipeline, sweep_every_h=6).changes == ()


def test_another_pipelines_companion_is_left_alone(account: Account, code: Path) -> None:
    """A pipeline without one, and one of the name that its companion would have."""
    account.deploy(pipelines.digits(code, name="copying-companion", schedule=NIGHTLY))
    done = account.deploy(pipelines.copying())
    assert {change.kind for change in done.changes} == {"create"}
    with pytest.raises(DeployError, match="state machine copying-companion exists"):
        account.deploy(pipelines.digits(code, name="copying"))


def test_a_dry_run_changes_nothing_and_shows_everything(account: Account, code: Path) -> None:
    planned = account.deploy(pipelines.digits(code, schedule=NIGHTLY), dry_run=True)
    assert account.writes() == []
    assert [change.resource for change in planned.changes] == [
        "source",
        "role",
        "state machine",
        "role",
        "state machine",
        "role",
        "rule",
        "schedule",
        "role",
        "schedule",
    ]
    assert '+    "StartAt"' in planned.changes[2].detail


def test_a_dry_run_plans_what_a_deployment_does(account: Account, code: Path) -> None:
    pipeline = pipelines.digits(code, schedule=NIGHTLY, name="digits-again")
    planned = account.deploy(pipeline, dry_run=True)
    assert account.deploy(pipeline).changes == planned.changes


def test_a_changed_description_updates_only_what_changed(account: Account) -> None:
    account.deploy(pipelines.copying())
    account.calls()
    done = account.deploy(pipelines.copying(description="Another one."))
    assert summaries(done) == ["update state machine copying: definition"]
    assert account.writes() == ["PublishStateMachineVersion", "UpdateStateMachine"]
    assert "+" in done.changes[0].detail
    assert "Another one." in done.changes[0].detail


def test_a_changed_bucket_updates_only_the_role(account: Account) -> None:
    account.deploy(pipelines.copying())
    account.calls()
    changed = {**PARAMETERS, "data": "s3://elsewhere/set"}
    done = account.deploy(pipelines.copying(), parameters=changed)
    assert summaries(done) == ["update role copying-us-east-1-states: permissions"]
    assert account.writes() == ["PutRolePolicy"]
    assert '-          "arn:aws:s3:::incoming/set/*"' in done.changes[0].detail
    assert '+          "arn:aws:s3:::elsewhere/set/*"' in done.changes[0].detail


def test_changed_tags_are_set_and_those_of_others_stay(account: Account) -> None:
    done = account.deploy(pipelines.copying(tags={"team": "vision"}))
    states = account.aws.client("stepfunctions")
    arn = done.state_machine_arn
    states.tag_resource(resourceArn=arn, tags=[{"key": "billing", "value": "42"}])
    assert account.deploy(pipelines.copying(tags={"team": "vision"})).changes == ()
    account.calls()
    done = account.deploy(pipelines.copying(tags={"team": "speech"}))
    # The definition holds the pipeline's file, in which the tags stand.
    assert account.writes() == ["TagRole", "UpdateStateMachine", "TagResource"]
    tags = {t["key"]: t["value"] for t in states.list_tags_for_resource(resourceArn=arn)["tags"]}
    assert tags == {"team": "speech", "billing": "42", "orchestration:pipeline": "copying"}


def test_what_someone_changed_by_hand_is_mended(account: Account) -> None:
    done = account.deploy(pipelines.copying())
    account.aws.client("iam").put_role_policy(
        RoleName=done.desired.role.name,
        PolicyName="orchestration",
        PolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
            }
        ),
    )
    assert summaries(account.deploy(pipelines.copying())) == [
        "update role copying-us-east-1-states: permissions"
    ]
    assert account.deploy(pipelines.copying()).changes == ()


def test_a_schedule_starts_runs_with_all_they_need(account: Account) -> None:
    nightly = Schedule(
        cron="30 6 * * 1-5", timezone="Europe/Berlin", parameters={"data": "s3://n/s"}
    )
    account.deploy(pipelines.copying(schedule=nightly))
    found = account.aws.client("scheduler").get_schedule(Name="copying")
    assert found["ScheduleExpression"] == "cron(30 6 ? * MON-FRI *)"
    assert found["ScheduleExpressionTimezone"] == "Europe/Berlin"
    assert found["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert found["State"] == "ENABLED"
    assert json.loads(found["Target"]["Input"]) == {
        **PARAMETERS,
        "data": "s3://n/s",
        "orchestration:run": "copying/<aws.scheduler.scheduled-time>",
    }
    assert found["Target"]["Arn"].endswith(":stateMachine:copying")
    starter = account.aws.client("iam").get_role_policy(
        RoleName="copying-us-east-1-schedule", PolicyName="orchestration"
    )["PolicyDocument"]["Statement"]
    assert [s["Action"] for s in starter] == [["states:StartExecution"]]
    assert [s["Resource"] for s in starter] == [[found["Target"]["Arn"]]]


def test_scheduled_runs_may_do_what_runs_by_hand_may(account: Account) -> None:
    nightly = Schedule(cron="0 6 * * *", parameters={"data": "s3://nightly/set"})
    done = account.deploy(pipelines.copying(schedule=nightly), dry_run=True)
    reads = [
        r
        for s in done.desired.role.policy["Statement"]
        if "s3:GetObject" in s["Action"]
        for r in s["Resource"]
    ]
    assert reads == ["arn:aws:s3:::incoming/set/*", "arn:aws:s3:::nightly/set/*"]


def test_a_schedule_that_is_gone_from_the_description_is_removed(account: Account) -> None:
    account.deploy(pipelines.copying(schedule=NIGHTLY, overlap="allow"))
    account.calls()
    done = account.deploy(pipelines.copying())
    assert summaries(done) == [
        "update state machine copying: definition",
        "delete schedule copying",
        "delete role copying-us-east-1-schedule",
    ]
    assert account.writes() == [
        *("UpdateStateMachine", "DeleteSchedule", "DeleteRolePolicy", "DeleteRole")
    ]
    assert account.deploy(pipelines.copying()).changes == ()


def test_a_schedule_that_starts_something_else_is_left_alone(account: Account) -> None:
    account.aws.client("scheduler").create_schedule(
        Name="copying",
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={
            "Arn": "arn:aws:states:us-east-1:123456789012:stateMachine:other",
            "RoleArn": "arn:aws:iam::123456789012:role/other",
        },
    )
    account.calls()
    with pytest.raises(DeployError, match="schedule copying exists and starts"):
        account.deploy(pipelines.copying())
    assert account.writes() == []


def test_a_state_machine_and_a_role_of_someone_else_are_left_alone(account: Account) -> None:
    account.aws.client("iam").create_role(
        RoleName="stranger-us-east-1-states", AssumeRolePolicyDocument="{}"
    )
    account.aws.client("stepfunctions").create_state_machine(
        name="stranger",
        definition='{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}',
        roleArn="arn:aws:iam::123456789012:role/other",
    )
    account.calls()
    with pytest.raises(DeployError) as caught:
        account.deploy(pipelines.copying(name="stranger"))
    assert "state machine stranger exists" in str(caught.value)
    assert "role stranger-us-east-1-states exists" in str(caught.value)
    assert account.writes() == []


def test_a_deployment_that_broke_off_is_finished_by_the_next(account: Account) -> None:
    planned = account.deploy(pipelines.copying(), dry_run=True)
    account.deploy(pipelines.copying())
    # As if the first had lost its answers: the same plan meets what it has made, and what someone
    # has changed since.
    _trust_anyone(account, planned)
    apply(planned.changes, account.aws, sleep=_no_sleep)
    assert account.deploy(pipelines.copying()).changes == ()


def test_a_trust_that_someone_changed_is_mended(account: Account) -> None:
    _trust_anyone(account, account.deploy(pipelines.copying()))
    account.calls()
    done = account.deploy(pipelines.copying())
    assert summaries(done) == ["update role copying-us-east-1-states: trust"]
    assert account.writes() == ["UpdateAssumeRolePolicy"]
    assert account.deploy(pipelines.copying()).changes == ()


def _trust_anyone(account: Account, deployment: Deployment) -> None:
    anyone = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    account.aws.client("iam").update_assume_role_policy(
        RoleName=deployment.desired.role.name,
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [anyone]}),
    )


def test_the_role_trusts_step_functions_of_its_own_account_only(account: Account) -> None:
    done = account.deploy(pipelines.copying())
    role = account.aws.client("iam").get_role(RoleName=done.desired.role.name)["Role"]
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "states.amazonaws.com"}
    assert trust["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "123456789012"},
        "ArnLike": {"aws:SourceArn": done.state_machine_arn},
    }


def test_missing_values_are_all_named_before_anything_is_asked_of_aws(account: Account) -> None:
    with pytest.raises(DeployError) as caught:
        account.deploy(pipelines.copying(schedule=NIGHTLY), parameters={})
    assert account.writes() == []
    for name in ("bucket", "data"):
        assert f"parameter '{name}' has no value" in str(caught.value)
    assert "parameter 'role'" not in str(caught.value)


def test_a_value_that_the_schedule_would_not_give_its_runs_is_refused(account: Account) -> None:
    timed = {"cron": "0 6 * * *", "time_parameter": "data"}
    with pytest.raises(DeployError, match="parameter 'data' is the time of a scheduled run"):
        account.deploy(pipelines.copying(schedule=timed))
    given = {name: value for name, value in PARAMETERS.items() if name != "data"}
    assert account.deploy(pipelines.copying(schedule=timed), parameters=given, dry_run=True).changes
    # Runs that an event starts have no such time.
    event = {"trigger": {"s3": {"bucket": "incoming"}}, "overlap": "allow"}
    both = pipelines.copying(schedule=timed, **event)
    assert account.deploy(both, dry_run=True).changes


def test_a_parameter_may_be_left_unrestricted(account: Account) -> None:
    given = {"bucket": "workspace", "role": PARAMETERS["role"]}
    done = account.deploy(
        pipelines.copying(), parameters=given, unrestricted=["data"], dry_run=True
    )
    reads = [s for s in done.desired.role.policy["Statement"] if s["Sid"] == "ReadObjects"]
    assert [s["Resource"] for s in reads] == [["arn:aws:s3:::*/*"]]


def test_the_roles_name_can_be_chosen(account: Account) -> None:
    done = account.deploy(pipelines.copying(), role_name="platform-copying")
    assert done.desired.machine.role_arn.endswith(":role/platform-copying")
    assert account.deploy(pipelines.copying(), role_name="platform-copying").changes == ()


def test_a_deployed_pipeline_runs_within_its_permissions(account: Account) -> None:
    from tests.deploy.permissions.policy import denied

    done = account.deploy(pipelines.copying())
    s3, states = account.aws.client("s3"), account.aws.client("stepfunctions")
    s3.create_bucket(Bucket="incoming")
    for key in ("set/one.csv", "set/deep/two.csv"):
        s3.put_object(Bucket="incoming", Key=key, Body=b"x")
    account.calls()
    started = states.start_execution(
        stateMachineArn=done.state_machine_arn, name="law", input=json.dumps(PARAMETERS)
    )
    _succeeds(states, started["executionArn"])
    calls = [call for call in account.calls() if call.origin == "step-functions"]
    assert {call.operation for call in calls} == {"ListObjectsV2", "CopyObject", "HeadObject"}
    for call in calls:
        assert (
            denied(
                done.desired.role.policy,
                call.service,
                call.operation,
                call.request,
                done.account.id,
                done.account.region,
            )
            == []
        )


def _succeeds(states: Any, arn: str) -> None:
    import time

    end = time.monotonic() + PATIENCE_S
    while (found := states.describe_execution(executionArn=arn))["status"] == "RUNNING":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert found["status"] == "SUCCEEDED", found
