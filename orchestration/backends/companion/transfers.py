"""Transfers of DataSync: tasks found by their names, recognised by their tags, ended and deleted.

A task's locations go with it. One that an execution made just before it was ended, and whose task
was not made any more, stays: it costs nothing, and only its tags would tell whose it is.
"""

from __future__ import annotations

from typing import Final

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
    recognised,
    task,
)
from orchestration.backends.jsonata import enclosed
from orchestration.cleanup import Leftovers
from orchestration.expressions import Json

_POLLS: Final = 240
"""Every quarter of a minute: an hour, for a cancellation that takes minutes."""
_GONE: Final = "$contains($states.input.Cause, 'not found')"


def finding(left: Leftovers, following: str) -> dict[str, State]:
    """Return the states that collect the tasks of the state machine, as ``$transfers``."""
    if not left.transfers:
        return {}
    own = f"Tasks[$contains(Name, {alternatives(left.transfers)})]"
    found = f"$states.result.{own}.{{'arn': TaskArn, 'name': Name}}"
    listing = task(
        "datasync",
        "ListTasks",
        pages("{'MaxResults': 100}"),
        Assign={"transfers": enclosed(f"[$transfers, {found}]"), "page": NEXT_PAGE},
    )
    return paged("FindTransfers", listing, following)


def releasing(left: Leftovers) -> dict[str, State]:
    """Return the state that ends the transfers of ended runs; it collects ``$problems``."""
    if not left.transfers:
        return {}
    of: Json = {"ResourceArn": enclosed("$transfer.arn")}
    reading = task("datasync", "ListTagsForResource", of)
    own = recognised("Transfer", "ReadTransfer", reading, gone=_GONE)
    states: dict[str, Json] = {**own, **_ending(), **_deleting()}
    collected = {"problems": enclosed("[$problems, $states.result[$ != '']]")}
    return {"EndTransfers": each("$transfers", "Transfer", states, Assign=collected)}


def _ending() -> dict[str, Json]:
    running = (
        "$exists($states.input.CurrentTaskExecutionArn) and $states.input.Status != 'AVAILABLE'"
    )
    execution = {"TaskExecutionArn": enclosed("$execution")}
    described: Json = {
        "source": enclosed("$states.result.SourceLocationArn"),
        "target": enclosed("$states.result.DestinationLocationArn"),
        "execution": enclosed(
            "$exists($states.result.CurrentTaskExecutionArn) ? "
            "$states.result.CurrentTaskExecutionArn : ''"
        ),
    }
    over = "$states.input.Status in ['SUCCESS', 'ERROR']"
    return {
        "ReadTransfer": task(
            "datasync",
            "DescribeTask",
            {"TaskArn": enclosed("$transfer.arn")},
            Assign=described,
            Catch=[caught("TransferGone")],
            Next="TransferRuns",
        ),
        "TransferRuns": choice((running, "CancelTransfer"), default="DeleteTransfer"),
        # It may be over by now.
        "CancelTransfer": task(
            "datasync",
            "CancelTaskExecution",
            execution,
            Catch=[caught("AwaitTransfer")],
            Next="AwaitTransfer",
        ),
        "AwaitTransfer": {
            "Type": "Wait",
            "Seconds": 15,
            "Assign": {"polls": enclosed("$polls + 1")},
            "Next": "TransferOver",
        },
        "TransferOver": task(
            "datasync",
            "DescribeTaskExecution",
            execution,
            Catch=[caught("TransferGone")],
            Next="TransferEnded",
        ),
        "TransferEnded": choice(
            (over, "DeleteTransfer"),
            (f"$polls >= {_POLLS}", "TransferGoesOn"),
            default="AwaitTransfer",
        ),
        "TransferGoesOn": ended(enclosed("$transfer.name & ' goes on after its cancellation'")),
    }


def _deleting() -> dict[str, Json]:
    def location(end: str, following: str) -> State:
        # Its deletion is no more than tidy: it may be another task's, too.
        return task(
            "datasync",
            "DeleteLocation",
            {"LocationArn": enclosed(f"${end}")},
            Catch=[caught(following)],
            Next=following,
        )

    return {
        "DeleteTransfer": task(
            "datasync",
            "DeleteTask",
            {"TaskArn": enclosed("$transfer.arn")},
            Catch=[caught("TransferGone")],
            Next="DeleteSource",
        ),
        "DeleteSource": location("source", "DeleteTarget"),
        "DeleteTarget": location("target", "TransferDone"),
    }
