"""File systems: found and recognised by their tags, deleted as their guard would have.

What FSx still does for a file system is cancelled, since it refuses to delete it meanwhile. One
that is kept for some hours gets a tag with the time at which a companion first saw that its run had
ended, so that the hours count from there.
"""

from __future__ import annotations

from typing import Final

from orchestration.backends.companion.writing import (
    NEXT_PAGE,
    State,
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
from orchestration.cleanup import KEEP, MACHINE, PIPELINE, RUN, Leftovers
from orchestration.expressions import Json

ENDED: Final = "orchestration:ended"
"""The tag of a kept file system: its run, a blank, and the time at which that was seen ended."""
_POLLS: Final = 120
"""Every half minute: an hour, for a deletion that takes minutes."""
_GONE: Final = "FSx.FileSystemNotFoundException"
_UNKEPT: Final = "($not($exists(keep)) or keep = '0')"
_BUSY: Final[State] = {
    "ErrorEquals": ["FSx.BadRequestException"],
    "IntervalSeconds": 30,
    "BackoffRate": 1.0,
    "MaxAttempts": 120,
}
"""FSx refuses to delete a file system while one of its tasks ends."""


def finding(left: Leftovers, pipeline: str, following: str) -> dict[str, State]:
    """Return the states that collect the file systems of the state machine, as ``$systems``."""
    if not left.file_systems:
        return {}
    own = (
        f"Lifecycle != 'DELETING' and {tag(PIPELINE)} = {quote(pipeline)}"
        f" and {tag(MACHINE)} = $machine"
    )
    item = (
        f"{{'id': FileSystemId, 'arn': ResourceARN, 'run': {tag(RUN)}, 'keep': {tag(KEEP)}, "
        f"'ended': {tag(ENDED)}}}"
    )
    listing = task(
        "fsx",
        "DescribeFileSystems",
        pages("{'MaxResults': 50}"),
        Assign={
            "systems": enclosed(f"[$systems, $states.result.FileSystems[{own}].{item}]"),
            "page": NEXT_PAGE,
        },
    )
    return paged("FindFileSystems", listing, following)


def releasing(left: Leftovers) -> dict[str, State]:
    """Return the state that deletes file systems of ended runs; it collects ``$problems``."""
    if not left.file_systems:
        return {}
    states: dict[str, Json] = {**_keeping(), **_emptying(), **_deleting()}
    collected = {"problems": enclosed("[$problems, $states.result[$ != '']]")}
    # Runs share one that is kept, and its tag names only the last that took it.
    free = f"{_UNKEPT} or $count($live) = 0"
    items = f"[$systems[$not(run in $live) and ({free})]]"
    return {"DeleteFileSystems": each(items, "FileSystem", states, Assign=collected)}


def _keeping() -> dict[str, Json]:
    seen = "$substringBefore($system.ended & ' ', ' ') = $system.run"
    since = "$toMillis($substringAfter($system.ended, ' '))"
    over = f"{since} + $number($system.keep) * 3600000 <= $millis()"
    mark: Json = {
        "ResourceARN": enclosed("$system.arn"),
        "Tags": [{"Key": ENDED, "Value": enclosed("$system.run & ' ' & $now()")}],
    }
    first: State = {
        "Type": "Pass",
        "Assign": {"system": enclosed("$states.input"), "polls": 0},
        "Next": "FileSystemKept",
    }
    return {
        "FileSystem": first,
        "FileSystemKept": choice(
            (f"$system.({_UNKEPT})", "FindTasks"),
            (f"$not({seen})", "MarkEnd"),
            (over, "FindTasks"),
            default="FileSystemDone",
        ),
        "MarkEnd": task(
            "fsx",
            "TagResource",
            mark,
            Catch=[caught("FileSystemNotDeleted")],
            Next="FileSystemDone",
        ),
    }


def _emptying() -> dict[str, Json]:
    filters: Json = [
        {"Name": "file-system-id", "Values": [enclosed("$system.id")]},
        {"Name": "task-lifecycle", "Values": ["PENDING", "EXECUTING"]},
    ]
    running = "DataRepositoryTasks[0].TaskId"
    return {
        # Whatever these are answered, the file system is deleted.
        "FindTasks": task(
            "fsx",
            "DescribeDataRepositoryTasks",
            {"Filters": filters},
            Catch=[caught("DeleteFileSystem")],
            Next="FileSystemBusy",
        ),
        "FileSystemBusy": choice(
            (f"$exists($states.input.{running})", "CancelTask"), default="DeleteFileSystem"
        ),
        "CancelTask": task(
            "fsx",
            "CancelDataRepositoryTask",
            {"TaskId": enclosed(f"$states.input.{running}")},
            Catch=[caught("DeleteFileSystem")],
            Next="DeleteFileSystem",
        ),
    }


def _deleting() -> dict[str, Json]:
    gone = caught("FileSystemDone", _GONE)
    words = "$system.id & ': ' & $states.input.Error & ': ' & $states.input.Cause"
    stays = "$states.input.FileSystems[0].Lifecycle = 'FAILED'"
    return {
        "DeleteFileSystem": task(
            "fsx",
            "DeleteFileSystem",
            {"FileSystemId": enclosed("$system.id")},
            _BUSY,
            Catch=[gone, caught("FileSystemNotDeleted")],
            Next="AwaitDeletion",
        ),
        "AwaitDeletion": {
            "Type": "Wait",
            "Seconds": 30,
            "Assign": {"polls": enclosed("$polls + 1")},
            "Next": "FileSystemGone",
        },
        "FileSystemGone": task(
            "fsx",
            "DescribeFileSystems",
            {"FileSystemIds": [enclosed("$system.id")]},
            Catch=[gone, caught("FileSystemNotDeleted")],
            Next="FileSystemStays",
        ),
        "FileSystemStays": choice(
            (f"{stays} or $polls >= {_POLLS}", "FileSystemNotGone"), default="AwaitDeletion"
        ),
        "FileSystemNotGone": ended(enclosed("$system.id & ' was not deleted'")),
        "FileSystemNotDeleted": ended(enclosed(words)),
        "FileSystemDone": ended(),
    }
