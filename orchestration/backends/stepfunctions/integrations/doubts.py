"""Errors and warnings about fields of requests that Step Functions may not know."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.backends.stepfunctions.integrations.choosing import (
    asked,
    can_wait,
    is_synchronous,
    unsure,
)
from orchestration.backends.stepfunctions.integrations.table import UPDATED, NewField
from orchestration.errors import Problem
from orchestration.graph import (
    Call,
    Integration,
    Workflow,
    all_steps,
    candidates,
    stage_of,
)

_ENDS = "a field that it does not know ends the run with States.Runtime"
_ELSEWHERE = "leave it out, or run the pipeline on Airflow or directly"


def refused(workflow: Workflow) -> Iterator[Problem]:
    """Yield the fields that Step Functions is sure to refuse, and choices that choose nothing."""
    for call in _calls(workflow):
        integration = _integration(call, workflow)
        for field in unsure(call.operation, integration):
            if field.certainty(integration) == "refused" and not asked(call, workflow.integrations):
                yield Problem(
                    call.name,
                    f"{field.path} is in the API since {field.since}, later than the last update "
                    f"of Step Functions' integrations ({UPDATED}); {_ELSEWHERE}; or, if Step "
                    f"Functions has learnt it since, choose an integration for this stage: "
                    f"`integration: {{{stage_of(call.name)}: sdk}}`",
                )
    jobs = {stage_of(call.name) for call in _calls(workflow) if can_wait(call)}
    for stage in workflow.integrations.keys() - jobs - {""}:
        yield Problem(
            "", f"integration.{stage}: only stages with a job to wait for have a choice; remove it"
        )


def warnings(workflow: Workflow) -> list[Problem]:
    """Return the fields of which nobody says whether it knows them yet."""
    doubtful = (
        Problem(field.path, _doubt(field, integration), stage=stage_of(call.name))
        for call in _calls(workflow)
        for integration in (_integration(call, workflow),)
        for field in unsure(call.operation, integration)
        if field.certainty(integration) == "doubtful" or asked(call, workflow.integrations)
    )
    return [*dict.fromkeys(doubtful)]


def _doubt(field: NewField, integration: Integration) -> str:
    since = f"since {field.since}" if field.since else "since this release was made"
    name = field.operation.partition(":")[2]
    begins = f"{name} has this field {since}"
    if integration == "sync":
        doubt = "it is not known whether the .sync integration of Step Functions takes it"
        sends = f"; `integration: sdk` sends it by aws-sdk{_and_there(field)}"
    else:
        doubt = (
            "it is not known whether the aws-sdk integration of Step Functions, last updated on "
            f"{UPDATED}, takes it"
        )
        sends = f"; try it in a run that costs little, or {_ELSEWHERE}"
    return f"{begins}; {doubt}, and {_ENDS}{sends}"


def _and_there(field: NewField) -> str:
    known = field.certainty("sdk") == "known"
    return ", which takes it, and polls the job" if known else ", which may not know it either"


def _calls(workflow: Workflow) -> Iterator[Call]:
    for step in all_steps(workflow.graph):
        if isinstance(step, Call):
            yield from candidates(step)


def _integration(call: Call, workflow: Workflow) -> Integration:
    return "sync" if is_synchronous(call, workflow.integrations) else "sdk"
