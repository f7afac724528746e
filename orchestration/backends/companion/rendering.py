"""The definition of a companion.

It is started without input and looks at everything that executions of the pipeline's state machine
have created, so that events may be lost, late, or come twice. It finds resources first, and asks a
minute later which executions run: listings of executions are eventually consistent, and one that
created a resource is listed by then. What belongs to a run that goes on (in another execution, too)
is left alone, and so is what no execution of this state machine created.
"""

from __future__ import annotations

from typing import Final

from orchestration.backends.companion import copies, file_systems, jobs, transfers, trials
from orchestration.backends.companion.writing import (
    NEXT_PAGE,
    State,
    choice,
    each,
    paged,
    pages,
    task,
)
from orchestration.backends.jsonata import enclosed, quote
from orchestration.backends.stepfunctions.parameters import RUN
from orchestration.backends.stepfunctions.partitions import in_region
from orchestration.cleanup import COMPANION, Leftovers, leftovers
from orchestration.expressions import Json
from orchestration.graph import Workflow

SUFFIX: Final = COMPANION
"""The end of a companion's name, after the pipeline's."""
_SETTLE_S: Final = 60
"""The seconds after its start in which an execution may be missing in a listing."""


def render(workflow: Workflow) -> dict[str, Json] | None:
    """Return the definition of a pipeline's companion; ``None``: its runs leave nothing."""
    left = leftovers(workflow.graph)
    if not left:
        return None
    found = jobs.finding(left, "AnythingLeft")
    following = next(iter(found), "AnythingLeft")
    found = transfers.finding(left, following) | found
    following = next(iter(found), following)
    found = copies.finding(left, following) | found
    following = next(iter(found), following)
    found = trials.finding(left, following) | found
    following = next(iter(found), following)
    found = file_systems.finding(left, workflow.name, following) | found
    counted = [f"$count(${kind})" for kind in ("jobs", "systems", *_others(left))]
    states = {
        "Begin": _begin(workflow.name, _others(left), next(iter(found))),
        **found,
        "AnythingLeft": choice((f"{' + '.join(counted)} = 0", "Done"), default="Settle"),
        **_running(_released(left)),
    }
    comment = f"Stops and deletes what ended executions of {workflow.name} have left."
    if left.unknown:
        comment += f" It can't find what these steps start: {', '.join(left.unknown)}."
    definition: dict[str, Json] = {
        "Comment": comment,
        "QueryLanguage": "JSONata",
        "StartAt": "Begin",
        "States": {**states},
    }
    return in_region(definition, workflow.region)


def _others(left: Leftovers) -> tuple[str, ...]:
    """Return the variables with what only few pipelines leave."""
    kinds = {"transfers": left.transfers, "copies": left.copies, "trials": left.trials}
    return tuple(kind for kind, prefixes in kinds.items() if prefixes)


def _begin(pipeline: str, more: tuple[str, ...], following: str) -> State:
    mark = quote(":stateMachine:")
    place = f"$substringBefore($states.context.StateMachine.Id, {mark})"
    assigned: State = {
        "machine": enclosed(f"{place} & {quote(f':stateMachine:{pipeline}')}"),
        "jobs": [],
        "systems": [],
        "executions": [],
        "problems": [],
        **{kind: [] for kind in more},
        "page": {},
    }
    return {"Type": "Pass", "Assign": assigned, "Next": following}


def _running(released: dict[str, State]) -> dict[str, State]:
    """Return the states that learn which runs go on, as ``$live``."""
    request = "{'StateMachineArn': $machine, 'StatusFilter': 'RUNNING', 'MaxResults': 200}"
    listing = task(
        "stepfunctions",
        "ListExecutions",
        pages(request),
        Assign={
            "executions": enclosed("[$executions, $states.result.Executions.ExecutionArn]"),
            "page": NEXT_PAGE,
        },
    )
    # As the state machine itself derives the identity of its run.
    given = f"$lookup($parse($states.result.Input), {quote(RUN)})"
    name = f"($v := {given}; $v ? '' & $v : $states.result.ExecutionArn)"
    described = task(
        "stepfunctions",
        "DescribeExecution",
        {"ExecutionArn": enclosed("$states.input")},
        Output=enclosed(f"$substring($hash({name}, 'SHA-256'), 0, 12)"),
        End=True,
    )
    live: State = {"live": enclosed("[$states.result]")}
    runs = each("$executions", "ReadRun", {"ReadRun": described}, Assign=live)
    return {
        "Settle": {"Type": "Wait", "Seconds": _SETTLE_S, "Next": "FindExecutions"},
        **paged("FindExecutions", listing, "ReadRuns"),
        "ReadRuns": {**runs, "Next": next(iter(released))},
        **released,
    }


def _released(left: Leftovers) -> dict[str, State]:
    released = jobs.releasing(left) | transfers.releasing(left)
    released |= copies.releasing(left) | trials.releasing(left) | file_systems.releasing(left)
    steps = list(released.items())
    names = [*(name for name, _ in steps[1:]), "AllReleased"]
    return {
        **{name: {**step, "Next": after} for (name, step), after in zip(steps, names, strict=True)},
        "AllReleased": choice(("$count($problems) = 0", "Done"), default="NotReleased"),
        "NotReleased": {
            "Type": "Fail",
            "Error": "NotReleased",
            "Cause": enclosed("$join($problems, '; ')"),
        },
        "Done": {"Type": "Succeed"},
    }
