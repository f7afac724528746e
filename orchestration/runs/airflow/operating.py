"""Runs of a pipeline's DAG: what commands do with them, said in requests to Airflow."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from orchestration.backends.airflow.spec import ERROR, INPUTS, PERFORMED, SKIPPED
from orchestration.direct.stages import RunState
from orchestration.errors import StartError
from orchestration.expressions import Json
from orchestration.expressions.evaluate import run_token
from orchestration.graph import ForEach, Graph, Guarded, all_steps, stage_of
from orchestration.runs.airflow.api import Api, Refused
from orchestration.runs.airflow.task_instances import ENDED, OURS, Instance, steps, to_come
from orchestration.runs.airflow.task_logs import TaskLog, TaskLogs
from orchestration.runs.operating import Again, Listed, Started, Stopped
from orchestration.runs.progress import Progress

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_FAILED: Final = ("failed", "up_for_retry")
_SHOWN: Final = 4
"""Failed tasks whose logs are read: those that failed first tell why."""
_RUNNING: Final = ("queued", "running")
_STATES: Final[Mapping[str, RunState]] = {"success": "succeeded", "failed": "failed"}


class DagRuns:
    """The runs of a DAG that is a whole pipeline, under the pipeline's name."""

    id_key = "dag_run"

    def __init__(self, dag: str, api: Api) -> None:
        self._dag = dag
        self._api = api

    def listed(self, most: int) -> Sequence[Listed]:
        """List them, the newest first."""
        path = ("dags", self._dag, "dagRuns")
        found = [*self._api.every("dag_runs", *path, most=most, order_by="-run_after")]
        skipped = self._skipped(found)
        failed = self._failed(found)
        return [
            Listed(
                id=f"{self._dag}/{run['dag_run_id']}",
                name=f"{self._dag}/{run['dag_run_id']}",
                status="skipped" if run["dag_run_id"] in skipped else run["state"],
                started=_moment(run["start_date"]),
                ended=_moment(run["end_date"]),
                error=failed.get(run["dag_run_id"], ("", ""))[0],
                cause=skipped.get(run["dag_run_id"]) or failed.get(run["dag_run_id"], ("", ""))[1],
            )
            for run in found
        ]

    def _skipped(self, runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return the reason for each of some runs that was skipped: a success, for Airflow."""
        succeeded = {
            run["dag_run_id"]: run["run_after"] for run in runs if run["state"] == "success"
        }
        if not succeeded:
            return {}
        since = min(succeeded.values())
        kept = self._kept(INPUTS, SKIPPED, since)
        names = succeeded.keys() & {entry["run_id"] for entry in kept}
        others = {name: self._api.get(*self._xcoms(name), SKIPPED)["value"] for name in names}
        return {name: f"{self._dag}/{other} was under way" for name, other in others.items()}

    def _failed(self, runs: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
        """Return the error and the cause that the first failed task of each failed run has left."""
        failed = {run["dag_run_id"]: run["run_after"] for run in runs if run["state"] == "failed"}
        if not failed:
            return {}
        kept = self._kept("~", ERROR, min(failed.values()))
        first: dict[str, Mapping[str, Any]] = {}
        for entry in sorted(kept, key=lambda each: each["timestamp"]):
            if entry["run_id"] in failed:
                first.setdefault(entry["run_id"], entry)
        left = {
            run: self._api.get(
                *self._xcoms(run, entry["task_id"]), ERROR, map_index=entry["map_index"]
            )["value"]
            for run, entry in first.items()
        }
        return {run: (value["error"], value["cause"]) for run, value in left.items()}

    def _kept(self, task: str, key: str, since: str) -> Iterator[Mapping[str, Any]]:
        """Yield what tasks have left under a key, without its values."""
        path = self._xcoms("~", task)
        return self._api.every("xcom_entries", *path, xcom_key=key, run_after_gte=since)

    def _xcoms(self, run: str, task: str = INPUTS) -> tuple[str, ...]:
        return ("dags", self._dag, "dagRuns", run, "taskInstances", task, "xcomEntries")

    def start(self, _: Pipeline, values: Mapping[str, Json], run: str | None) -> Started:
        """Start one; one of this name that has not ended is found."""
        dag = self._api.get("dags", self._dag)
        # Airflow wants the field; it is for runs about an interval of data.
        body: dict[str, Json] = {"logical_date": None, "conf": dict(values)}
        if run is not None:
            body["dag_run_id"] = run
        try:
            started = self._api.post("dags", self._dag, "dagRuns", body=body)
        except Refused as error:
            if error.status != 409 or run is None:
                raise
            started = self._run(run)
            if started["state"] not in _RUNNING or started["conf"] != body["conf"]:
                raise StartError(
                    f"run {run} of {self._dag} has been started before, with other parameters or "
                    "to its end; name another, or start a failed one again with `orchestrate rerun`"
                ) from error
        paused = (f"DAG {self._dag} is paused: its runs wait",) if dag["is_paused"] else ()
        return Started(id=f"{self._dag}/{started['dag_run_id']}", warnings=paused)

    def stop(self, run: str) -> Stopped:
        """Mark one as failed, so that its tasks stop their jobs."""
        name = self._own(run)
        running = self._run(name)["state"] in _RUNNING
        if running:
            self._api.patch("dags", self._dag, "dagRuns", name, body={"state": "failed"})
        return Stopped(id=f"{self._dag}/{name}", was_running=running)

    def rerun(self, run: str) -> Again:
        """Clear all tasks of a failed one: jobs that finished are adopted, others started anew.

        All, since what a run had acquired, such as a file system, is gone with its failure.
        """
        name = self._own(run)
        state = self._run(name)["state"]
        if state != "failed":
            raise StartError(f"run {name} of {self._dag} has not failed, it is {state}")
        body: dict[str, Json] = {"dry_run": False, "only_failed": False}
        self._api.post("dags", self._dag, "dagRuns", name, "clear", body=body)
        return Again(id=f"{self._dag}/{name}", run=name)

    def watched(self, pipeline: Pipeline, /, run: str) -> DagRun:
        """Return one to be looked at."""
        name = self._own(run)
        self._run(name)
        return DagRun(pipeline, self._dag, name, self._api)

    def _own(self, run: str) -> str:
        """Return the id of a run that is named by it, or by ``DAG/RUN``."""
        return run.removeprefix(f"{self._dag}/")

    def _run(self, name: str) -> Any:
        return self._api.get("dags", self._dag, "dagRuns", name)


class DagRun:
    """A run of a DAG that is looked at again and again."""

    def __init__(self, pipeline: Pipeline, dag: str, run: str, api: Api) -> None:
        graph = pipeline.lower().graph
        self._last = _releasing(graph)
        self._goes_together = _goes_together(graph)
        self._path = ("dags", dag, "dagRuns", run)
        self._api = api
        self._logs = TaskLogs(api, self._path)
        self._ended: dict[str, TaskLog] = {}
        self._known: dict[str, Mapping[str, str]] = {}  # By the key of the XCom.
        self.name = f"{dag}/{run}"
        self.token = run_token(self.name)

    def look(self) -> Progress:
        """Ask for the state of the run and of its tasks."""
        run = self._api.get(*self._path)
        entries = self._instances()
        performed = self._performed(entries)
        instances = [
            Instance(
                each["task_id"],
                each["state"] or "",
                each["start_date"],
                each["end_date"],
                performed.get(_place(each), {}),
            )
            for each in entries
        ]
        state = _STATES.get(run["state"], "running")
        failed = self._failed(entries)
        first = failed[0] if failed and state == "failed" else None
        return Progress(
            state=state,
            started=_moment(run["start_date"]),
            ended=_moment(run["end_date"]),
            begun=_moment(run["run_after"]),  # Clearing its tasks sets a new start.
            error=first.error if first else "TaskFailed" if state == "failed" else "",
            cause=first.cause if first else "",
            steps=tuple(steps(instances)),
            to_come=frozenset(to_come(instances, self._last)),
            parameters=run.get("conf") or {},
            logs={log.task: [event.message for event in log.events] for log in failed},
        )

    def task_logs(self, stage: str, *, failed: bool) -> list[TaskLog]:
        """Return what tasks of a stage have logged: those that failed, or all that have begun."""
        own = [each for each in self._instances() if each["task_id"].partition(".")[0] == stage]
        return self._logs.of([each for each in own if not failed or each["state"] in _FAILED])

    def _instances(self) -> list[Mapping[str, Any]]:
        return list(self._api.every("task_instances", *self._path, "taskInstances"))

    def _performed(
        self, instances: Sequence[Mapping[str, Any]]
    ) -> Mapping[tuple[str, int], Mapping[str, str]]:
        """Return how the steps ended of each instance that performs those of several stages.

        Only of those that have ended: what an attempt has left stays until the next one begins.
        """
        ended = {_place(each) for each in instances if each["state"] in ENDED}
        if not self._goes_together or not ended:
            return {}
        path = (*self._path, "taskInstances", "~", "xcomEntries")
        entries = self._api.every("xcom_entries", *path, xcom_key_pattern=PERFORMED)
        left = {
            _place(entry): entry
            for entry in entries
            if _place(entry) in ended and entry["key"].startswith(PERFORMED)
        }
        for entry in left.values():
            if entry["key"] not in self._known:
                self._learn(entry)
        return {place: self._known.get(entry["key"], {}) for place, entry in left.items()}

    def _learn(self, entry: Mapping[str, Any]) -> None:
        """Ask for the value of an XCom whose key stands for its value."""
        place = ("taskInstances", entry["task_id"], "xcomEntries", entry["key"])
        try:
            answer = self._api.get(*self._path, *place, map_index=entry["map_index"])
        except Refused as error:
            if error.status != 404:
                raise
            # Another attempt has begun since it was listed.
        else:
            self._known[entry["key"]] = answer["value"]

    def _failed(self, instances: Sequence[Mapping[str, Any]]) -> list[TaskLog]:
        """Return the logs of the tasks that failed first; those of stages, if there are any."""
        failed = [each for each in instances if each["state"] == "failed"]
        of_stages = [each for each in failed if each["task_id"] not in (*OURS, "leftovers")]
        first = sorted(of_stages or failed, key=lambda each: each["end_date"] or "")[:_SHOWN]
        for each in first:
            # What has failed logs nothing more; it may be cleared, and fail once more.
            if each["id"] not in self._ended:
                self._ended[each["id"]] = self._logs.of_failed(each)
        return [self._ended[each["id"]] for each in first]


def _releasing(graph: Graph) -> frozenset[str]:
    """Return the steps that release what others have acquired."""
    guards = (step for step in all_steps(graph) if isinstance(step, Guarded))
    return frozenset(step.name for guard in guards for step in all_steps(guard.cleanup))


def _place(entry: Mapping[str, Any]) -> tuple[str, int]:
    """Return the task and the index of an instance, or of what one has left."""
    return entry["task_id"], entry["map_index"]


def _goes_together(graph: Graph) -> bool:
    """Return whether several stages go through a list together, which one task may perform."""
    loops = (step for step in all_steps(graph) if isinstance(step, ForEach))
    inside = ({stage_of(step.name) for step in all_steps(loop.body)} for loop in loops)
    return any(len(stages) > 1 for stages in inside)


def _moment(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text)
