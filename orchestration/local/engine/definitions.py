"""Checks of definitions that AWS makes when a state machine is created, and moto 5.2.5 does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from moto.core.exceptions import AWSError
from moto.stepfunctions.parser import api
from moto.stepfunctions.parser.models import StepFunctionsParserBackend

from orchestration.local.engine.seams import replace
from orchestration.local.engine.services import (
    OPTIMISED_BY_MOTO,
    OPTIMISED_SAGEMAKER,
    SYNC_JOBS,
    api_name,
    operations,
)

LONGEST_DEFINITION = 1_048_576
LONGEST_STATE_NAME = 80
_RESOURCE = re.compile(
    r"arn:[\w-]+:states:[\w-]*:\d*:(?P<service>[\w-]+):(?P<action>[\w:-]+?)"
    r"(?:\.(?P<pattern>sync:2|sync|waitForTaskToken))?$"
)


def problems(definition: str) -> list[str]:
    """Return the problems of a definition, each with its JSON path."""
    if len(definition) > LONGEST_DEFINITION:
        return [f"the definition has {len(definition)} characters, more than {LONGEST_DEFINITION}"]
    try:
        machine = json.loads(definition)
    except ValueError as error:
        return [f"INVALID_JSON_DESCRIPTION: {error}"]
    return list(_machine(machine, ""))


def _machine(machine: Any, path: str) -> Iterator[str]:
    states = machine.get("States") if isinstance(machine, Mapping) else None
    if not isinstance(states, Mapping) or not states:
        yield f"MISSING_STATES at {path or '/'}"
        return
    targets = [(f"{path}/StartAt", machine.get("StartAt"))]
    for name, state in states.items():
        where = f"{path}/States/{name}"
        if len(name) > LONGEST_STATE_NAME:
            yield f"the state name at {where} is longer than {LONGEST_STATE_NAME} characters"
        targets += _targets(state, where)
        yield from _integration(state, where)
        for below, inner in _inner_machines(state, where):
            yield from _machine(inner, below)
    for where, target in targets:
        if target not in states:
            yield f"MISSING_TRANSITION_TARGET: Missing 'Next' target: {target} at {where}"


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


def _integration(state: Mapping[str, Any], where: str) -> Iterator[str]:
    resource = state.get("Resource")
    if state.get("Type") != "Task" or not isinstance(resource, str):
        return
    match = _RESOURCE.match(resource)
    if match is None or match["service"] in ("activity",):
        return
    if not _is_known(match["service"], match["action"], match["pattern"]):
        yield (
            f"SCHEMA_VALIDATION_FAILED: The resource provided {resource} is not recognized. "
            "The value is not a valid resource ARN, or the resource is not available in this "
            f"region. at {where}/Resource"
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


def install() -> None:
    """Check definitions when a state machine is created or updated."""
    stock = StepFunctionsParserBackend._validate_definition

    def validate(definition: str) -> None:
        reasons = problems(definition)
        if not reasons:
            try:
                stock(definition)
            except api.InvalidDefinition as error:
                reasons = [str(error.message)]
        if reasons:
            raise InvalidDefinition("Invalid State Machine Definition: " + "; ".join(reasons))

    replace(StepFunctionsParserBackend, "_validate_definition", staticmethod(validate))
