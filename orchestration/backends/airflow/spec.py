"""The specification of an Airflow DAG, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

from orchestration.backends.layout import laid_out
from orchestration.expressions import Json
from orchestration.graph import NotifySpec, Overlap, ParameterSpec, ScheduleSpec, TriggerSpec

INPUTS: Final = "inputs"
"""The first task of a pipeline."""
ERROR: Final = "error"
"""The XCom in which a failed task leaves its error and cause."""
PERFORMED: Final = "performed."
"""The XCom in which a task leaves how the steps of several stages have ended that it performs.

A digest of the value follows in the key: Airflow lists the keys of all XComs in a few answers, and
gives the value of one at a time. Elements of a list rarely end in more than a few different ways.
"""
SKIPPED: Final = "skipped_for"
"""The XCom of the first task with the id of the run for which this one was skipped."""
OUTPUTS: Final = "outputs"
"""Its last."""
LEFTOVERS: Final = "leftovers"
"""The task that stops jobs which still run when the tasks that started them have ended."""

OUTCOME: Final = "outcome"
"""The task that says how the run ended, where stages follow its end."""

OperatorName: TypeAlias = Literal[
    "InputsOperator",
    "StepsOperator",
    "TrainingOperator",
    "ProcessingOperator",
    "TransformOperator",
    "TuningOperator",
    "ModelOperator",
    "EndpointConfigOperator",
    "EndpointOperator",
    "FileSystemOperator",
    "ChooseOperator",
    "JoinOperator",
    "OutcomeOperator",
    "LeftoversOperator",
]
"""The classes in ``orchestration.airflow.operators``."""

CHOICE_PARTS: Final = ("name", "condition", "collect", "absent")
"""The parts of a choice whose outputs a task leaves."""

TriggerRule: TypeAlias = Literal["all_success", "none_failed_min_one_success", "all_done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSpec:
    """A task group that Airflow maps over a list: one task would not do for its elements."""

    name: str
    """The loop's step."""
    items_task: str
    """The task that returns the list."""
    group: str
    max_concurrency: int
    """Instances of each of its tasks at a time: Airflow has no bound on elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One task."""

    task_id: str
    stage: str
    operator: OperatorName
    arguments: Mapping[str, Json]
    """JSON, with steps and expressions as ``orchestration.graph.codec`` writes them."""
    upstream: tuple[str, ...] = ()
    trigger_rule: TriggerRule = "all_success"
    mapped_over: str | None = None
    """The task whose list it is mapped over, an instance for each element."""
    max_concurrency: int | None = None
    """Instances of a mapped task at a time."""
    loop: str | None = None
    """The mapped task group that it is in."""
    setup: bool = False
    teardown_of: str | None = None
    """The setup task that it cleans up after; such a task runs whenever its setup succeeded."""
    teardown: bool = False
    """True if it runs however the tasks before it have ended, also where the run is marked."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """Its stage's settings: those of ``orchestration.backends.airflow.options``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DagSpec:
    """A whole DAG."""

    dag_id: str
    description: str
    parameters: tuple[ParameterSpec, ...]
    schedule: ScheduleSpec | None
    tasks: tuple[TaskSpec, ...]
    """Each after those it waits for."""
    loops: tuple[LoopSpec, ...] = ()
    region: str | None = None
    """The AWS region of its tasks; ``None``: that of the connection."""
    tags: tuple[str, ...] = ()
    """As ``key:value``: Airflow's tags are single words."""
    trigger: TriggerSpec | None = None
    overlap: Overlap | None = None
    """The policy for runs that overlap, if the pipeline names one."""
    notify: NotifySpec | None = None
    """The topics that hear how runs end."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """Settings of all its tasks."""


def to_json(spec: DagSpec, origin: Sequence[str] = ()) -> str:
    """Return the specification as text that reads and compares well; equal for equal workflows.

    ``origin`` are the files that it was made of, for whoever has lost them; no DAG reads them.
    """
    return laid_out(with_origin(to_document(spec), origin))


def with_origin(document: Mapping[str, Any], origin: Sequence[str]) -> dict[str, Any]:
    """Return a specification with the texts of the files that it was made of, if there are any."""
    return {**document, **({"origin": list(origin)} if origin else {})}


def to_document(spec: DagSpec) -> dict[str, Any]:
    """Return the specification as JSON values."""
    return {
        "dag_id": spec.dag_id,
        "description": spec.description,
        **({} if spec.region is None else {"region": spec.region}),
        "schedule": _schedule(spec.schedule),
        **({} if spec.trigger is None else {"trigger": asdict(spec.trigger)}),
        **({} if spec.overlap is None else {"overlap": spec.overlap}),
        **({} if spec.notify is None else {"notify": _notify(spec.notify)}),
        **({"options": spec.options} if spec.options else {}),
        "parameters": {p.name: _parameter(p) for p in spec.parameters},
        "tasks": {task.task_id: _task(task) for task in spec.tasks},
        "loops": {loop.name: _loop(loop) for loop in spec.loops},
        "tags": list(spec.tags),
    }


def from_document(document: Mapping[str, Any]) -> DagSpec:
    """Return the specification that :func:`to_document` wrote down."""
    schedule = document["schedule"]
    return DagSpec(
        dag_id=document["dag_id"],
        description=document["description"],
        schedule=None if schedule is None else ScheduleSpec(**schedule),
        parameters=tuple(
            ParameterSpec(name=name, **fields) for name, fields in document["parameters"].items()
        ),
        tasks=tuple(
            TaskSpec(**{"task_id": name, **fields, "upstream": tuple(fields["upstream"])})
            for name, fields in document["tasks"].items()
        ),
        loops=tuple(LoopSpec(name=name, **fields) for name, fields in document["loops"].items()),
        region=document.get("region"),
        tags=tuple(document["tags"]),
        trigger=TriggerSpec(**document["trigger"]) if "trigger" in document else None,
        overlap=document.get("overlap"),
        notify=_told(document.get("notify")),
        options=document.get("options", {}),
    )


def _notify(notify: NotifySpec) -> Json:
    return {"on_failure": list(notify.on_failure), "on_success": list(notify.on_success)}


def _told(document: Mapping[str, Any] | None) -> NotifySpec | None:
    if document is None:
        return None
    return NotifySpec(**{end: tuple(topics) for end, topics in document.items()})


def _schedule(schedule: ScheduleSpec | None) -> Json:
    if schedule is None:
        return None
    fields = {name: value for name, value in asdict(schedule).items() if value}
    return {**fields, "parameters": dict(sorted(schedule.parameters.items()))}


def _parameter(parameter: ParameterSpec) -> Json:
    return {
        "type": parameter.type,
        "default": parameter.default,
        "description": parameter.description,
        **({"uri": True} if parameter.uri else {}),
    }


def _task(task: TaskSpec) -> Json:
    document: dict[str, Json] = {
        "stage": task.stage,
        "operator": task.operator,
        "upstream": list(task.upstream),
    }
    if task.trigger_rule != "all_success":
        document["trigger_rule"] = task.trigger_rule
    optional: dict[str, Json] = {
        "mapped_over": task.mapped_over,
        "max_concurrency": task.max_concurrency,
        "loop": task.loop,
        "setup": task.setup or None,
        "teardown_of": task.teardown_of,
        "teardown": task.teardown or None,
        "options": dict(task.options) or None,
    }
    document |= {key: value for key, value in optional.items() if value is not None}
    return document | {"arguments": task.arguments}


def _loop(loop: LoopSpec) -> Json:
    return {
        "items_task": loop.items_task,
        "group": loop.group,
        "max_concurrency": loop.max_concurrency,
    }
