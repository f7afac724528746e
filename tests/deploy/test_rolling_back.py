"""A deployment is taken back in one call, as often as there is something before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.deploy import destruction, rollback, step_functions
from orchestration.deploy.applying.versions import KEPT
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws, Fault
from tests.deploy import pipelines
from tests.deploy.pipelines import ACCOUNT, PARAMETERS
from tests.deploy.test_destroying import CutOff, Cutting

DONE = {"A": {"Type": "Succeed"}}
MACHINE = ACCOUNT.arn("states", "stateMachine:copying")


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedAws]:
    with EmbeddedAws() as aws:
        aws.client("s3").create_bucket(Bucket=PARAMETERS["bucket"])
        yield aws


@pytest.fixture
def aws(embedded: EmbeddedAws) -> Iterator[EmbeddedAws]:
    yield embedded
    embedded.clear_faults()
    embedded.client("stepfunctions").delete_state_machine(stateMachineArn=MACHINE)


def pipeline(description: str) -> Pipeline:
    return pipelines.copying().model_copy(update={"description": description})


def deploy(aws: EmbeddedAws, description: str) -> None:
    step_functions(pipeline(description), session=aws, parameters=PARAMETERS)


def comment(aws: EmbeddedAws, arn: str = MACHINE) -> str:
    found = aws.client("stepfunctions").describe_state_machine(stateMachineArn=arn)
    return str(json.loads(found["definition"])["Comment"]).partition("\n")[0]


def numbers(aws: EmbeddedAws) -> list[int]:
    listed = aws.client("stepfunctions").list_state_machine_versions(stateMachineArn=MACHINE)
    return [
        int(each["stateMachineVersionArn"].rpartition(":")[2])
        for each in listed["stateMachineVersions"]
    ]


def back(aws: EmbeddedAws, version: int | None = None) -> int:
    found = rollback("copying", session=aws, version=version)
    found.apply()
    return found.version


def test_each_change_leaves_a_version_to_go_back_to(aws: EmbeddedAws) -> None:
    for description in ("First.", "Second.", "Second."):
        deploy(aws, description)
    assert numbers(aws) == [2, 1]
    assert back(aws) == 1
    assert comment(aws) == "First."
    assert comment(aws, f"{MACHINE}:2") == "Second."


def test_one_can_go_back_step_by_step_and_forward_again(aws: EmbeddedAws) -> None:
    for description in ("First.", "Second.", "Third."):
        deploy(aws, description)
    assert [back(aws), back(aws)] == [2, 1]
    with pytest.raises(DeployError, match="version 1 is the oldest of copying that is kept"):
        back(aws)
    assert back(aws, 3) == 3
    assert comment(aws) == "Third."
    # What was taken back before the last deployment is not what one goes back to.
    back(aws)
    deploy(aws, "Fourth.")
    assert (back(aws), comment(aws)) == (2, "Second.")


def test_the_next_deployment_brings_what_the_pipeline_says(aws: EmbeddedAws) -> None:
    deploy(aws, "First.")
    deploy(aws, "Second.")
    back(aws)
    done = step_functions(pipeline("Second."), session=aws, parameters=PARAMETERS)
    assert [change.summary for change in done.changes] == [
        "update state machine copying: definition"
    ]
    assert comment(aws) == "Second."


def test_a_change_of_the_carried_file_alone_is_nothing_to_go_back_from(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    for cron, description in (
        ("0 6 * * *", "First."),
        ("0 6 * * *", "Second."),
        ("0 7 * * *", "Second."),
    ):
        made = Pipeline.load(pipelines.copying_file(tmp_path, cron, description))
        step_functions(made, session=aws, parameters=PARAMETERS, sleep=lambda _: None)
    assert numbers(aws) == [2, 1]
    assert rollback("copying", session=aws).version == 1
    made = Pipeline.load(pipelines.copying_file(tmp_path, "0 7 * * *", "Third."))
    step_functions(made, session=aws, parameters=PARAMETERS, sleep=lambda _: None)
    assert [back(aws), back(aws)] == [3, 1]
    assert comment(aws).startswith("First.")
    destruction("copying", session=aws).apply(sleep=lambda _: None)


def test_what_was_there_before_the_first_version_is_kept(aws: EmbeddedAws) -> None:
    wanted = step_functions(pipeline("Old."), session=aws, parameters=PARAMETERS, dry_run=True)
    machine = wanted.desired.machine
    aws.client("stepfunctions").create_state_machine(
        name="copying", definition=json.dumps(machine.definition), roleArn=machine.role_arn
    )
    aws.client("stepfunctions").tag_resource(
        resourceArn=MACHINE, tags=[{"key": k, "value": v} for k, v in machine.tags.items()]
    )
    with pytest.raises(DeployError, match="copying has no versions yet"):
        rollback("copying", session=aws)
    deploy(aws, "New.")
    assert (back(aws), comment(aws)) == (1, "Old.")


def test_a_change_by_hand_is_taken_back_to_the_newest_version(aws: EmbeddedAws) -> None:
    deploy(aws, "First.")
    deploy(aws, "Second.")
    by_hand = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    aws.client("stepfunctions").update_state_machine(
        stateMachineArn=MACHINE, definition=json.dumps(by_hand)
    )
    assert (back(aws), comment(aws)) == (2, "Second.")


def test_a_version_that_does_not_exist_is_told_with_those_that_do(aws: EmbeddedAws) -> None:
    deploy(aws, "First.")
    with pytest.raises(DeployError, match="version 7 of copying does not exist; there are 1"):
        rollback("copying", session=aws, version=7)
    with pytest.raises(DeployError, match="pipeline absent is not deployed to 123456789012"):
        rollback("absent", session=aws)


def test_going_back_is_one_call_that_is_made_or_not(aws: EmbeddedAws) -> None:
    deploy(aws, "First.")
    deploy(aws, "Second.")
    planned = rollback("copying", session=aws)
    aws.inject(
        Fault("stepfunctions", "UpdateStateMachine", error_code="AccessDeniedException", status=400)
    )
    with pytest.raises(DeployError, match="AWS refused to update state machine copying"):
        planned.apply()
    assert comment(aws) == "Second."
    planned.apply()
    planned.apply()
    assert (comment(aws), numbers(aws)) == ("First.", [3, 2, 1])


def test_what_is_done_is_done_where_old_versions_can_not_be_listed(aws: EmbeddedAws) -> None:
    deploy(aws, "First.")
    deploy(aws, "Second.")
    planned = rollback("copying", session=aws)
    refused = Fault(
        "stepfunctions", "ListStateMachineVersions", error_code="AccessDeniedException", status=400
    )
    aws.inject(refused)
    planned.apply()
    assert comment(aws) == "First."
    aws.inject(refused)
    deploy(aws, "Third.")
    assert comment(aws) == "Third."


def test_old_versions_go_but_none_that_is_in_use(aws: EmbeddedAws) -> None:
    states = aws.client("stepfunctions")
    deploy(aws, "First.")
    waiting = {"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 100_000, "End": True}}}
    states.update_state_machine(
        stateMachineArn=MACHINE, definition=json.dumps(waiting), publish=True
    )
    running = states.start_execution(stateMachineArn=f"{MACHINE}:2")["executionArn"]
    states.create_state_machine_alias(
        name="mine",
        routingConfiguration=[{"stateMachineVersionArn": f"{MACHINE}:1", "weight": 100}],
    )
    for number in range(3, KEPT + 3):
        definition = json.dumps({"Comment": str(number), "StartAt": "A", "States": DONE})
        states.update_state_machine(stateMachineArn=MACHINE, definition=definition, publish=True)
    deploy(aws, "Last.")
    newest = list(range(KEPT + 3, 3, -1))
    assert numbers(aws) == [*newest, 2, 1]
    states.stop_execution(executionArn=running)


def test_a_changed_pipeline_that_is_cut_off_at_each_call_is_finished_by_the_next(
    aws: EmbeddedAws,
) -> None:
    deploy(aws, "First.")
    cutting = Cutting(aws)
    for _ in range(20):
        try:
            step_functions(pipeline("Second."), session=cutting, parameters=PARAMETERS)
        except CutOff:
            continue
        break
    cutting.release()
    assert cutting.made == [*["PublishStateMachineVersion"] * 2, "UpdateStateMachine"]
    assert numbers(aws) == [2, 1]
    assert (back(aws), comment(aws)) == (1, "First.")
