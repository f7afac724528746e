"""Run DAGs on this machine with Airflow itself, against the embedded AWS.

Airflow runs in a child process with a home, a database and a configuration of its own, all of them
in a temporary folder that goes with it. A user's own Airflow is neither read nor changed.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from orchestration.errors import LocalError
from orchestration.expressions import Json
from orchestration.local.airflow.home import dag_file, variables_in
from orchestration.local.processes.environment import environment, refuse_real_aws
from orchestration.local.processes.scratch import Scratch

if TYPE_CHECKING:
    from typing import Self

    from orchestration.graph import ParameterValue, Workflow
    from orchestration.pipeline import Pipeline

_LOG_CHARACTERS = 20_000
_STOP_TIMEOUT_S = 15.0


class Environment(Protocol):
    """The part of an embedded AWS that is needed here."""

    def environment(self) -> dict[str, str]:
        """Return a complete environment whose AWS clients reach the embedded AWS only."""


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of a task instance, during or after a run."""

    task_id: str
    map_index: int
    """The index of the loop's element, -1 outside loops."""
    state: str
    """As Airflow calls it: ``running``, ``deferred``, ``success``, ``failed``, ``skipped``, …"""
    try_number: int = 0
    start: str | None = None
    end: str | None = None
    """Times in ISO 8601."""
    performed: Mapping[str, str] = field(default_factory=dict)
    """The states of steps, where it performed those of several stages and has ended."""


@dataclass(frozen=True, slots=True)
class AirflowRun:
    """A finished run."""

    state: Literal["success", "failed"]
    tasks: tuple[TaskState, ...]
    outputs: Mapping[str, Json] | None
    """The outputs of the workflow; None if it failed."""
    error: str | None
    cause: str | None
    log: str
    """The last characters of what Airflow wrote during the run."""


OnProgress = Callable[[TaskState], None]


def run(
    dag: Pipeline | Workflow | Path,
    *,
    aws: Environment,
    parameters: Mapping[str, ParameterValue] | None = None,
    run_id: str = "local",
    on_progress: OnProgress | None = None,
    time_scale: float | None = None,
) -> AirflowRun:
    """Run a DAG once, in an Airflow of its own; see :meth:`LocalAirflow.run`."""
    with LocalAirflow() as airflow:
        return airflow.run(
            dag,
            aws=aws,
            parameters=parameters,
            run_id=run_id,
            on_progress=on_progress,
            time_scale=time_scale,
        )


class LocalAirflow:
    """An Airflow that runs one DAG after another; use it in a ``with`` block.

    Starting costs a few seconds, once.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._pid: int | None = None
        """The forked process that runs DAGs; None until it has said so."""
        self._home: Path | None = None
        self._scratch: Scratch | None = None

    def __enter__(self) -> Self:
        # Each run brings the address of its AWS; before the first one there is none.
        self._started(environment("http://127.0.0.1:9", "us-east-1"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def ready(self) -> None:
        """Wait until all is loaded that runs need; every run waits so, too."""
        process, _ = self._started(environment("http://127.0.0.1:9", "us-east-1"))
        self._wait_for(process)

    def kill(self) -> None:
        """Kill Airflow as a crash does: scheduler, triggerer and workers at once.

        The next run finds it started again over the same database. A run of the same id goes on:
        the task that ran is tried again, and what was deferred waits on.
        """
        pid, self._pid = self._pid, None
        if pid is not None:
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Stop Airflow and remove its files."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = self._home = None

    def run(
        self,
        dag: Pipeline | Workflow | Path,
        *,
        aws: Environment,
        parameters: Mapping[str, ParameterValue] | None = None,
        run_id: str = "local",
        on_progress: OnProgress | None = None,
        time_scale: float | None = None,
        event: Mapping[str, Json] | None = None,
        scheduled: datetime.datetime | None = None,
    ) -> AirflowRun:
        """Run a DAG to its end: a pipeline, or the only DAG of a file.

        Tasks wait for their jobs side by side, as they do in a triggerer. ``on_progress`` is called
        with every change of a task's state. ``time_scale`` is real seconds per
        second of AWS; the default is that of the embedded AWS. With an ``event``, the run is one
        that an event of the DAG's asset has started: what its watcher has found, or what made the
        event has left as ``extra``. With ``scheduled``, it is one that the timetable of the DAG has
        started for that moment. A run of this id that has failed in this account with these
        parameters is cleared and goes on: what failed, what follows it, and what both need.

        Raises :class:`LocalError` if a call could reach the real AWS or the DAG cannot be
        loaded. A failed run is returned.
        """
        variables = dict(aws.environment())
        refuse_real_aws(variables)
        if time_scale is not None:
            variables["ORCHESTRATION_TIME_SCALE"] = str(time_scale)
        process, home = self._started(variables)
        log = home / "airflow.log"
        request = {
            "dag_file": str(dag_file(dag, home)),
            "run_id": run_id,
            "conf": dict(parameters or {}),
            "event": None if event is None else dict(event),
            "scheduled": None if scheduled is None else scheduled.isoformat(),
            "environment": {k: v for k, v in variables.items() if not k.startswith("AIRFLOW")},
        }
        self._wait_for(process)
        offset = log.stat().st_size
        self._write(process, json.dumps(request))
        for event in self._events(process):
            if "task" in event:
                if on_progress is not None:
                    on_progress(TaskState(**event["task"]))
            elif "refused" in event:
                raise LocalError(event["refused"])
            elif "end" in event:
                return _ended(event["end"], _tail(log, offset))
            elif "pid" in event:
                self._pid = event["pid"]
                raise LocalError(f"Airflow was killed during the run:\n{_tail(log, offset)}")
        self._process = self._pid = None
        _end(process)
        raise LocalError(f"Airflow ended before the run:\n{_tail(log, offset)}")

    def _started(self, variables: Mapping[str, str]) -> tuple[subprocess.Popen[str], Path]:
        if self._process is not None and self._home is not None:
            return self._process, self._home
        if self._home is None:
            self._scratch = Scratch("orchestration-airflow-")
            self._home = self._scratch.path
            (self._home / "dags").mkdir()
        home = self._home
        reading, writing = os.pipe()
        with (home / "airflow.log").open("ab") as log:
            self._process = process = subprocess.Popen(
                [sys.executable, "-m", "orchestration.local.airflow.process", str(writing)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=variables_in(home, variables),
                cwd=home,
                pass_fds=(writing,),
                text=True,
                # Control-C must reach the user's process only: this one ends when that one does.
                start_new_session=True,
            )
        os.close(writing)
        process.stdout = os.fdopen(reading, encoding="utf-8")
        return process, home

    def _wait_for(self, process: subprocess.Popen[str]) -> None:
        if self._pid is None:
            self._pid = next((event["pid"] for event in self._events(process)), None)

    def _write(self, process: subprocess.Popen[str], line: str) -> None:
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(line + "\n")
                process.stdin.flush()

    def _events(self, process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
        for line in process.stdout or ():
            yield json.loads(line)


def _end(process: subprocess.Popen[str]) -> None:
    """Let a process end, which it does without standard input, or kill it after a while."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        # It leads a session, which has the forked process in it.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ended(end: Mapping[str, Any], log: str) -> AirflowRun:
    return AirflowRun(
        state=end["state"],
        tasks=tuple(TaskState(**task) for task in end["tasks"]),
        outputs=end["outputs"],
        error=end["error"],
        cause=end["cause"],
        log=log,
    )


def _tail(log: Path, offset: int) -> str:
    with log.open("rb") as file:
        file.seek(max(offset, log.stat().st_size - _LOG_CHARACTERS))
        return file.read().decode(errors="replace")
