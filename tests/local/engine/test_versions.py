"""Versions and aliases do what recordings of AWS show, and executions keep what they started as."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE, wait
from tests.local.engine.machines import ended, jsonata, passing, started


@pytest.fixture(scope="module")
def states(aws: EmbeddedAws) -> Any:
    return aws.client("stepfunctions")


def create(states: Any, output: Any = 1, **options: Any) -> str:
    made = states.create_state_machine(
        name=f"v-{uuid.uuid4().hex[:12]}",
        definition=json.dumps(passing(output)),
        roleArn=ROLE,
        **options,
    )
    return str(made["stateMachineArn"])


def publish(states: Any, machine: str, output: Any) -> str:
    definition = json.dumps(passing(output))
    states.update_state_machine(stateMachineArn=machine, definition=definition)
    version = states.publish_state_machine_version(stateMachineArn=machine)
    return str(version["stateMachineVersionArn"])


def route(*weights: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"stateMachineVersionArn": arn, "weight": weight} for arn, weight in weights]


def alias(states: Any, *weights: tuple[str, int], name: str = "live") -> str:
    made = states.create_state_machine_alias(name=name, routingConfiguration=route(*weights))
    return str(made["stateMachineAliasArn"])


def versions(states: Any, machine: str) -> list[int]:
    listed = states.list_state_machine_versions(stateMachineArn=machine)["stateMachineVersions"]
    return [int(each["stateMachineVersionArn"].rpartition(":")[2]) for each in listed]


def refused(call: Any, **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**request)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def run(aws: EmbeddedAws, arn: str, **options: Any) -> dict[str, Any]:
    started = aws.client("stepfunctions").start_execution(stateMachineArn=arn, **options)
    return ended(aws, started["executionArn"])


def test_a_revision_is_published_once(states: Any) -> None:
    machine = create(states)
    for _ in range(2):
        states.publish_state_machine_version(stateMachineArn=machine)
    same = json.dumps(passing(1))
    for _ in range(2):
        states.update_state_machine(stateMachineArn=machine, definition=same, publish=True)
    assert versions(states, machine) == [1]


def test_numbers_of_versions_are_not_used_again(states: Any) -> None:
    machine = create(states, publish=True)
    second = publish(states, machine, 2)
    for _ in range(2):  # A second time is no error.
        states.delete_state_machine_version(stateMachineVersionArn=second)
    states.publish_state_machine_version(stateMachineArn=machine)
    assert versions(states, machine) == [3, 1]


def test_a_page_of_versions_leads_to_the_next(states: Any) -> None:
    machine = create(states, publish=True)
    publish(states, machine, 2)
    first = states.list_state_machine_versions(stateMachineArn=machine, maxResults=1)
    rest = states.list_state_machine_versions(stateMachineArn=machine, nextToken=first["nextToken"])
    arns = [
        each["stateMachineVersionArn"]
        for page in (first, rest)
        for each in page["stateMachineVersions"]
    ]
    assert arns == [f"{machine}:2", f"{machine}:1"]


def test_a_revision_that_is_not_the_current_one_is_not_published(states: Any) -> None:
    machine = create(states)
    assert "revisionId" not in states.describe_state_machine(stateMachineArn=machine)
    old = states.update_state_machine(
        stateMachineArn=machine, definition=json.dumps(passing(2)), publish=True
    )["revisionId"]
    new = states.update_state_machine(stateMachineArn=machine, definition=json.dumps(passing(3)))
    assert refused(
        states.publish_state_machine_version, stateMachineArn=machine, revisionId=old
    ) == (
        "ConflictException",
        f"Failed to publish the State Machine version for revision {old}. The current State "
        f"Machine revision is {new['revisionId']}.",
    )
    described = states.describe_state_machine(stateMachineArn=f"{machine}:1")
    assert described["revisionId"] == old
    assert json.loads(described["definition"]) == passing(2)


def test_a_version_is_never_updated(states: Any) -> None:
    machine = create(states, publish=True)
    code, message = refused(
        states.update_state_machine, stateMachineArn=f"{machine}:1", definition="{}"
    )
    assert code == "StateMachineDoesNotExist"
    assert message == f"State Machine Does Not Exist: '{machine}:1'"


def test_an_execution_runs_the_version_that_it_is_started_by(aws: EmbeddedAws, states: Any) -> None:
    machine = create(states, publish=True)
    publish(states, machine, 2)
    live = alias(states, (f"{machine}:1", 100))
    by_alias, by_version = run(aws, live), run(aws, f"{machine}:2")
    plain = run(aws, machine)
    assert [json.loads(each["output"]) for each in (by_alias, by_version, plain)] == [1, 2, 2]
    assert by_alias["stateMachineArn"] == by_version["stateMachineArn"] == machine
    assert by_alias["stateMachineVersionArn"] == f"{machine}:1"
    assert by_alias["stateMachineAliasArn"] == live
    assert by_version["stateMachineVersionArn"] == f"{machine}:2"
    assert "stateMachineAliasArn" not in by_version
    assert "stateMachineVersionArn" not in plain
    listed = {
        arn: {e["name"] for e in states.list_executions(stateMachineArn=arn)["executions"]}
        for arn in (machine, live, f"{machine}:1", f"{machine}:2")
    }
    assert listed == {
        machine: {by_alias["name"], by_version["name"], plain["name"]},
        live: {by_alias["name"]},
        f"{machine}:1": {by_alias["name"]},
        f"{machine}:2": {by_version["name"]},
    }


def test_a_running_execution_keeps_its_definition(aws: EmbeddedAws, states: Any) -> None:
    machine = create(states, publish=True)
    first = jsonata(
        A={"Type": "Wait", "Seconds": 200, "Next": "B"}, B=passing(["old"])["States"]["A"]
    )
    states.update_state_machine(stateMachineArn=machine, definition=json.dumps(first), publish=True)
    live = alias(states, (f"{machine}:2", 100))
    running = states.start_execution(stateMachineArn=live)["executionArn"]
    new = publish(states, machine, ["new"])
    states.update_state_machine_alias(
        stateMachineAliasArn=live, routingConfiguration=route((new, 100))
    )
    states.delete_state_machine_version(stateMachineVersionArn=f"{machine}:2")
    kept = states.describe_state_machine_for_execution(executionArn=running)
    assert json.loads(kept["definition"]) == first
    assert kept["stateMachineArn"] == machine
    assert json.loads(run(aws, live)["output"]) == ["new"]
    assert json.loads(ended(aws, running)["output"]) == ["old"]


def test_a_name_is_one_execution_whatever_version_it_is_started_by(
    aws: EmbeddedAws, states: Any
) -> None:
    machine = create(states, publish=True)
    live = alias(states, (f"{machine}:1", 100))
    run(aws, live, name="once")
    code, _ = refused(states.start_execution, stateMachineArn=f"{machine}:1", name="once")
    assert code == "ExecutionAlreadyExists"


def test_a_nested_execution_that_an_alias_started_is_stopped_with_its_parent(
    aws: EmbeddedAws, states: Any
) -> None:
    waiting = jsonata(A={"Type": "Wait", "Seconds": 100_000, "End": True})
    machine = create(states)
    states.update_state_machine(
        stateMachineArn=machine, definition=json.dumps(waiting), publish=True
    )
    live = alias(states, (f"{machine}:1", 100))
    nesting = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": live, "Name": "inner", "Input": {}},
        "End": True,
    }
    outer = started(aws, jsonata(A=nesting))
    inner = f"{machine.replace(':stateMachine:', ':execution:')}:inner"
    wait(
        lambda: states.list_executions(stateMachineArn=live)["executions"],
        lambda listed: len(listed) == 1,
    )
    states.stop_execution(executionArn=outer)
    stopped = ended(aws, inner)
    assert stopped["status"] == "ABORTED"
    assert stopped["stateMachineAliasArn"] == live


def test_weights_choose_the_version(aws: EmbeddedAws, states: Any) -> None:
    machine = create(states, publish=True)
    publish(states, machine, 2)
    both = alias(states, (f"{machine}:1", 50), (f"{machine}:2", 50))
    seen: set[int] = set()
    for _ in range(200):  # That one of two is never chosen has a probability of 2^-199.
        seen.add(json.loads(run(aws, both)["output"]))
        if len(seen) == 2:
            break
    assert seen == {1, 2}
    none = alias(states, (f"{machine}:1", 0), (f"{machine}:2", 100), name="second")
    assert {json.loads(run(aws, none)["output"]) for _ in range(5)} == {2}


def test_what_does_not_exist_starts_nothing(states: Any) -> None:
    machine = create(states)
    for qualifier in ("1", "live"):
        arn = f"{machine}:{qualifier}"
        code, message = refused(states.start_execution, stateMachineArn=arn)
        assert code == "StateMachineDoesNotExist"
        assert message == f"State Machine Does Not Exist: '{arn}'"


def test_a_version_that_an_alias_routes_to_is_not_deleted(states: Any) -> None:
    machine = create(states, publish=True)
    live = alias(states, (f"{machine}:1", 100))
    version = {"stateMachineVersionArn": f"{machine}:1"}
    assert refused(states.delete_state_machine_version, **version) == (
        "ConflictException",
        "Version to be deleted must not be referenced by an alias. Current list of aliases "
        "referencing this version: [live]",
    )
    for _ in range(2):  # A second time is no error.
        states.delete_state_machine_alias(stateMachineAliasArn=live)
    states.delete_state_machine_version(**version)
    assert versions(states, machine) == []


def test_an_alias_is_made_once(states: Any) -> None:
    machine = create(states, publish=True)
    second = publish(states, machine, 2)
    assert alias(states, (f"{machine}:1", 100)) == alias(states, (f"{machine}:1", 100))
    code, message = refused(
        states.create_state_machine_alias, name="live", routingConfiguration=route((second, 100))
    )
    assert code == "ConflictException"
    assert message.startswith("Failed to create alias because an alias with the same name")
    alias(states, (second, 100), name="other")
    of_version = states.list_state_machine_aliases(stateMachineArn=second)["stateMachineAliases"]
    assert [each["stateMachineAliasArn"] for each in of_version] == [f"{machine}:other"]
    every = states.list_state_machine_aliases(stateMachineArn=machine)["stateMachineAliases"]
    assert len(every) == 2


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([("", 100)], "Routing configuration must contain state machine version ARNs."),
        ([(":1", 50), (":1", 50)], "Routing configuration must contain distinct"),
        ([(":1", 70), (":2", 29)], "must equal 100. Received: [70, 29]"),
        ([(":1", 101)], "'routingConfiguration.1.member.weight' failed to satisfy"),
        ([(":1", 50), (":2", 30), (":3", 20)], "have length less than or equal to 2"),
    ],
)
def test_a_routing_is_refused_as_aws_refuses_it(
    states: Any, weights: list[tuple[str, int]], message: str
) -> None:
    machine = create(states, publish=True)
    publish(states, machine, 2)
    config = route(*((f"{machine}{version}", weight) for version, weight in weights))
    code, text = refused(
        states.create_state_machine_alias, name="live", routingConfiguration=config
    )
    assert (code, message in text) == ("ValidationException", True), text


@pytest.mark.parametrize("name", ["123", "INVALID ALIAS", "!INVALID", "A" * 81])
def test_a_name_that_no_alias_may_have_is_refused(states: Any, name: str) -> None:
    machine = create(states, publish=True)
    code, text = refused(
        states.create_state_machine_alias,
        name=name,
        routingConfiguration=route((f"{machine}:1", 100)),
    )
    assert (code, "at 'name' failed to satisfy" in text) == ("ValidationException", True)


def test_an_alias_routes_only_to_what_exists(states: Any) -> None:
    machine = create(states, publish=True)
    unknown = route((f"{machine}:2", 100))
    calls = [
        (states.create_state_machine_alias, {"name": "live"}),
        (
            states.update_state_machine_alias,
            {"stateMachineAliasArn": alias(states, (f"{machine}:1", 100))},
        ),
        (states.update_state_machine_alias, {"stateMachineAliasArn": f"{machine}:none"}),
    ]
    for call, request in calls:
        code, text = refused(call, routingConfiguration=unknown, **request)
        assert code == "ResourceNotFound"
        assert text == "Request references a resource that does not exist."


def test_a_name_is_taken_unless_the_state_machine_is_the_same(states: Any) -> None:
    """https://docs.aws.amazon.com/step-functions/latest/apireference/API_CreateStateMachine.html"""
    arn = create(states)
    name = arn.rpartition(":")[2]
    same = {"name": name, "definition": json.dumps(passing(1)), "roleArn": ROLE}
    other = {**same, "roleArn": f"{ROLE}-other", "tags": [{"key": "team", "value": "b"}]}
    assert states.create_state_machine(**other)["stateMachineArn"] == arn
    assert states.describe_state_machine(stateMachineArn=arn)["roleArn"] == ROLE
    taken = ("StateMachineAlreadyExists", f"State Machine Already Exists: '{arn}'")
    for change in (
        {"definition": json.dumps(passing(2))},
        {"type": "EXPRESS"},
        {"tracingConfiguration": {"enabled": True}},
    ):
        assert refused(states.create_state_machine, **{**same, **change}) == taken
