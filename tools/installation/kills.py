"""Kills processes of an installation at exact moments, and counts what was paid."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tools.installation.airflow import Airflow
from tools.installation.processes import kill, owner
from tools.installation.runs import start
from tools.installation.wire import Ambush, Phase, Request, document

Victim = Literal["task", "worker", "supervisor", "scheduler", "scheduler+workers", "triggerer"]
_Row: TypeAlias = tuple[str, Phase, Victim] | tuple[str, Phase, Victim, int]
_TI = re.compile(r"/execution/task-instances/([0-9a-f-]{36})/(\w+)")
_DUE: Mapping[str, Counter[str]] = {
    "served": Counter(CreateTrainingJob=1, CreateProcessingJob=3),
    "held": Counter(CreateTrainingJob=1, CreateProcessingJob=3),
    "lustre": Counter(CreateFileSystem=1, DeleteFileSystem=1, CreateTrainingJob=1),
}
_WORK_S = 15
"""Long enough for a job to be there still when its task defers, on a busy machine too."""
_ENDPOINT = ("CreateEndpoint", "UpdateEndpoint")


@dataclass(frozen=True, slots=True)
class Moment:
    """A request in the life of a run, and what is killed at it."""

    dag_id: str
    at: str
    """An operation of AWS; or ``task action`` of the execution API (``train deferred``)."""
    phase: Phase
    victim: Victim
    skip: int = 0

    def __str__(self) -> str:
        number = f" (no. {self.skip + 1})" if self.skip else ""
        return f"{self.phase} {self.at}{number}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run."""

    moments: Sequence[Moment]
    missed: Sequence[Moment]
    """Moments that never came."""
    state: str
    made: Counter[str]
    left: list[str]
    unfinished: list[str]

    @property
    def holds(self) -> bool:
        """Return whether everything was paid once, and nothing is left."""
        dag_id = self.moments[0].dag_id
        paid = {name: self.made[name] for name in _DUE[dag_id]}
        deployed = sum(self.made[name] for name in _ENDPOINT) == (dag_id != "lustre")
        return self.state == "success" and paid == _DUE[dag_id] and deployed and not self.left


def _moments(dag_id: str, *rounds: Sequence[_Row]) -> list[list[Moment]]:
    return [[Moment(dag_id, *moment) for moment in a_round] for a_round in rounds]


SERVED = _moments(
    "served",
    [
        ("CreateTrainingJob", "before", "task"),
        ("CreateProcessingJob", "lost", "worker", 1),
        ("CreateModel", "lost", "task"),
    ],
    [
        ("CreateTrainingJob", "lost", "task"),
        ("evaluate.each deferred", "before", "worker", 1),
        ("Endpoint", "before", "task"),
    ],
    [
        ("CreateTrainingJob", "lost", "worker"),
        ("evaluate.each deferred", "after", "triggerer", 1),
        ("Endpoint", "lost", "worker"),
    ],
    [
        ("CreateTrainingJob", "after", "supervisor"),
        ("evaluate.each return_value", "before", "worker"),
        ("deploy deferred", "before", "worker"),
    ],
    [
        ("train link", "before", "worker"),
        ("evaluate.each success", "lost", "scheduler"),
        ("deploy deferred", "after", "triggerer"),
    ],
    [
        ("train deferred", "before", "worker"),
        ("CreateProcessingJob", "after", "scheduler+workers", 1),
        ("CreateEndpointConfig", "lost", "worker"),
    ],
    [
        ("train deferred", "lost", "worker"),
        ("evaluate.list return_value", "lost", "worker"),
        ("deploy resumed", "after", "scheduler+workers"),
    ],
    [
        ("train deferred", "after", "worker"),
        ("train resumed", "before", "worker"),
        ("invocations", "lost", "worker"),
    ],
    [
        ("train deferred", "after", "triggerer"),
        ("train resumed", "after", "task"),
        ("evaluate.each resumed", "after", "worker"),
    ],
    [
        ("DescribeTrainingJob", "after", "triggerer", 2),
        ("train success", "before", "worker"),
        ("deploy success", "before", "worker"),
    ],
    [
        ("train deferred", "after", "scheduler"),
        ("train success", "lost", "worker"),
        ("outputs success", "before", "task"),
    ],
    [
        ("train deferred", "after", "scheduler+workers"),
        ("evaluate.each deferred", "before", "scheduler+workers"),
    ],
    [("CreateTrainingJob", "after", "scheduler"), ("invocations", "lost", "scheduler+workers")],
    [("CreateTrainingJob", "lost", "scheduler+workers"), ("Endpoint", "after", "scheduler")],
)
HELD = _moments(
    "held",
    [("DescribeTrainingJob", "after", "scheduler", 1)],
    [("DescribeTrainingJob", "after", "worker", 1), ("DescribeProcessingJob", "lost", "task", 1)],
)
LUSTRE = _moments(
    "lustre",
    [
        ("CreateFileSystem", "before", "task"),
        ("CreateTrainingJob", "lost", "worker"),
        ("DeleteFileSystem", "before", "task"),
    ],
    [
        ("CreateFileSystem", "lost", "task"),
        ("train deferred", "after", "triggerer"),
        ("DeleteFileSystem", "lost", "worker"),
    ],
    [
        ("CreateFileSystem", "lost", "worker"),
        ("train deferred", "after", "scheduler+workers"),
        ("staging.delete success", "lost", "worker"),
    ],
    [
        ("CreateFileSystem", "after", "scheduler+workers"),
        ("CreateDataRepositoryAssociation", "lost", "worker"),
        ("DeleteFileSystem", "after", "scheduler"),
    ],
    [
        ("staging.create success", "lost", "worker"),
        ("DescribeFileSystems", "after", "triggerer", 3),
        ("staging.delete success", "before", "task"),
    ],
)


def survive(
    airflow: Airflow, moments: Sequence[Moment], run_id: str, within_s: float = 400
) -> Outcome:
    """Kill at moments of a run, start again what was killed, and see the run to its end."""
    ambushes = [_lay(airflow, moment) for moment in moments]
    run = start(airflow, moments[0].dag_id, run_id, seconds=_WORK_S)
    try:
        state = run.wait(within_s)
    except TimeoutError:
        state = "hangs"
    for wire in (airflow.aws_wire, airflow.api_wire):
        wire.clear(*ambushes)
    return Outcome(
        moments=moments,
        missed=[m for m, a in zip(moments, ambushes, strict=True) if not a.done.is_set()],
        state=state,
        made=run.made(),
        left=run.left(),
        unfinished=[
            f"{t.task_id}[{t.map_index}] {t.state}"
            for t in run.tasks().values()
            if t.state not in ("success", "skipped")
        ],
    )


def _lay(airflow: Airflow, moment: Moment) -> Ambush:
    wire = airflow.api_wire if " " in moment.at else airflow.aws_wire
    matches, act = _matcher(airflow, moment), _act(airflow, moment)
    return wire.lay(Ambush(matches, moment.phase, act, moment.skip))


def _matcher(airflow: Airflow, moment: Moment) -> Callable[[Request], bool]:
    task, _, action = moment.at.partition(" ")
    if not action:
        return lambda request: _calls(request, moment)

    def matches(request: Request) -> bool:
        if action in ("link", "return_value"):
            return (
                request.method == "POST"
                and f"/{moment.dag_id}/" in request.path
                and (f"/{task}/" in request.path and action in request.path)
            )
        found = _TI.match(request.path)
        if found is None or request.method != "PATCH":
            return False
        kind = found[2]
        wanted = {"started": "run", "resumed": "run"}.get(action, "state")
        if kind != wanted or (wanted == "state" and document(request).get("state") != action):
            return False
        return _instance(airflow, found[1]) == (moment.dag_id, task) and (
            action != "resumed" or _was_deferred(airflow, found[1])
        )

    return matches


def _calls(request: Request, moment: Moment) -> bool:
    if moment.at == "invocations":
        return request.path.endswith("/invocations")
    operation = request.operation
    named = operation in _ENDPOINT if moment.at == "Endpoint" else operation == moment.at
    ours = moment.dag_id == "lustre" and ("FileSystem" in operation or "Repository" in operation)
    return named and (ours or request.says(f"{moment.dag_id}-"))


def _instance(airflow: Airflow, identifier: str) -> tuple[str, str]:
    rows = airflow.postgres.rows(
        f"select dag_id, task_id from task_instance where id = '{identifier}'"  # noqa: S608
    )
    return (rows[0][0], rows[0][1]) if rows else ("", "")


def _was_deferred(airflow: Airflow, identifier: str) -> bool:
    rows = airflow.postgres.rows(
        f"select next_method is not null from task_instance where id = '{identifier}'"  # noqa: S608
    )
    return bool(rows) and rows[0][0] == "t"


def _act(airflow: Airflow, moment: Moment) -> Callable[[Request], None]:
    def act(request: Request) -> None:
        match moment.victim:
            case "task" | "worker" | "supervisor":
                process = owner(request.port)
                if process is None:
                    raise RuntimeError(f"nobody has port {request.port}")
                task, *supervisor = airflow.task_of(process)
                chosen = {"task": [task], "supervisor": supervisor, "worker": [task, *supervisor]}
                kill(*chosen[moment.victim])
            case "triggerer":
                airflow.replace_component("triggerer")
            case "scheduler" | "scheduler+workers":
                airflow.replace_component("scheduler", whole=moment.victim != "scheduler")

    return act
