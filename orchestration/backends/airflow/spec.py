"""What an Airflow DAG consists of, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from orchestration.expressions import Json
from orchestration.graph import ParameterSpec, ScheduleSpec

OperatorName: TypeAlias = Literal[
    "InputsOperator",
    "OutputsOperator",
    "TrainingOperator",
    "ProcessingOperator",
    "TransformOperator",
    "ModelOperator",
    "EndpointConfigOperator",
    "EndpointOperator",
    "AwsCallOperator",
    "ReadOperator",
    "ChooseOperator",
    "RequireOperator",
    "JoinOperator",
    "ItemsOperator",
    "CollectOperator",
    "WaitOperator",
    "FailOperator",
]
"""The classes in ``orchestration.airflow.operators``."""

TriggerRule: TypeAlias = Literal["all_success", "all_done", "none_failed_min_one_success"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSpec:
    """A task group that Airflow maps over a list."""

    name: str
    """The step's name, and the id of the task that collects."""
    items_task: str
    group: str
    max_concurrency: int
    """Instances of each of its tasks at a time.

    Airflow has no bound on elements: where several tasks of a body take long, elements at different
    ones of them add up.
    """
    steps: tuple[str, ...]
    """The steps inside, whose results a task inside reads from its own element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One task."""

    task_id: str
    operator: OperatorName
    arguments: Mapping[str, Json]
    """JSON, with expressions as ``orchestration.expressions.codec`` writes them."""
    upstream: tuple[str, ...] = ()
    trigger_rule: TriggerRule = "all_success"
    loop: str | None = None
    """The loop it is mapped in."""
    setup: bool = False
    teardown_of: str | None = None
    """The setup task that it cleans up after; such a task runs whenever its setup succeeded."""

    @property
    def group(self) -> str | None:
        """The task group of the stage it belongs to."""
        stage, dot, _ = self.task_id.partition(".")
        return stage if dot else None


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


def to_json(spec: DagSpec) -> str:
    """The specification as text that reads and compares well; equal for equal workflows."""
    document = {
        "dag_id": spec.dag_id,
        "description": spec.description,
        "schedule": _schedule(spec.schedule),
        "parameters": {p.name: _parameter(p) for p in spec.parameters},
        "tasks": {task.task_id: _task(task) for task in spec.tasks},
        "loops": {loop.name: _loop(loop) for loop in spec.loops},
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _schedule(schedule: ScheduleSpec | None) -> Json:
    if schedule is None:
        return None
    return {
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "parameters": dict(sorted(schedule.parameters.items())),
    }


def _parameter(parameter: ParameterSpec) -> Json:
    return {
        "type": parameter.type,
        "default": parameter.default,
        "description": parameter.description,
    }


def _task(task: TaskSpec) -> Json:
    document: dict[str, Json] = {"operator": task.operator, "upstream": list(task.upstream)}
    if task.trigger_rule != "all_success":
        document["trigger_rule"] = task.trigger_rule
    if task.loop is not None:
        document["loop"] = task.loop
    if task.setup:
        document["setup"] = True
    if task.teardown_of is not None:
        document["teardown_of"] = task.teardown_of
    return document | {"arguments": task.arguments}


def _loop(loop: LoopSpec) -> Json:
    return {
        "items_task": loop.items_task,
        "group": loop.group,
        "max_concurrency": loop.max_concurrency,
        "steps": list(loop.steps),
    }
