"""Creation under a name that is taken: the same state machine again, or an error.

moto 5.2.5 answers with the machine that there is, whatever is asked for, and takes
``type: EXPRESS`` for ``STANDARD``. AWS also compares ``publish`` and ``versionDescription``; how is
not documented, and they are not compared here.
https://docs.aws.amazon.com/step-functions/latest/apireference/API_CreateStateMachine.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from moto.core.exceptions import AWSError
from moto.stepfunctions.parser.models import StepFunctionsParserBackend

from orchestration.local.engine.seams import replace

_IDENTITY: Final = (
    ("definition", "definition", None),
    ("type", "sm_type", "STANDARD"),
    ("loggingConfiguration", "loggingConfiguration", {"level": "OFF"}),
    ("tracingConfiguration", "tracingConfiguration", {"enabled": False}),
    ("encryptionConfiguration", "encryptionConfiguration", {"type": "AWS_OWNED_KEY"}),
)
"""Attributes, arguments and defaults that tell machines apart; role and tags do not."""


class StateMachineAlreadyExists(AWSError):
    """The error for another state machine under the same name."""

    TYPE = "StateMachineAlreadyExists"
    STATUS = 400


def _checked(create: Callable[..., Any]) -> Callable[..., Any]:
    def create_state_machine(self: Any, **request: Any) -> Any:
        for machine in self.state_machines:
            if machine.name == request["name"] and any(
                getattr(machine, attribute) != (request.get(argument) or default)
                for attribute, argument, default in _IDENTITY
            ):
                raise StateMachineAlreadyExists(f"State Machine Already Exists: '{machine.arn}'")
        return create(self, **request)

    return create_state_machine


def install() -> None:
    """Make the engine tell a repeated creation from another one."""
    stock = StepFunctionsParserBackend.create_state_machine
    replace(StepFunctionsParserBackend, "create_state_machine", _checked(stock))
