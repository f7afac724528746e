"""Waiting for IAM: bounded, and only for what passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from orchestration.deploy import Change, StateMachine, apply
from orchestration.errors import DeployError

MACHINE = StateMachine(
    name="m",
    arn="arn:aws:states:us-east-1:123456789012:stateMachine:m",
    definition={"StartAt": "A", "States": {"A": {"Type": "Succeed"}}},
    role_arn="arn:aws:iam::123456789012:role/m",
)
NOT_YET = (
    "Neither the global service principal states.amazonaws.com, nor the regional one is authorized "
    "to assume the provided role."
)


class Stubbed:
    """A session whose one client answers as it is told."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def client(self, service_name: str, /) -> Any:
        return self._client


@pytest.fixture
def states() -> Iterator[tuple[Stubbed, Stubber]]:
    client = boto3.client("stepfunctions", region_name="us-east-1")
    with Stubber(client) as stubber:
        yield Stubbed(client), stubber


def refuse(stubber: Stubber, message: str, times: int) -> None:
    for _ in range(times):
        stubber.add_client_error("create_state_machine", "AccessDeniedException", message)


def test_a_role_that_is_not_known_everywhere_is_waited_for(states: tuple[Stubbed, Stubber]) -> None:
    session, stubber = states
    refuse(stubber, NOT_YET, 2)
    refuse(stubber, "'arn:…:role/m' is not authorized to create managed-rule.", 1)
    stubber.add_response(
        "create_state_machine", {"stateMachineArn": MACHINE.arn, "creationDate": 0}
    )
    pauses: list[float] = []
    apply([Change(None, MACHINE)], session, sleep=pauses.append)
    assert pauses == [1, 2, 4]
    stubber.assert_no_pending_responses()


def test_waiting_for_a_role_ends(states: tuple[Stubbed, Stubber]) -> None:
    session, stubber = states
    refuse(stubber, NOT_YET, 8)
    pauses: list[float] = []
    with pytest.raises(DeployError, match="refused to create state machine m"):
        apply([Change(None, MACHINE)], session, sleep=pauses.append)
    assert sum(pauses) == 60


def test_another_refusal_is_not_waited_out(states: tuple[Stubbed, Stubber]) -> None:
    session, stubber = states
    refuse(stubber, "You may not.", 1)
    with pytest.raises(DeployError, match=r"You may not\."):
        apply([Change(None, MACHINE)], session, sleep=lambda _: pytest.fail("slept"))


def test_an_update_sends_only_what_differs(states: tuple[Stubbed, Stubber]) -> None:
    session, stubber = states
    stubber.add_response(
        "tag_resource", {}, {"resourceArn": MACHINE.arn, "tags": [{"key": "a", "value": "b"}]}
    )
    apply([Change(MACHINE, replace(MACHINE, tags={"a": "b"}))], session)
    stubber.assert_no_pending_responses()
