"""Versions and aliases of state machines, and executions that are started by one of them.

moto 5.2.5 has aliases and ``publish``. It lacks PublishStateMachineVersion,
ListStateMachineVersions, DeleteStateMachineVersion, revisions, and StartExecution by an alias; it
keeps executions of a version where nothing finds them, publishes a revision twice, updates a
version in place, and takes any routing. `tests/local/engine/test_versions.py` fails without this
module.

Texts and orders are those recorded by LocalStack's tests on AWS (``test_sfn_api_versioning`` and
``test_sfn_api_aliasing``, ``.snapshot.json``). Not recorded, and assumed: that each update which
changes something makes a revision, what is said of a version that does not exist, and that the
context of an execution names what started it, which is harder for a definition than the other way.
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-cd-aliasing-versioning.html
"""

from __future__ import annotations

import copy
import random
import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from moto.core.responses import ActionResult, EmptyResult
from moto.stepfunctions.exceptions import InvalidArn, StateMachineDoesNotExist
from moto.stepfunctions.models import StateMachine, StateMachineVersion, StepFunctionBackend
from moto.stepfunctions.parser.backend.execution import Execution
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from moto.stepfunctions.responses import StepFunctionResponse

from orchestration.local.account.faults import Faults
from orchestration.local.engine.machines import routing
from orchestration.local.engine.seams import replace

MOST_VERSIONS: Final = 1000
"""https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"""
_REVISION: Final = (
    "definition",
    "roleArn",
    "loggingConfiguration",
    "tracingConfiguration",
    "encryptionConfiguration",
)
_MACHINE_PARTS: Final = 7
_NEW_VERSION: Final[Any] = StateMachineVersion  # moto leaves methods of it abstract.
_VIEWS: ContextVar[Mapping[str, Any] | None] = ContextVar("_VIEWS", default=None)
"""The state machines as one call sees them, by the ARN that it asks for."""


def unqualified(arn: str) -> str:
    """Return the ARN of the state machine of a version or an alias; its own for a machine."""
    return ":".join(arn.split(":")[:_MACHINE_PARTS])


def started_by(execution: Any) -> dict[str, str]:
    """Return the ARNs of the version and the alias that an execution was started by."""
    return dict(getattr(execution.state_machine, "started_by", {}))


def _machine(backend: Any, arn: str) -> Any:
    """Return a state machine by its own ARN, and by no other."""
    backend._validate_machine_arn(arn)
    for machine in backend.state_machines:
        if machine.arn == arn:
            return machine
    raise StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")


def _resolved(backend: Any, arn: str) -> tuple[Any, Any, dict[str, str]]:
    """Return the state machine, the version to run, and what an execution tells of the two."""
    machine_arn = unqualified(arn)
    if arn == machine_arn:
        return _machine(backend, arn), None, {}
    unknown = StateMachineDoesNotExist(f"State Machine Does Not Exist: '{arn}'")
    try:
        machine = _machine(backend, machine_arn)
    except StateMachineDoesNotExist:
        raise unknown from None
    qualifier, by = arn.removeprefix(f"{machine_arn}:"), {}
    if (alias := machine.aliases.get(qualifier)) is not None:
        routes = alias.routing_configuration
        weights = [each["weight"] for each in routes]
        [route] = random.choices(routes, weights)  # noqa: S311 - no secret
        qualifier = route["stateMachineVersionArn"].rpartition(":")[2]
        by = {"stateMachineAliasArn": alias.arn}
    version = machine.versions.get(int(qualifier)) if qualifier.isdecimal() else None
    if version is None:
        raise unknown
    return machine, version, {"stateMachineVersionArn": version.arn, **by}


def _publish(machine: Any, description: str | None) -> Any:
    """Publish the current revision; one that is published already keeps its version."""
    for version in machine.versions.values():
        if version.revision == machine.revision:
            machine.latest_version = version
            return version
    if len(machine.versions) >= MOST_VERSIONS:
        raise routing.ServiceQuotaExceededException(
            f"The state machine has {MOST_VERSIONS} versions, which is the most"
        )
    machine.latest_version_number += 1
    version = _NEW_VERSION(machine, machine.latest_version_number, description)
    version.revision = machine.revision
    machine.versions[version.version] = machine.latest_version = version
    return version


def _update(method: Callable[..., Any]) -> Callable[..., Any]:
    def update_state_machine(
        self: Any,
        arn: str,
        *args: Any,
        publish: bool | None = None,
        version_description: str | None = None,
        **kwargs: Any,
    ) -> Any:
        machine = _machine(self, arn)
        before = [getattr(machine, name) for name in _REVISION]
        updated = method(self, arn, *args, **kwargs)
        if before != [getattr(machine, name) for name in _REVISION]:
            machine.revision = str(uuid.uuid4())
        if publish:
            _publish(machine, version_description)
        return updated

    return update_state_machine


def _start(method: Callable[..., Any]) -> Callable[..., Any]:
    def start_execution(self: Any, state_machine_arn: str, *args: Any, **kwargs: Any) -> Any:
        machine, version, by = _resolved(self, state_machine_arn)
        # What is copied for the execution, which shares the list of executions: names are unique
        # among those of all versions.
        view = copy.copy(machine)
        view.versions, view.aliases, view.latest_version = {}, {}, None
        view.started_by = by
        if version is not None:
            for name in (*_REVISION, "revision"):
                setattr(view, name, getattr(version, name))
        return _with_views({machine.arn: view}, method, self, machine.arn, *args, **kwargs)

    return start_execution


def _with_views(views: Mapping[str, Any], method: Callable[..., Any], *args: Any, **kw: Any) -> Any:
    token = _VIEWS.set(views)
    try:
        return method(*args, **kw)
    finally:
        _VIEWS.reset(token)


def _describe_backend(method: Callable[..., Any]) -> Callable[..., Any]:
    def describe_state_machine(self: Any, arn: str) -> Any:
        view = (_VIEWS.get() or {}).get(arn)
        return method(self, arn) if view is None else view

    return describe_state_machine


def _list_executions(faults: Faults, method: Callable[..., Any]) -> Callable[..., Any]:
    def list_executions(self: Any) -> Any:
        arn = self._get_param("stateMachineArn")
        machine, version, _ = _resolved(self.stepfunction_backend, arn)
        view = copy.copy(machine)
        if version is not None:
            view.executions = [
                each for each in machine.executions if arn in started_by(each).values()
            ]
        view.executions = [each for each in view.executions if not faults.hides(each.execution_arn)]
        answered = _with_views({arn: view}, method, self)
        runs = {each.execution_arn: each for each in view.executions}
        for entry in answered.result["executions"]:
            entry.update(started_by(runs[entry["executionArn"]]))
        return answered

    return list_executions


def _describe_execution(method: Callable[..., Any]) -> Callable[..., Any]:
    def describe_execution(self: Any) -> Any:
        answered = method(self)
        arn = self._get_param("executionArn")
        answered.result.update(started_by(self.stepfunction_backend.describe_execution(arn)))
        return answered

    return describe_execution


def _context(method: Callable[..., Any]) -> Callable[..., Any]:
    def get_start_state_machine_details(self: Any) -> Any:
        details, by = method(self), started_by(self)
        details.arn = by.get("stateMachineAliasArn", by.get("stateMachineVersionArn", details.arn))
        return details

    return get_start_state_machine_details


def _with_revision(method: Callable[..., Any]) -> Callable[..., Any]:
    def answer(self: Any) -> Any:
        answered = method(self)
        arn = self._get_param("stateMachineArn")
        revision = self.stepfunction_backend.describe_state_machine(arn).revision
        if revision is not None:
            answered.result["revisionId"] = revision
        return answered

    return answer


def _publish_version(self: Any) -> ActionResult:
    machine = _machine(self.stepfunction_backend, self._get_param("stateMachineArn"))
    wanted = self._get_param("revisionId")
    if wanted and wanted != machine.revision:
        raise routing.ConflictException(
            f"Failed to publish the State Machine version for revision {wanted}. The current "
            f"State Machine revision is {machine.revision}."
        )
    version = _publish(machine, self._get_param("description"))
    return ActionResult(
        {"stateMachineVersionArn": version.arn, "creationDate": version.creation_date}
    )


def _list_versions(self: Any) -> ActionResult:
    machine = _machine(self.stepfunction_backend, self._get_param("stateMachineArn"))
    listed = [machine.versions[number] for number in sorted(machine.versions, reverse=True)]
    page, token = routing.page(listed, self._get_param("maxResults"), self._get_param("nextToken"))
    entries = [
        {"stateMachineVersionArn": each.arn, "creationDate": each.creation_date} for each in page
    ]
    return ActionResult({"stateMachineVersions": entries, "nextToken": token})


def _delete_version(self: Any) -> EmptyResult:
    backend, arn = self.stepfunction_backend, self._get_param("stateMachineVersionArn")
    machine_arn, _, number = arn.rpartition(":")
    backend._validate_machine_arn(machine_arn)
    if not number.isdecimal() or machine_arn != unqualified(arn):
        raise InvalidArn(f"Invalid State Machine Version Arn: '{arn}'")
    for machine in backend.state_machines:
        if machine.arn != machine_arn:
            continue
        if routed := routing.aliases_of(machine, arn):
            raise routing.ConflictException(
                "Version to be deleted must not be referenced by an alias. Current list of "
                f"aliases referencing this version: [{', '.join(each.name for each in routed)}]"
            )
        if (gone := machine.versions.pop(int(number), None)) is machine.latest_version and gone:
            machine.latest_version = None
    return EmptyResult()


def install(faults: Faults) -> None:
    """Give state machines versions, and let aliases start executions."""
    # Of a state machine that was never changed, AWS tells no revision.
    owners: tuple[Any, ...] = (StateMachine, StateMachineVersion)
    for owner in owners:
        owner.revision = None
    replace(StateMachine, "publish", _publish)
    replace(
        StepFunctionBackend,
        "describe_state_machine",
        _describe_backend(StepFunctionBackend.describe_state_machine),
    )
    for operation, around in (("update_state_machine", _update), ("start_execution", _start)):
        stock = getattr(StepFunctionsParserBackend, operation)
        replace(StepFunctionsParserBackend, operation, around(stock))
    stock = Execution.get_start_state_machine_details
    replace(Execution, "get_start_state_machine_details", _context(stock))
    for operation, around in (
        ("list_executions", partial(_list_executions, faults)),
        ("describe_execution", _describe_execution),
        ("describe_state_machine", _with_revision),
        ("update_state_machine", _with_revision),
    ):
        replace(StepFunctionResponse, operation, around(getattr(StepFunctionResponse, operation)))
    # moto has no such methods to replace.
    for operation, method in (
        ("publish_state_machine_version", _publish_version),
        ("list_state_machine_versions", _list_versions),
        ("delete_state_machine_version", _delete_version),
    ):
        setattr(StepFunctionResponse, operation, method)
    routing.install()
