"""The journal of a task: the steps done before it was deferred, and the jobs it waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from orchestration.airflow.watches import (
    place_from_json,
    place_to_json,
    verdict_from_json,
    watch_from_json,
    watch_to_json,
)
from orchestration.errors import RunError
from orchestration.execution.effects import Broke, Outputs, Place, Rest, Verdict, Watch

if TYPE_CHECKING:
    from airflow.sdk import Context

MOST_BYTES = 16 * 1024
"""The most that travels in a deferral's arguments, which lie in the database's task instance. More
is left as an XCom, which survives a deferral (and not a retry, which begins anew)."""
_KEY = "progress"
_LEFT = "xcom"
"""The argument of a deferral whose journal is an XCom."""


@dataclass(slots=True)
class Journal:
    """The finished steps of an attempt, by path, and the jobs and moments that it waits for."""

    finished: dict[str, Outputs] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    """The names of steps that have ended well, of those inside of loops too."""
    begun: set[str] = field(default_factory=set)
    """The paths of steps that have begun, and not ended well."""
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Error and cause of steps that failed while others beside them went on."""
    watches: dict[str, Watch] = field(default_factory=dict)
    rests: dict[str, float] = field(default_factory=dict)
    """Moments that steps wait for which only let time pass."""
    places: dict[str, Place] = field(default_factory=dict)
    """The places where calls go on that wait for capacity."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """The ends of jobs that the trigger has followed."""

    def recalled(self, path: str) -> Outputs | None:
        """Return the outputs of a step that is done, ``None`` where it is not.

        Raises :class:`~orchestration.errors.RunError` where it has failed: what runs beside it went
        on, and may have made the task wait meanwhile.
        """
        if path in self.failed:
            raise RunError(*self.failed[path])
        return self.finished.get(path)

    def resumed(self, path: str) -> Watch | Rest | None:
        """Return what a step waits for: a job, or the pause between two rounds."""
        if path in self.places:
            return Rest(path, 0.0, self.places[path])
        return self.watches.get(path)

    def rested(self, path: str) -> None:
        """Note that the pause between two rounds of a step is over."""
        self.places.pop(path, None)
        self.rests.pop(path, None)

    def begin(self, path: str) -> None:
        """Note that a step has begun, unless it was done before a deferral."""
        if path not in self.finished:
            self.begun.add(path)

    def performed(self) -> dict[str, str]:
        """Return how each step has ended, where the task has: in Airflow's words."""
        failed = {_name(path) for path in self.begun}
        return {**dict.fromkeys(self.done, "success"), **dict.fromkeys(failed, "failed")}

    def broke(self, broke: Broke) -> None:
        """Note that a step has failed for good."""
        if not broke.passing:
            self.failed[broke.path] = (broke.error, broke.cause)

    def finish(self, path: str, outputs: Outputs) -> None:
        """Note that a step is done; what was done inside of it no longer matters."""
        inside = f"{path}["
        for inner in [other for other in self.finished if other.startswith(inside)]:
            del self.finished[inner]
        self.finished[path] = outputs
        self.done.add(_name(path))
        self.begun.discard(path)
        self.watches.pop(path, None)
        self.rests.pop(path, None)

    def saved(self, context: Context) -> str:
        """Return it as an argument of a deferral: text, which nobody reads keys in as their own."""
        document = {
            "finished": dict(self.finished),
            "done": sorted(self.done),
            "failed": self.failed,
            "watches": {path: watch_to_json(watch) for path, watch in self.watches.items()},
            "rests": self.rests,
            "places": {path: place_to_json(place) for path, place in self.places.items()},
        }
        text = json.dumps(document)
        if len(text) <= MOST_BYTES:
            return text
        context["ti"].xcom_push(key=_KEY, value=text)
        return _LEFT

    @classmethod
    def loaded(cls, context: Context, saved: str, event: Mapping[str, Any]) -> Journal:
        """Return the journal that was saved, with what a trigger has learned since."""
        if saved == _LEFT:
            ti = context["ti"]
            saved = cast(str, ti.xcom_pull(task_ids=ti.task_id, key=_KEY, map_indexes=ti.map_index))
        document = json.loads(saved)
        return cls(
            finished=dict(document.get("finished", {})),
            done=set(document.get("done", ())),
            failed={path: tuple(failure) for path, failure in document.get("failed", {}).items()},
            watches={
                path: watch_from_json(watch) for path, watch in document.get("watches", {}).items()
            },
            rests=dict(document.get("rests", {})),
            places={
                path: place_from_json(place) for path, place in document.get("places", {}).items()
            },
            verdicts={
                path: verdict_from_json(verdict)
                for path, verdict in json.loads(event.get("verdicts", "{}")).items()
            },
        )


def _name(path: str) -> str:
    """Return the name of a step."""
    return path.rpartition("/")[2]
