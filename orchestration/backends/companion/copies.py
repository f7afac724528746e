"""Jobs of S3 Batch Operations: found by their descriptions, recognised by their tags, cancelled."""

from __future__ import annotations

from typing import Final

from orchestration.backends.companion.writing import (
    NEXT_PAGE,
    State,
    alternatives,
    caught,
    each,
    paged,
    pages,
    recognised,
    task,
)
from orchestration.backends.jsonata import enclosed
from orchestration.cleanup import Leftovers
from orchestration.expressions import Json

_ACCOUNT: Final = "$split($machine, ':')[4]"
"""The account, which is a part of the ARN of every state machine."""
_UNDER_WAY: Final = "['Active', 'New', 'Paused', 'Pausing', 'Preparing', 'Ready', 'Suspended']"
_OVER: Final = "$contains($states.input.Error, 'JobStatus')"
"""A job that has ended is not cancelled."""


def finding(left: Leftovers, following: str) -> dict[str, State]:
    """Return the states that collect the jobs under way, as ``$copies``."""
    if not left.copies:
        return {}
    own = f"Jobs[$contains(Description, {alternatives(left.copies)})]"
    found = f"$states.result.{own}.{{'id': JobId, 'name': Description}}"
    listing = task(
        "s3control",
        "ListJobs",
        pages(f"{{'AccountId': {_ACCOUNT}, 'JobStatuses': {_UNDER_WAY}, 'MaxResults': 100}}"),
        Assign={"copies": enclosed(f"[$copies, {found}]"), "page": NEXT_PAGE},
    )
    return paged("FindCopies", listing, following)


def releasing(left: Leftovers) -> dict[str, State]:
    """Return the state that cancels the jobs of ended runs; it collects ``$problems``."""
    if not left.copies:
        return {}
    job: dict[str, Json] = {"AccountId": enclosed(_ACCOUNT), "JobId": enclosed("$copy.id")}
    reading = task("s3control", "GetJobTagging", job)
    states: dict[str, Json] = {
        **recognised("Copy", "CancelCopy", reading, gone=_OVER),
        "CancelCopy": task(
            "s3control",
            "UpdateJobStatus",
            {**job, "RequestedJobStatus": "Cancelled"},
            Catch=[caught("CopyGone")],
            Next="CopyDone",
        ),
    }
    collected = {"problems": enclosed("[$problems, $states.result[$ != '']]")}
    return {"CancelCopies": each("$copies", "Copy", states, Assign=collected)}
