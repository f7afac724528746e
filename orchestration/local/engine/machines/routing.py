"""Aliases of state machines: which routing is refused, and what is there already.

moto 5.2.5 refuses other routings than AWS, with other texts, and overwrites an alias that exists.
`tests/local/engine/test_versions.py` fails without this module, which `versions` installs; that
names the recordings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from moto.core.exceptions import AWSError
from moto.core.responses import ActionResult, EmptyResult
from moto.stepfunctions.exceptions import (
    InvalidToken,
    StateMachineDoesNotExist,
    ValidationException,
)
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from moto.stepfunctions.responses import StepFunctionResponse

from orchestration.local.engine.seams import replace

MOST_ALIASES: Final = 100
"""https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"""
_VERSION: Final = re.compile(r"arn:[\w-]+:states:[\w-]+:\d{12}:stateMachine:[^:]+:\d+")
_WHOLE: Final = 100
_PAGE: Final = 100
_Item = TypeVar("_Item")


class ConflictException(AWSError):
    """The error for what contradicts something that is there."""

    TYPE = "ConflictException"
    STATUS = 409


class ServiceQuotaExceededException(AWSError):
    """The error for one version or alias too many."""

    TYPE = "ServiceQuotaExceededException"
    STATUS = 402


class _ResourceNotFound(AWSError):
    TYPE = "ResourceNotFound"
    STATUS = 400


_UNKNOWN: Final = "Request references a resource that does not exist."


def aliases_of(machine: Any, version_arn: str) -> list[Any]:
    """Return the aliases that route to a version."""
    return [
        alias
        for alias in machine.aliases.values()
        if any(r["stateMachineVersionArn"] == version_arn for r in alias.routing_configuration)
    ]


def page(
    items: Sequence[_Item], most: int | None, token: str | None
) -> tuple[Sequence[_Item], str | None]:
    """Return a page of a list, and the token of the next one."""
    if token is not None and not token.isdecimal():
        raise InvalidToken
    begin = int(token or 0)
    end = begin + (most or _PAGE)
    return items[begin:end], str(end) if end < len(items) else None


def _check_routing(_: Any, routes: Sequence[dict[str, Any]]) -> None:
    arns = [each["stateMachineVersionArn"] for each in routes]
    received = f"Received: [{', '.join(arns)}]"
    if not all(map(_VERSION.fullmatch, arns)):
        raise ValidationException(
            f"Routing configuration must contain state machine version ARNs. {received}"
        )
    if len(set(arns)) < len(arns):
        raise ValidationException(
            f"Routing configuration must contain distinct state machine version ARNs. {received}"
        )
    if len({arn.rpartition(":")[0] for arn in arns}) > 1:
        raise ValidationException(
            f"Routing configuration must contain versions of one state machine. {received}"
        )
    weights = [each["weight"] for each in routes]
    if sum(weights) != _WHOLE:
        raise ValidationException(
            f"Sum of routing configuration weights must equal {_WHOLE}. Received: {weights}"
        )


def _routed(backend: Any, routes: Sequence[dict[str, Any]]) -> Any:
    """Return the state machine whose versions are routed to, all of which exist."""
    arns = {each["stateMachineVersionArn"] for each in routes}
    for machine in backend.state_machines:
        if arns <= {version.arn for version in machine.versions.values()}:
            return machine
    raise _ResourceNotFound(_UNKNOWN)


def _create(method: Callable[..., Any]) -> Callable[..., Any]:
    def create_state_machine_alias(
        self: Any, name: str, routing_configuration: Any, description: str | None
    ) -> Any:
        machine = _routed(self, routing_configuration)
        there = machine.aliases.get(name)
        if there is None:
            if len(machine.aliases) >= MOST_ALIASES:
                raise ServiceQuotaExceededException(
                    f"The state machine has {MOST_ALIASES} aliases, which is the most"
                )
            return method(self, name, routing_configuration, description)
        same = (there.routing_configuration, there.description)
        if same != (routing_configuration, description):
            raise ConflictException(
                "Failed to create alias because an alias with the same name and a different "
                "routing configuration already exists."
            )
        return there

    return create_state_machine_alias


def _update(method: Callable[..., Any]) -> Callable[..., Any]:
    def update_state_machine_alias(
        self: Any, arn: str, description: str | None, routing_configuration: Any
    ) -> Any:
        machine_arn, _, name = arn.rpartition(":")
        self._validate_machine_arn(machine_arn)
        machines = {each.arn: each for each in self.state_machines}
        if machine_arn not in machines or name not in machines[machine_arn].aliases:
            raise _ResourceNotFound(_UNKNOWN)
        if routing_configuration and _routed(self, routing_configuration).arn != machine_arn:
            raise ValidationException("An alias routes to versions of its own state machine.")
        return method(self, arn, description, routing_configuration)

    return update_state_machine_alias


def _delete(self: Any) -> EmptyResult:
    """Delete an alias; one that does not exist is none to delete."""
    arn = self._get_param("stateMachineAliasArn")
    machine_arn, _, name = arn.rpartition(":")
    self.stepfunction_backend._validate_machine_arn(machine_arn)
    for machine in self.stepfunction_backend.state_machines:
        if machine.arn == machine_arn:
            machine.aliases.pop(name, None)
    return EmptyResult()


def _list(self: Any) -> ActionResult:
    """List the aliases of a machine, or those that route to one of its versions."""
    arn = self._get_param("stateMachineArn")
    of_version = _VERSION.fullmatch(arn) is not None
    machine_arn = arn.rpartition(":")[0] if of_version else arn
    for machine in self.stepfunction_backend.state_machines:
        if machine.arn == machine_arn:
            break
    else:
        raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
    listed = aliases_of(machine, arn) if of_version else list(machine.aliases.values())
    part, token = page(listed, self._get_param("maxResults"), self._get_param("nextToken"))
    entries = [
        {"stateMachineAliasArn": each.arn, "creationDate": each.creation_date} for each in part
    ]
    return ActionResult({"stateMachineAliases": entries, "nextToken": token})


def install() -> None:
    """Check aliases as AWS does."""
    replace(StepFunctionResponse, "_validate_routing_configuration", _check_routing)
    replace(StepFunctionResponse, "delete_state_machine_alias", _delete)
    replace(StepFunctionResponse, "list_state_machine_aliases", _list)
    for operation, around in (
        ("create_state_machine_alias", _create),
        ("update_state_machine_alias", _update),
    ):
        stock = getattr(StepFunctionsParserBackend, operation)
        replace(StepFunctionsParserBackend, operation, around(stock))
