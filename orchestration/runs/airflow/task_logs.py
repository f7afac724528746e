"""The logs that Airflow keeps of tasks themselves, which tell what failed before or after a job."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.errors import StartError
from orchestration.runs.airflow.api import Api
from orchestration.runs.logs import Event

_GROUPS: Final = ("::group::", "::endgroup::")
_BEGUN: Final = frozenset(
    {"success", "failed", "running", "deferred", "up_for_retry", "up_for_reschedule"}
)
"""Instances in any other state may have no log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLog:
    """The log of a task instance, of its last try."""

    task: str
    """With the index of a loop's element: ``evaluate.each[2]``."""
    state: str
    try_number: int
    events: tuple[Event, ...]
    error: str = ""
    cause: str = ""
    """Why it failed, where that was asked for."""


class TaskLogs:
    """The logs of the tasks of a run."""

    def __init__(self, api: Api, run: Sequence[str]) -> None:
        self._api = api
        self._run = run

    def of(self, instances: Sequence[Mapping[str, Any]]) -> list[TaskLog]:
        """Return the logs of those that have begun, in the order of their starts."""
        begun = [each for each in instances if each["state"] in _BEGUN and each["start_date"]]
        return [
            _log(each, tuple(self._events(each)))
            for each in sorted(begun, key=lambda each: str(each["start_date"]))
        ]

    def of_failed(self, instance: Mapping[str, Any]) -> TaskLog:
        """Return the log of a task that failed, and why it did; never an error.

        The task itself tells why, or else the last line of its log.
        """
        try:
            events = tuple(self._events(instance)) if instance["start_date"] else ()
        except StartError as error:
            events = (
                Event(datetime.datetime.now(datetime.UTC), f"the log can't be read: {error}"),
            )
        log = _log(instance, events)
        end = events[-1].message if events else "it has logged nothing"
        told = self._told(instance)
        if told is None:
            return replace(log, error="TaskFailed", cause=f"{log.task}: {end}")
        return replace(log, error=str(told["error"]), cause=str(told.get("cause", "")))

    def _told(self, instance: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return what a task has told of its failure."""
        path = (*self._path(instance), "xcomEntries", "error")
        try:
            value = self._api.get(*path, **_index(instance))["value"]
        except StartError:
            return None  # It has told nothing, or who asks may not read it.
        return value if isinstance(value, Mapping) and "error" in value else None

    def _path(self, instance: Mapping[str, Any]) -> tuple[str, ...]:
        return (*self._run, "taskInstances", instance["task_id"])

    def _events(self, instance: Mapping[str, Any]) -> Iterator[Event]:
        # A task that goes on always has more to come: what there is now is asked for at once.
        answer = self._api.get(
            *self._path(instance),
            "logs",
            str(instance["try_number"]),
            full_content="true",
            **_index(instance),
        )
        at = datetime.datetime.fromisoformat(instance["start_date"])
        for message in answer["content"]:
            entry = message if isinstance(message, Mapping) else {"event": str(message)}
            if entry["event"].startswith(_GROUPS) or "sources" in entry:
                continue
            if entry.get("timestamp"):
                at = datetime.datetime.fromisoformat(entry["timestamp"])
            for line in (entry["event"], *_raised(entry)):
                yield Event(at, line)


def _log(instance: Mapping[str, Any], events: tuple[Event, ...]) -> TaskLog:
    return TaskLog(
        task=_named(instance),
        state=instance["state"],
        try_number=instance["try_number"],
        events=events,
    )


def _named(instance: Mapping[str, Any]) -> str:
    index = instance["map_index"]
    return f"{instance['task_id']}[{index}]" if index >= 0 else str(instance["task_id"])


def _index(instance: Mapping[str, Any]) -> dict[str, int]:
    return {"map_index": instance["map_index"]}


def _raised(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the exceptions of a message, that which was raised last at the end."""
    for each in reversed(entry.get("error_detail") or ()):
        yield f"{each.get('exc_type')}: {each.get('exc_value')}"
