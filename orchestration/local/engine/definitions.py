"""Checks of definitions that AWS makes when a state machine is created, and moto 5.2.5 does not.

`ValidateStateMachineDefinition`, which moto lacks, answers with the same checks. Texts and codes
are those of recordings, where there are any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moto.core.exceptions import AWSError
from moto.core.responses import ActionResult
from moto.stepfunctions.parser import api
from moto.stepfunctions.parser.models import StepFunctionsParserBackend
from moto.stepfunctions.responses import StepFunctionResponse

from orchestration.local.engine.jsonata import syntax_error
from orchestration.local.engine.seams import replace
from orchestration.local.engine.tasks.services import (
    OPTIMISED_BY_MOTO,
    OPTIMISED_SAGEMAKER,
    SYNC_JOBS,
    api_name,
    operations,
)

LONGEST_STATE_NAME = 80
# Fields of a state whose expressions stand in states of their own.
_OF_INNER_MACHINES = ("Branches", "ItemProcessor", "Iterator")
_RESOURCE = re.compile(
    r"arn:[\w-]+:states:[\w-]*:\d*:(?P<service>[\w-]+):(?P<action>[\w:-]+?)"
    r"(?:\.(?P<pattern>sync:2|sync|waitForTaskToken))?$"
)


@dataclass(frozen=True)
class Problem:
    """Why AWS refuses a definition."""

    message: str
    location: str = "/"
    code: str = "SCHEMA_VALIDATION_FAILED"

    def __str__(self) -> str:
        return f"{self.code}: {self.message} at {self.location}"


def problems(definition: str) -> list[Problem]:
    """Return the problems of a definition."""
    try:
        machine = json.loads(definition)
    except ValueError as error:
        return [Problem(str(error), code="INVALID_JSON_DESCRIPTION")]
    if not isinstance(machine, Mapping):
        return [Problem("Definition must be a valid JSON object")]
    return list(_machine(machine, "", "JSONPath"))


def _machine(machine: Mapping[str, Any], path: str, outer: str) -> Iterator[Problem]:
    missing = [field for field in ("States", "StartAt") if not machine.get(field)]
    if missing:
        yield Problem(f"These fields are required: [{', '.join(missing)}]", path or "/")
        return
    states, language = machine["States"], machine.get("QueryLanguage", outer)
    targets = [(f"{path}/StartAt", machine["StartAt"])]
    for name, state in states.items():
        where = f"{path}/States/{name}"
        if len(name) > LONGEST_STATE_NAME:
            yield Problem(f"The name is longer than {LONGEST_STATE_NAME} characters", where)
        targets += _targets(state, where)
        yield from _integration(state, where)
        yield from _expressions(state, where, language)
        for below, inner in _inner_machines(state, where):
            yield from _machine(inner, below, language)
    for where, target in targets:
        if target not in states:
            text = f"Missing 'Next' target: {target}"
            yield Problem(text, where, "MISSING_TRANSITION_TARGET")


def _expressions(state: Mapping[str, Any], where: str, outer: str) -> Iterator[Problem]:
    """Check the language of a state, and parse its expressions."""
    language = state.get("QueryLanguage", outer)
    if (outer, language) == ("JSONata", "JSONPath"):
        yield Problem(
            "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state machine",
            where,
        )
    if language == "JSONata":
        own = {key: value for key, value in state.items() if key not in _OF_INNER_MACHINES}
        yield from _unparsable(own, where)


def _unparsable(value: Any, where: str) -> Iterator[Problem]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _unparsable(item, f"{where}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unparsable(item, f"{where}[{index}]")
    elif isinstance(value, str) and value.startswith("{%") and value.endswith("%}"):
        error = syntax_error(value[2:-2].strip())
        if error:
            yield Problem(f"The JSONata expression cannot be parsed. {error}", where)


def _targets(state: Mapping[str, Any], where: str) -> list[tuple[str, Any]]:
    targets = [(f"{where}/{key}", state[key]) for key in ("Next", "Default") if key in state]
    for key in ("Choices", "Catch"):
        targets += [
            (f"{where}/{key}[{index}]/Next", branch.get("Next"))
            for index, branch in enumerate(state.get(key, []))
        ]
    return targets


def _inner_machines(state: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for index, branch in enumerate(state.get("Branches", [])):
        yield f"{where}/Branches[{index}]", branch
    for key in ("ItemProcessor", "Iterator"):
        if key in state:
            yield f"{where}/{key}", state[key]


def _integration(state: Mapping[str, Any], where: str) -> Iterator[Problem]:
    resource = state.get("Resource")
    if state.get("Type") != "Task" or not isinstance(resource, str):
        return
    match = _RESOURCE.match(resource)
    if match is None or match["service"] in ("activity",):
        return
    if not _is_known(match["service"], match["action"], match["pattern"]):
        yield Problem(
            f"The resource provided {resource} is not recognized. The value is not a valid "
            "resource ARN, or the resource is not available in this region.",
            f"{where}/Resource",
        )


def _is_known(service: str, action: str, pattern: str | None) -> bool:
    if service == "aws-sdk":
        name, _, operation = action.partition(":")
        return pattern in (None, "waitForTaskToken") and api_name(operation) in (
            operations(name) or ()
        )
    if service == "sagemaker":
        known = SYNC_JOBS if pattern == "sync" else OPTIMISED_SAGEMAKER
        return pattern in (None, "sync") and api_name(action) in known
    return service in OPTIMISED_BY_MOTO


class InvalidDefinition(AWSError):
    """The error for a bad definition; the engine's own error has no code in its response."""

    TYPE = "InvalidDefinition"
    STATUS = 400


def _checked(definition: str, stock: Callable[[str], Any]) -> list[Problem]:
    """Return the problems that we find, or else the first one that moto's parser finds."""
    reasons = problems(definition)
    if not reasons:
        try:
            stock(definition)
        except api.InvalidDefinition as error:
            return [Problem(str(error.message))]
    return reasons


def install() -> None:
    """Check definitions when a state machine is created or updated, and when asked to."""
    stock = StepFunctionsParserBackend._validate_definition

    def validate(definition: str) -> None:
        reasons = _checked(definition, stock)
        if reasons:
            text = "; ".join(f"'{reason}'" for reason in reasons)
            raise InvalidDefinition(f"Invalid State Machine Definition: {text}")

    def validate_state_machine_definition(self: Any) -> Any:
        reasons = _checked(self._get_param("definition"), stock)
        diagnostics = [{"severity": "ERROR", **vars(reason)} for reason in reasons]
        result = "FAIL" if diagnostics else "OK"
        return ActionResult({"result": result, "diagnostics": diagnostics, "truncated": False})

    replace(StepFunctionsParserBackend, "_validate_definition", staticmethod(validate))
    # moto has no such method to replace.
    setattr(  # noqa: B010
        StepFunctionResponse, "validate_state_machine_definition", validate_state_machine_definition
    )
