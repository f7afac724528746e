"""The checks of requests to Step Functions that moto leaves out."""

from __future__ import annotations

import json

from orchestration.checks import documented
from orchestration.checks.patterns import matches
from orchestration.local.account.protocol import Checked, JsonObject, Request
from orchestration.local.account.rules import broken
from orchestration.local.engine.machines.rules import RULES

_NAMED = ("CreateActivity", "CreateStateMachine", "StartExecution", "StartSyncExecution")
_LONGEST_NAME = 80
_MOST_TAGS = 50
_TAGGED = {"CreateStateMachine": "name", "TagResource": "resourceArn"}
"""The operations that tag, and what names the resource."""


class StepFunctions(Checked):
    """Step Functions: moto's engine answers what these checks let pass."""

    name = "stepfunctions"

    def check(self, request: Request) -> None:
        """Raise the service's error for a request that moto would accept."""
        values, operation = request.parameters, request.operation
        name = str(values.get("name") or "-")
        # Of a name that is too long, AWS says only that.
        fits = len(name) > _LONGEST_NAME or matches(documented.NAME, name)
        if operation in _NAMED and not fits:
            raise broken(RULES, "names", name=name)
        super().check(request)
        if operation in _TAGGED:
            _check_tags(request, str(values[_TAGGED[operation]]))
        if operation == "StartExecution" and "input" in values:
            _check_input(values)


def _check_tags(request: Request, resource: str) -> None:
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends

    tagger = stepfunctions_parser_backends[request.account][request.region].tagger
    keys = {tag["key"] for tag in request.parameters.get("tags") or ()}
    keys |= tagger.get_tag_dict_for_resource(resource).keys()
    if len(keys) > _MOST_TAGS:
        raise broken(RULES, "tags at most", machine=resource, count=len(keys))


def _check_input(values: JsonObject) -> None:
    if not values["input"]:
        raise broken(RULES, "inputs are JSON", reason="Invalid execution input.")
    try:
        json.loads(values["input"])
    except ValueError as error:
        raise broken(RULES, "inputs are JSON", reason=str(error)) from error
