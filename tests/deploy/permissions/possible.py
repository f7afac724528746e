"""Needs of the calls that a pipeline can make, and the statements that none of them needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from orchestration import Pipeline
from orchestration.deploy.permissions.patterns import Known
from orchestration.deploy.permissions.requests import calls
from orchestration.errors import ExpressionError
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.local import RecordedCall
from orchestration.local.iam.needs import action, needs
from orchestration.local.policies.evaluation import Need, allows
from tests.deploy.pipelines import ACCOUNT, PARAMETERS


def superfluous(policy: Mapping[str, Any], needed: list[Need]) -> list[str]:
    """The statements without which everything is allowed as well."""
    statements = policy["Statement"]
    # A stand-in for a name is refused where the name is a condition.
    needed = [need for need in needed if allows([policy], need)]
    return [
        each["Sid"]
        for each in statements
        if all(
            allows([{"Statement": [other for other in statements if other is not each]}], need)
            for need in needed
        )
    ]


def needs_of(pipeline: Pipeline, call: RecordedCall) -> list[Need]:
    """What IAM asks for when a run of a pipeline makes a call."""
    own = {"aws:ResourceTag/orchestration:pipeline": pipeline.name}
    account, region = ACCOUNT.id, ACCOUNT.region
    try:
        needed = needs(call.service, call.operation, call.request, account, region)
    except LookupError:  # Where IAM is enforced, it asks for the action alone.
        needed = [Need(action(call.service, call.operation), "")]
    return [Need(need.action, need.resource, {**own, **need.context}) for need in needed]


def possible(pipeline: Pipeline) -> Iterator[Need]:
    """What the calls need that this run need not have made: stops, other branches, clean-ups."""
    known = Known(parameters=PARAMETERS, listings={})
    values = _Anything({}, PARAMETERS, "0123456789ab", {"Key": "set/x", "Prefix": "x/"})
    for _, operation, _ in calls(pipeline.lower().graph, known):
        with contextlib.suppress(ExpressionError):
            request = evaluate(operation.request, values)
            assert isinstance(request, dict)
            call = RecordedCall(0, operation.service, operation.name, request, 200)
            yield from needs_of(pipeline, call)


class _Anything(Values):
    """Names that only a service gives; no row of a report."""

    def result(self, step: str, output: str) -> Any:
        if output == "key":
            return None
        if output == "targets":
            return []
        return "arn:aws:datasync:us-east-1:123456789012:task/task-1/execution/exec-1"
