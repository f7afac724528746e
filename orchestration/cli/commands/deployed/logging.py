"""``orchestrate logs``: the logs of a stage's jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.commands.deployed.places import Place
from orchestration.cli.commands.deployment import MODULES, session_of
from orchestration.cli.commands.rendering import Backend
from orchestration.cli.naming import named
from orchestration.cli.output import FAILED, INTERRUPTED, document, note, note_hint, require, say
from orchestration.errors import near

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline
    from orchestration.runs import Event, Job, Jobs, Logs, Stream
    from orchestration.runs.airflow import TaskLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The lines that a user asked for."""

    host: str | None
    tail: int | None
    follow: bool
    every_s: float
    as_json: bool


def logs(
    pipeline: str,
    stage: str,
    run_id: str,
    wanted: Wanted,
    place: Place,
) -> None:
    """Print the logs of a stage's jobs, and of its tasks on Airflow; exit with 1 without any."""
    if wanted.follow and wanted.as_json:
        raise typer.BadParameter("has no end to print a document at", param_hint="--follow")
    loaded = named(pipeline).load()
    check_stage(loaded, stage)
    require(MODULES, what="reading logs")
    from orchestration.runs import Jobs, Logs, error_of, tokens_of

    on_airflow = place.on is Backend.AIRFLOW
    run = place.dag_runs(loaded.name).watched(loaded, run_id) if on_airflow else None
    session = session_of(place.region or loaded.region, place.profile)
    tokens = tokens_of(loaded.name, run_id, session) if run is None else frozenset({run.token})
    reader = _Reader(
        Jobs(loaded, session.client("sagemaker")),
        Logs(session.client("logs")),
        stage,
        tokens,
        wanted,
    )
    jobs = reader.jobs()
    data: dict[str, Any] = {"pipeline": loaded.name, "stage": stage}
    if wanted.as_json:
        data["jobs"] = list(reader.data(jobs))
    elif jobs:
        _until_interrupted(reader, jobs)
    # After the jobs: a task may have failed since.
    tasks = [] if run is None else run.task_logs(stage, failed=bool(jobs))
    if not jobs and not tasks:
        what = "job" if run is None else "task"
        note(f"stage {stage} of run {run_id} of {loaded.name} has started no {what} (yet)")
        raise typer.Exit(FAILED)
    if wanted.as_json:
        document(data if run is None else {**data, "tasks": [_task_data(t, wanted) for t in tasks]})
        return
    for task in tasks:
        _print_task(task, wanted)
    error = error_of(loaded.name, run_id, session) if run is None else run.look().error
    note_hint(error)


def _until_interrupted(reader: _Reader, jobs: Sequence[Job]) -> None:
    try:
        reader.print(jobs)
    except KeyboardInterrupt as error:
        note("interrupted; the run is as it was")
        raise typer.Exit(INTERRUPTED) from error


def _print_task(task: TaskLog, wanted: Wanted) -> None:
    shown = _last(task, wanted)
    for event in shown:
        say(f"{task.task} {task.state} {event.at:%H:%M:%S} {event.message}")
    if not shown:
        note(f"{task.task}: nothing is logged")


def _task_data(task: TaskLog, wanted: Wanted) -> dict[str, Any]:
    return {
        "name": task.task,
        "state": task.state,
        "try": task.try_number,
        "events": [
            {"at": event.at.isoformat(), "message": event.message} for event in _last(task, wanted)
        ],
    }


def _last(task: TaskLog, wanted: Wanted) -> Sequence[Event]:
    return task.events if wanted.tail is None else task.events[-wanted.tail :]


def check_stage(pipeline: Pipeline, stage: str) -> None:
    """Refuse the name of a stage that a pipeline does not have."""
    names = [each.name for each in pipeline.every_stage]
    if stage not in names:
        raise typer.BadParameter(
            f"{pipeline.name} has no stage {stage!r}{near(stage, names)}", param_hint="STAGE"
        )


@dataclass(frozen=True, slots=True)
class _Reader:
    found: Jobs
    logs: Logs
    stage: str
    tokens: frozenset[str]
    wanted: Wanted
    _named: set[Stream] = field(default_factory=set)

    def jobs(self) -> list[Job]:
        """Return the jobs of the stage, the oldest first."""
        return [job for job in self.found.of(self.tokens) if job.stage == self.stage]

    def streams(self, job: Job) -> list[Stream]:
        """Return the streams of a job that were asked for."""
        streams = self.logs.streams(job)
        host = self.wanted.host
        return [each for each in streams if host is None or each.host == host]

    def print(self, jobs: Sequence[Job]) -> None:
        """Print what the jobs have logged and, if that is asked for, what they log."""
        most, was_going = self.wanted.tail, False
        while True:
            # What a job logs at its end is there once it has ended: ask before reading.
            going = self.wanted.follow and not all(job.has_ended for job in jobs)
            for job in jobs:
                for stream in self.streams(job):
                    self._print(stream, self.logs.read(stream, most=most))
            # CloudWatch gets the last lines late: after the end they are read once more.
            if not (going or was_going):
                break
            # Of a stream that is not there yet, every line is new.
            most, was_going = None, going
            time.sleep(self.wanted.every_s)
            jobs = self.jobs()
        if not self._named:
            what = "" if self.wanted.host is None else f" on {self.wanted.host}"
            note(f"{', '.join(job.name for job in jobs)}: nothing is logged{what}")

    def _print(self, stream: Stream, events: Sequence[Event]) -> None:
        if events:
            self._named.add(stream)
        for event in events:
            say(f"{stream.job} {stream.host} {event.at:%H:%M:%S} {event.message}")

    def data(self, jobs: Sequence[Job]) -> Iterator[dict[str, Any]]:
        """Yield each job with what it has logged, as JSON."""
        for job in jobs:
            yield {
                "name": job.name,
                "status": job.status,
                "streams": [
                    {
                        "host": stream.host,
                        "stream": stream.name,
                        "events": [
                            {"at": event.at.isoformat(), "message": event.message}
                            for event in self.logs.read(stream, most=self.wanted.tail)
                        ],
                    }
                    for stream in self.streams(job)
                ],
            }
