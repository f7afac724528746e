"""Jobs that run: found by their names, recognised by their tags, stopped."""

from __future__ import annotations

from orchestration.backends.companion.writing import (
    NEXT_PAGE,
    State,
    alternatives,
    caught,
    choice,
    each,
    ended,
    paged,
    pages,
    tag,
    task,
)
from orchestration.backends.jsonata import enclosed, quote
from orchestration.cleanup import MACHINE, RUN, Jobs, Leftovers
from orchestration.expressions import Json

_ENDED = "$contains($states.input.Cause, 'is in status')"
"""SageMaker refuses to stop a job that has ended, and names its status."""
_PROBLEM = enclosed("$job.name & ': ' & $states.input.Error & ': ' & $states.input.Cause")


def finding(left: Leftovers, following: str) -> dict[str, State]:
    """Return the states that collect the running jobs, as ``$jobs``."""
    states: dict[str, State] = {}
    for jobs in reversed(left.jobs):
        found = _found(jobs, following)
        states = found | states
        following = next(iter(found))
    return states


def _found(jobs: Jobs, following: str) -> dict[str, State]:
    kind = jobs.kind
    named = f"'NameContains': {quote(jobs.common)}, " if jobs.common else ""
    request = f"{{{named}'StatusEquals': 'InProgress', 'MaxResults': 100}}"
    own = f"{kind.summaries}[$contains({kind.name}, {alternatives(jobs.prefixes)})]"
    item = f"{{'kind': '{kind.word}', 'name': {kind.name}, 'arn': {kind.arn}}}"
    listing = task(
        "sagemaker",
        kind.list,
        pages(request),
        Assign={"jobs": enclosed(f"[$jobs, $states.result.{own}.{item}]"), "page": NEXT_PAGE},
    )
    return paged(f"Find{kind.word}Jobs", listing, following)


def releasing(left: Leftovers) -> dict[str, State]:
    """Return the state that stops the jobs whose run has ended; it collects ``$problems``."""
    if not left.jobs:
        return {}
    own = f"{tag(MACHINE, '$states.result.Tags')} = $machine"
    live = f"{tag(RUN, '$states.result.Tags')} in $live"
    read = task(
        "sagemaker",
        "ListTags",
        {"ResourceArn": enclosed("$job.arn")},
        Output=enclosed(f"({own}) and $not({live})"),
        Catch=[caught("JobNotStopped")],
        Next="JobOfEndedRun",
    )
    stops = [(f"$job.kind = '{jobs.kind.word}'", f"Stop{jobs.kind.word}Job") for jobs in left.jobs]
    states: dict[str, Json] = {
        "Job": {"Type": "Pass", "Assign": {"job": enclosed("$states.input")}, "Next": "ReadTags"},
        "ReadTags": read,
        "JobOfEndedRun": choice(("$states.input", "StopJob"), default="JobDone"),
        "StopJob": choice(*stops[1:], default=stops[0][1])
        if len(stops) > 1
        else {"Type": "Pass", "Next": stops[0][1]},
        **{f"Stop{jobs.kind.word}Job": _stop(jobs) for jobs in left.jobs},
        "JobEnded": choice((_ENDED, "JobDone"), default="JobNotStopped"),
        "JobNotStopped": ended(_PROBLEM),
        "JobDone": ended(),
    }
    collected = {"problems": enclosed("[$problems, $states.result[$ != '']]")}
    return {"StopJobs": each("$jobs", "Job", states, Assign=collected)}


def _stop(jobs: Jobs) -> State:
    kind = jobs.kind
    return task(
        "sagemaker",
        kind.stop,
        {kind.name: enclosed("$job.name")},
        Catch=[caught("JobEnded")],
        Next="JobDone",
    )
