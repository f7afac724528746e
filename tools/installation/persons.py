"""What persons do to runs: they clear and mark tasks, and mark runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestration.local.account.records import Fault
from tools.installation.airflow import Airflow
from tools.installation.runs import Run, start

_LONG_S = 60
"""How long a job takes that is not to end by itself."""
_SETTLED_S = 15
"""How long after its end a run is looked at, so that nothing comes afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something that a person does to a run, and what must have come of it."""

    dag_id: str
    name: str
    does: Callable[[Run], None]
    state: str
    made: Mapping[str, int]
    """How often operations have succeeded, those of other names aside."""
    seconds: float = 2
    fail: str = "no"
    fault: Fault | None = None
    watched: bool = True
    """False: no triggerer runs, so that none picks up the trigger of a task."""


def _finished(*tasks: str) -> Callable[[Run], None]:
    def clear(run: Run) -> None:
        run.wait()
        run.clear(*tasks)
        run.airflow.wait("a run again", lambda: run.state not in ("success", "failed"), 60)

    return clear


def _deferred(run: Run) -> None:
    run.wait_for_triggerer("train")


def _clear_deferred(run: Run) -> None:
    _deferred(run)
    run.clear("train")


def _clear_before_triggerer(run: Run) -> None:
    run.wait_for("train", "deferred")
    run.clear("train")
    run.airflow.wait("another attempt", lambda: _attempts(run) > 1, 120)
    run.wait_for("train", "deferred")
    run.airflow.start_component("triggerer")


def _attempts(run: Run) -> int:
    task = run.task("train")
    return 0 if task is None else task.try_number


def _mark_deferred(state: str) -> Callable[[Run], None]:
    def mark(run: Run) -> None:
        _deferred(run)
        run.mark("train", state)

    return mark


def _mark_before_triggerer(state: str) -> Callable[[Run], None]:
    def mark(run: Run) -> None:
        run.wait_for("train", "deferred")
        run.mark("train", state)

    return mark


def _end_run(run: Run) -> None:
    _deferred(run)
    run.end("failed")


def _end_run_before_triggerer(run: Run) -> None:
    run.wait_for("train", "deferred")
    run.end("failed")


def _started(run: Run) -> None:
    run.airflow.wait("a job", lambda: run.made()["CreateTrainingJob"], 120)
    time.sleep(3)


def _mark_running(run: Run) -> None:
    _started(run)
    run.mark("train", "failed")


def _clear_running(run: Run) -> None:
    _started(run)
    run.clear("train")


def _nothing(run: Run) -> None:
    del run


_ONCE = {"CreateTrainingJob": 1, "CreateProcessingJob": 3, "StopTrainingJob": 0}
_STOPPED = {"CreateTrainingJob": 1, "CreateProcessingJob": 0, "StopTrainingJob": 1}
_ANEW = {"CreateTrainingJob": 2, "CreateProcessingJob": 3, "StopTrainingJob": 1}
_GONE = {"CreateFileSystem": 1, "DeleteFileSystem": 1}
DEEDS = (
    Deed(
        dag_id="grouped",
        name="nothing: a task group with tasks before and after it",
        does=_nothing,
        state="success",
        made={},
    ),
    Deed(
        dag_id="served",
        name="clear a task that went well",
        does=_finished("train"),
        state="success",
        made=_ONCE,
    ),
    Deed(
        dag_id="served",
        name="clear a whole run that went well",
        does=_finished(),
        state="success",
        made=_ONCE,
    ),
    Deed(
        dag_id="served",
        name="clear a task that failed",
        does=_finished("train"),
        state="failed",
        made={"CreateTrainingJob": 2, "CreateProcessingJob": 0},
        fail="as it was told",
    ),
    Deed(
        dag_id="served",
        name="clear a deferred task",
        does=_clear_deferred,
        state="success",
        made=_ANEW,
        seconds=20,
    ),
    Deed(
        dag_id="served",
        name="mark a deferred task failed",
        does=_mark_deferred("failed"),
        state="failed",
        made=_STOPPED,
        seconds=_LONG_S,
    ),
    Deed(
        dag_id="served",
        name="mark a deferred task successful",
        does=_mark_deferred("success"),
        state="failed",
        made=_STOPPED,
        seconds=_LONG_S,
    ),
    Deed(
        dag_id="served",
        name="mark a run failed",
        does=_end_run,
        state="failed",
        made=_STOPPED,
        seconds=_LONG_S,
    ),
    Deed(
        dag_id="held",
        name="mark a running task failed",
        does=_mark_running,
        state="failed",
        made=_STOPPED,
        seconds=_LONG_S,
    ),
    Deed(
        dag_id="held",
        name="clear a running task",
        does=_clear_running,
        state="success",
        made=_ANEW,
        seconds=20,
    ),
    Deed(
        dag_id="lustre",
        name="mark a deferred task failed",
        does=_mark_deferred("failed"),
        state="failed",
        made={**_STOPPED, **_GONE},
        seconds=_LONG_S,
    ),
    Deed(
        dag_id="lustre",
        name="mark a run failed",
        does=_end_run,
        state="failed",
        made={**_STOPPED, **_GONE},
        seconds=_LONG_S,
    ),
    Deed(
        dag_id="lustre",
        name="a job fails",
        does=_nothing,
        state="failed",
        made={"CreateTrainingJob": 1, **_GONE},
        fail="as it was told",
    ),
    Deed(
        dag_id="lustre",
        name="a file system fails",
        does=_nothing,
        state="failed",
        made={"CreateTrainingJob": 0, **_GONE},
        fault=Fault.job("", reason="Failed: no such subnet", operation="CreateFileSystem"),
    ),
    *(
        Deed(
            dag_id="served",
            name=f"{name}, before a triggerer has it",
            does=does,
            state="failed",
            made=_STOPPED,
            seconds=_LONG_S,
            watched=False,
        )
        for name, does in (
            ("mark a deferred task failed", _mark_before_triggerer("failed")),
            ("mark a deferred task successful", _mark_before_triggerer("success")),
            ("mark a run failed", _end_run_before_triggerer),
        )
    ),
    Deed(
        dag_id="served",
        name="clear a deferred task, before a triggerer has it",
        does=_clear_before_triggerer,
        state="success",
        made=_ONCE,
        seconds=20,
        watched=False,
    ),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a deed."""

    deed: Deed
    state: str
    made: Mapping[str, int]
    left: list[str]

    @property
    def holds(self) -> bool:
        """Return whether it is what had to come of it."""
        made = {name: self.made.get(name, 0) for name in self.deed.made}
        return self.state == self.deed.state and made == self.deed.made and not self.left


def done(airflow: Airflow, deed: Deed, run_id: str) -> Result:
    """Start a run, do it, and see what comes of it."""
    if deed.fault is not None:
        airflow.aws.inject(deed.fault)
    if not deed.watched:
        airflow.stop_component("triggerer")
    run = start(airflow, deed.dag_id, run_id, seconds=deed.seconds, fail=deed.fail)
    try:
        deed.does(run)
        state = run.wait()
    except TimeoutError as error:
        state = f"hangs: {error}"
    time.sleep(_SETTLED_S)
    airflow.ensure_component("triggerer")
    return Result(deed, state, run.made(), run.left())
