"""Runs are started by an alias, which leads to the version that was deployed last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from orchestration import Pipeline
from orchestration.cleanup import MACHINE as OF_MACHINE
from orchestration.deploy import (
    Deployment,
    destruction,
    plan,
    promotion,
    readable,
    rerun,
    rollback,
    step_functions,
)
from orchestration.deploy.aliases.model import ALIAS
from orchestration.deploy.executions import start, stop
from orchestration.errors import DeployError, PipelineError, StartError
from orchestration.importing import Imported, from_data
from orchestration.local import EmbeddedAws
from tests.deploy import pipelines
from tests.deploy.pipelines import ACCOUNT, SLEEPING, short_pause
from tests.deploy.test_destroying import CutOff, Cutting
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow  # starts the embedded AWS

MACHINE = ACCOUNT.arn("states", "stateMachine:copying")
PARAMETERS = {"bucket": "workspace", "role": ROLE}
Asked: TypeAlias = str | dict[str, Any] | None
CANARY = {"name": "live", "canary": {"percent": 10, "minutes": 30}}
STARTER = "copying-us-east-1-schedule"
NIGHTLY = {"cron": "30 6 * * *"}
OBJECTS = {"s3": {"bucket": "incoming"}, "parameters": {"data": {"event": "object_uri"}}}


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003, enforce_iam=True) as aws:
        s3 = aws.client("s3")
        for bucket in ("workspace", "incoming"):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket="incoming", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        aws.provide(roles=[ROLE])
        yield aws


@pytest.fixture
def aws(embedded: EmbeddedAws) -> Iterator[EmbeddedAws]:
    yield embedded
    destruction("copying", session=embedded).apply(stop=True, sleep=short_pause)


def pipeline(description: str, alias: Asked = "live", **fields: Any) -> Pipeline:
    asked = {"name": alias} if isinstance(alias, str) else alias
    options = {} if asked is None else {"step_functions": {"alias": asked}}
    return pipelines.copying(description=description, **options, **fields)


def deploy(session: Any, description: str, alias: Asked = "live", **fields: Any) -> Deployment:
    made = pipeline(description, alias, **fields)
    given = {**PARAMETERS, "data": "s3://incoming/set"}
    return step_functions(made, session=session, parameters=given, sleep=lambda _: None)


def summaries(deployment: Deployment) -> list[str]:
    kinds = ("alias", "state machine", "schedule", "rule")
    return [each.summary for each in deployment.changes if each.resource in kinds]


def routes(aws: EmbeddedAws) -> dict[str, dict[int, int]]:
    """Each alias of the state machine: versions and their weights."""
    states = aws.client("stepfunctions")
    listed = states.list_state_machine_aliases(stateMachineArn=MACHINE)["stateMachineAliases"]
    found = {}
    for each in listed:
        alias = states.describe_state_machine_alias(
            stateMachineAliasArn=each["stateMachineAliasArn"]
        )
        found[alias["name"]] = {
            int(route["stateMachineVersionArn"].rpartition(":")[2]): route["weight"]
            for route in alias["routingConfiguration"]
        }
    return found


def tags(aws: EmbeddedAws) -> dict[str, str]:
    listed = aws.client("stepfunctions").list_tags_for_resource(resourceArn=MACHINE)["tags"]
    return {tag["key"]: tag["value"] for tag in listed}


def target(aws: EmbeddedAws) -> str:
    return str(aws.client("scheduler").get_schedule(Name="copying")["Target"]["Arn"])


def test_each_deployment_moves_the_alias_to_its_version(aws: EmbeddedAws) -> None:
    first = deploy(aws, "First.", schedule=NIGHTLY)
    assert summaries(first) == [
        "create state machine copying",
        "create alias live",
        "create schedule copying",
    ]
    assert (routes(aws), target(aws)) == ({"live": {1: 100}}, f"{MACHINE}:live")
    assert first.state_machine_arn == f"{MACHINE}:live"
    assert deploy(aws, "First.", schedule=NIGHTLY).changes == ()
    second = deploy(aws, "Second.", schedule=NIGHTLY)
    assert summaries(second) == [
        "update state machine copying: definition",
        "update alias live: weights",
    ]
    assert readable(second.changes[-1]) == [
        "- weights.version 1: 100",
        "+ weights.the new version: 100",
    ]
    assert routes(aws) == {"live": {2: 100}}
    gone = destruction("copying", session=aws)
    assert [each.name for each in gone.changes if each.resource in ("alias", "schedule")] == [
        "copying",
        "live",
    ]


def test_another_name_moves_what_starts_runs_and_none_removes_the_alias(aws: EmbeddedAws) -> None:
    deploy(aws, "First.", schedule=NIGHTLY)
    renamed = deploy(aws, "First.", "prod", schedule=NIGHTLY)
    assert summaries(renamed) == [
        "update state machine copying: definition, tags",
        "create alias prod",
        "update schedule copying: target",
        "delete alias live",
    ]
    assert (routes(aws), target(aws)) == ({"prod": {1: 100}}, f"{MACHINE}:prod")
    removed = deploy(aws, "First.", None, schedule=NIGHTLY)
    assert summaries(removed)[-2:] == ["update schedule copying: target", "delete alias prod"]
    assert (routes(aws), target(aws), ALIAS in tags(aws)) == ({}, MACHINE, False)
    assert deploy(aws, "First.", None, schedule=NIGHTLY).changes == ()


def test_another_name_goes_on_with_a_trial_and_knows_the_way_back(aws: EmbeddedAws) -> None:
    deploy(aws, "First.", CANARY)
    deploy(aws, "Second.", CANARY)
    deploy(aws, "Second.", {**CANARY, "name": "prod"})
    assert routes(aws) == {"prod": {1: 90, 2: 10}}
    deploy(aws, "Second.", "orders")
    assert routes(aws) == {"orders": {2: 100}}
    rollback("copying", session=aws).apply()
    assert routes(aws) == {"orders": {1: 100}}


def test_an_alias_that_is_cut_off_at_each_call_is_finished_by_the_next_deployment(
    aws: EmbeddedAws,
) -> None:
    cutting = Cutting(aws)
    rows: tuple[tuple[str, Asked, dict[str, dict[int, int]]], ...] = (
        ("First.", "live", {"live": {1: 100}}),
        ("Second.", CANARY, {"live": {1: 90, 2: 10}}),
        ("Third.", "prod", {"prod": {3: 100}}),
        ("Third.", None, {}),
    )
    for description, alias, expected in rows:
        for _ in range(30):
            try:
                deploy(cutting, description, alias, schedule=NIGHTLY)
            except CutOff:
                continue
            break
        assert routes(aws) == expected
        assert target(aws) == ":".join([MACHINE, *expected])
    cutting.release()
    assert ALIAS not in tags(aws)
    aliased = [call for call in cutting.made if call.endswith("Alias")]
    assert aliased == [
        "CreateStateMachineAlias",
        "UpdateStateMachineAlias",
        "CreateStateMachineAlias",
        "DeleteStateMachineAlias",
        "DeleteStateMachineAlias",
    ]


def test_a_rollback_leads_the_alias_back_until_the_next_deployment(aws: EmbeddedAws) -> None:
    for description in ("First.", "Second.", "Third."):
        deploy(aws, description)
    for expected in (2, 1):
        found = rollback("copying", session=aws)
        assert found.change.summary == "update alias live: weights"
        found.apply()
        assert routes(aws) == {"live": {expected: 100}}
    with pytest.raises(DeployError, match="version 1 is the oldest of copying that is kept"):
        rollback("copying", session=aws)
    begun = start(pipeline("Third."), {**PARAMETERS, "data": "s3://incoming/set"}, session=aws)
    assert comment(aws, begun.arn).startswith("First.")
    assert summaries(deploy(aws, "Third.")) == ["update alias live: weights"]
    assert routes(aws) == {"live": {3: 100}}
    rollback("copying", session=aws, version=1).apply()
    assert routes(aws) == {"live": {1: 100}}


def test_a_rollback_leads_to_no_version_that_was_tried_in_vain(aws: EmbeddedAws) -> None:
    for description in ("First.", "Second."):
        deploy(aws, description, CANARY)
    rollback("copying", session=aws).apply()
    for description in ("Third.", "Fourth."):
        deploy(aws, description)
    for expected in (3, 1):
        rollback("copying", session=aws).apply()
        assert routes(aws) == {"live": {expected: 100}}
    with pytest.raises(DeployError, match="version 1 is the oldest of copying that is kept"):
        rollback("copying", session=aws)
    # What was promoted leads back to what was known to work, and a version named to what was there.
    deploy(aws, "Fifth.", CANARY)
    assert routes(aws) == {"live": {1: 90, 5: 10}}
    promotion("copying", session=aws).apply(force=True)
    assert rollback("copying", session=aws).version == 1
    rollback("copying", session=aws, version=3).apply()
    rollback("copying", session=aws, version=4).apply()
    assert rollback("copying", session=aws).version == 3
    assert deploy(aws, "Fifth.").changes[-1].aspects == ("weights", "description")
    assert deploy(aws, "Fifth.").changes == ()


def test_what_was_looked_at_before_somebody_else_deployed_is_refused(aws: EmbeddedAws) -> None:
    for description in ("First.", "Second."):
        deploy(aws, description, CANARY)
    promoted, back = promotion("copying", session=aws), rollback("copying", session=aws)
    deploy(aws, "Third.", CANARY)
    moved = "alias live leads to other versions than a moment ago"
    with pytest.raises(DeployError, match=moved):
        promoted.apply(force=True)
    with pytest.raises(DeployError, match=moved):
        back.apply()
    assert routes(aws) == {"live": {1: 90, 3: 10}}


def test_a_new_version_gets_some_of_the_runs_until_it_is_promoted(aws: EmbeddedAws) -> None:
    assert summaries(deploy(aws, "First.", CANARY))[-1] == "create alias live"
    assert routes(aws) == {"live": {1: 100}}
    tried = deploy(aws, "Second.", CANARY)
    assert readable(tried.changes[-1]) == [
        "~ weights.version 1: 100 -> 90",
        "+ weights.the new version: 10",
    ]
    assert routes(aws) == {"live": {1: 90, 2: 10}}
    assert deploy(aws, "Second.", CANARY).changes == ()
    found = promotion("copying", session=aws)
    assert found.obstacles == (
        "its trial takes 30 minutes, of which 30 are left; wait, or pass --force",
    )
    with pytest.raises(DeployError, match="version 2 can't get all runs yet: its trial takes 30"):
        found.apply()
    late = datetime.now(tz=UTC) + timedelta(minutes=29, seconds=30)
    assert promotion("copying", session=aws, now=late).obstacles == (
        "its trial takes 30 minutes, of which 1 is left; wait, or pass --force",
    )
    promotion("copying", session=aws, now=datetime.now(tz=UTC) + timedelta(minutes=31)).apply()
    assert routes(aws) == {"live": {2: 100}}
    assert promotion("copying", session=aws).change.aspects == ()
    assert deploy(aws, "Second.", CANARY).changes == ()


def test_a_new_version_gets_more_of_the_runs_step_by_step(aws: EmbeddedAws) -> None:
    linear = {"name": "live", "linear": {"percent": 40, "minutes": 10}}
    for description in ("First.", "Second."):
        deploy(aws, description, linear)
    assert routes(aws) == {"live": {1: 60, 2: 40}}
    found = promotion("copying", session=aws)
    [early] = found.obstacles
    assert early.startswith("this step of its trial takes 10 minutes, of which 10 are left")
    with pytest.raises(DeployError, match="version 2 can't get 80 of 100 runs yet"):
        found.apply()
    found.apply(force=True)
    assert routes(aws) == {"live": {1: 20, 2: 80}}
    # A deployment in between leaves a trial where it is, and one of another version begins anew.
    assert deploy(aws, "Second.", linear).changes == ()
    deploy(aws, "Third.", linear)
    assert routes(aws) == {"live": {1: 60, 3: 40}}
    with pytest.raises(DeployError, match="gets 40 of 100 runs already; 30 would be fewer"):
        promotion("copying", session=aws, percent=30)
    promotion("copying", session=aws, percent=70).apply(force=True)
    assert routes(aws) == {"live": {1: 30, 3: 70}}
    last = promotion("copying", session=aws, now=datetime.now(tz=UTC) + timedelta(minutes=11))
    last.apply()
    assert (routes(aws), rollback("copying", session=aws).version) == ({"live": {3: 100}}, 1)


def test_a_trial_ends_with_the_version_before_or_with_the_next_one(aws: EmbeddedAws) -> None:
    for description in ("First.", "Second."):
        deploy(aws, description, CANARY)
    rollback("copying", session=aws).apply()
    assert routes(aws) == {"live": {1: 100}}
    # What is deployed again is tried again, and another version beside the one that is known.
    assert summaries(deploy(aws, "Second.", CANARY)) == ["update alias live: weights"]
    assert routes(aws) == {"live": {1: 90, 2: 10}}
    deploy(aws, "Third.", CANARY)
    assert routes(aws) == {"live": {1: 90, 3: 10}}
    deploy(aws, "Third.")
    assert routes(aws) == {"live": {3: 100}}
    deploy(aws, "Third.", None)
    with pytest.raises(DeployError, match="no alias starts runs of copying"):
        promotion("copying", session=aws)


def test_another_schedule_alone_makes_no_version_and_no_trial(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    """The definition carries the pipeline's file, which no execution reads."""

    tried = "step_functions: {alias: {name: live, canary: {percent: 10, minutes: 30}}}\n"

    def deployed(cron: str, description: str, more: str = tried) -> list[str]:
        made = Pipeline.load(pipelines.copying_file(tmp_path, cron, description, more))
        given = {**PARAMETERS, "data": "s3://incoming/set"}
        done = step_functions(made, session=aws, parameters=given, sleep=lambda _: None)
        assert carried(aws).description["schedule"] == {"cron": cron}
        return summaries(done)

    deployed("30 6 * * *", "First.")
    other = ["update state machine copying: definition", "update schedule copying: expression"]
    assert deployed("30 7 * * *", "First.") == other
    assert (routes(aws), deployed("30 7 * * *", "First.")) == ({"live": {1: 100}}, [])
    # What was there before the next version is kept as it was, the file aside the same.
    deployed("30 7 * * *", "Second.")
    assert routes(aws) == {"live": {1: 90, 3: 10}}
    assert deployed("30 8 * * *", "Second.") == other
    assert routes(aws) == {"live": {1: 90, 3: 10}}
    # What is tried again is what the version before does, yet not what gets the other runs.
    deployed("30 8 * * *", "First.")
    assert routes(aws) == {"live": {1: 90, 5: 10}}
    # Without a trial, the version that was tried gets all runs: it does what the file says.
    deployed("30 9 * * *", "First.", "step_functions: {alias: {name: live}}\n")
    assert routes(aws) == {"live": {5: 100}}


def carried(aws: EmbeddedAws) -> Imported:
    """The pipeline that the state machine carries."""
    found = aws.client("stepfunctions").describe_state_machine(stateMachineArn=MACHINE)
    return from_data(json.loads(found["definition"]))


def test_an_alarm_is_in_the_way_of_a_promotion(aws: EmbeddedAws) -> None:
    for description in ("First.", "Second."):
        deploy(aws, description, {**CANARY, "canary": {"percent": 99, "minutes": 1}})
    cloudwatch = aws.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="copying-executions-failed",
        ComparisonOperator="GreaterThanThreshold",
        EvaluationPeriods=1,
    )
    later = datetime.now(tz=UTC) + timedelta(minutes=2)
    assert promotion("copying", session=aws, now=later).obstacles == ()
    cloudwatch.set_alarm_state(
        AlarmName="copying-executions-failed", StateValue="ALARM", StateReason="a run failed"
    )
    found = promotion("copying", session=aws, now=later)
    [reason] = found.obstacles
    assert reason.startswith("alarm copying-executions-failed is in the state ALARM; ")
    with pytest.raises(DeployError, match="copying-executions-failed"):
        found.apply()
    found.apply(force=True)
    assert routes(aws) == {"live": {2: 100}}
    cloudwatch.delete_alarms(AlarmNames=["copying-executions-failed"])


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        ({"name": "7"}, "step_functions.alias.name"),
        ({"name": "live", "canary": {"percent": 100, "minutes": 5}}, "alias.canary.percent"),
        ({"name": "live", "canary": {"percent": 5, "minutes": 0}}, "alias.canary.minutes"),
        ({"name": "live", "canary": {"percent": 5}}, "alias.canary.minutes"),
        ({**CANARY, "linear": {"percent": 5, "minutes": 5}}, "alias: has canary and linear"),
    ],
)
def test_an_alias_that_aws_would_refuse_is_told(asked: dict[str, Any], where: str) -> None:
    with pytest.raises(PipelineError, match=where):
        pipeline("First.", asked)


def comment(aws: EmbeddedAws, execution: str) -> str:
    """What the definition of an execution says that it is."""
    found = aws.client("stepfunctions").describe_state_machine_for_execution(executionArn=execution)
    return str(json.loads(found["definition"])["Comment"])


def test_an_alias_of_somebody_else_is_taken_over_only_on_request(aws: EmbeddedAws) -> None:
    deploy(aws, "First.", None)
    only = [{"stateMachineVersionArn": f"{MACHINE}:1", "weight": 100}]
    states = aws.client("stepfunctions")
    for name in ("live", "mine"):
        states.create_state_machine_alias(name=name, routingConfiguration=only)
    with pytest.raises(DeployError, match="alias live of state machine copying exists and is not"):
        deploy(aws, "Second.")
    step_functions(
        pipeline("Second."),
        session=aws,
        parameters={**PARAMETERS, "data": "s3://incoming/set"},
        adopt=True,
    )
    assert routes(aws) == {"live": {2: 100}, "mine": {1: 100}}
    # What was not made here stays, until its state machine goes.
    deploy(aws, "Second.", None)
    assert routes(aws) == {"mine": {1: 100}}


def test_events_start_runs_by_the_alias_and_their_role_allows_no_other_way(
    aws: EmbeddedAws,
) -> None:
    made = pipeline("First.", trigger=OBJECTS)
    step_functions(made, session=aws, parameters=PARAMETERS, sleep=lambda _: None)
    aws.client("s3").put_object(Bucket="incoming", Key="new/1", Body=b"1")
    [run] = wait(lambda: executions(aws), lambda found: bool(found))
    assert run["stateMachineAliasArn"] == f"{MACHINE}:live"
    assert run["stateMachineVersionArn"] == f"{MACHINE}:1"
    starter = aws.acting_as(ACCOUNT.role_arn("copying-us-east-1-trigger")).client("stepfunctions")
    for arn in (MACHINE, f"{MACHINE}:1"):
        with pytest.raises(starter.exceptions.ClientError, match="not authorized to perform"):
            starter.start_execution(stateMachineArn=arn, input="{}")


def test_a_schedule_starts_runs_at_each_moment_of_a_move_to_another_alias(
    aws: EmbeddedAws,
) -> None:
    """It starts them as its role, so that a wrong one is found where IAM is enforced."""
    given = {**PARAMETERS, "data": "s3://incoming/set"}
    deploy(aws, "First.", None, schedule=NIGHTLY)

    def started_in_a_day() -> int:
        before = len(executions(aws))
        assert len(aws.pass_time(hours=24)) == 1
        return len(executions(aws)) - before

    runs: list[int] = []
    for alias, steps in (("live", 2), ("prod", 2), (None, 1)):
        planned = plan(pipeline("First.", alias, schedule=NIGHTLY), session=aws, parameters=given)
        planned.apply(sleep=lambda _: None, on_change=lambda _: runs.append(started_in_a_day()))
        changed = [each.name for each in planned.deployment.changes if each.resource == "role"]
        assert changed.count(STARTER) == steps
    assert set(runs) == {1}
    iam, role = aws.client("iam"), {"RoleName": STARTER}
    trust = iam.get_role(**role)["Role"]["AssumeRolePolicyDocument"]
    wrong = {**trust, "Statement": [{**trust["Statement"][0], "Principal": {"Service": "x"}}]}
    iam.update_assume_role_policy(**role, PolicyDocument=json.dumps(wrong))
    assert started_in_a_day() == 0
    iam.update_assume_role_policy(**role, PolicyDocument=json.dumps(trust))
    assert started_in_a_day() == 1
    iam.delete_role_policy(**role, PolicyName="orchestration")
    assert started_in_a_day() == 0


def executions(aws: EmbeddedAws) -> list[Any]:
    states = aws.client("stepfunctions")
    return list(states.list_executions(stateMachineArn=MACHINE)["executions"])


def test_what_runs_make_is_the_state_machines_whatever_their_context_says(
    embedded: EmbeddedAws, tmp_path: Path
) -> None:
    """The embedded AWS puts the alias that started a run into its context; AWS may do either."""
    path = tmp_path / "sleeping.yaml"
    path.write_text(f"{SLEEPING}step_functions: {{alias: {{name: live}}}}\n")
    sleeping = Pipeline.load(path)
    given = {**PARAMETERS, "seconds": "600"}
    with pytest.raises(StartError, match=r"sleeping is not deployed to .* with alias live"):
        start(sleeping, given, session=embedded)
    step_functions(sleeping, session=embedded, parameters=PARAMETERS, sleep=lambda _: None)
    begun = start(sleeping, given, session=embedded)
    states, sagemaker = embedded.client("stepfunctions"), embedded.client("sagemaker")
    machine = ACCOUNT.arn("states", "stateMachine:sleeping")
    states.start_execution(stateMachineArn=machine, input=json.dumps(given))
    wait(lambda: of_machine(sagemaker, machine), lambda found: len(found) == 2)
    # The companion finds by that what it stops.
    stop(begun.arn, session=embedded)
    wait(lambda: of_machine(sagemaker, machine), lambda found: len(found) == 1)
    again = states.describe_execution(executionArn=rerun(begun.arn, session=embedded).arn)
    assert again["stateMachineVersionArn"] == f"{machine}:1"
    destruction("sleeping", session=embedded).apply(stop=True, sleep=short_pause)


def of_machine(sagemaker: Any, machine: str) -> list[str]:
    """The jobs that are marked as those of a state machine."""
    found = []
    for job in sagemaker.list_training_jobs(StatusEquals="InProgress")["TrainingJobSummaries"]:
        listed = sagemaker.list_tags(ResourceArn=job["TrainingJobArn"])["Tags"]
        if {"Key": OF_MACHINE, "Value": machine} in listed:
            found.append(job["TrainingJobName"])
    return found
