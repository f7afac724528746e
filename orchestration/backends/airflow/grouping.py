"""A specification's tasks inside of a task group: their ids get the group's in front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from orchestration.backends.airflow.spec import DagSpec, TaskSpec
from orchestration.expressions import Json


def inside(spec: DagSpec, group: str) -> DagSpec:
    """Return the specification with task ids as they are inside a task group.

    Names of steps, stages and loops stay: they mean the same in any DAG.
    """
    loops = tuple(replace(loop, items_task=f"{group}.{loop.items_task}") for loop in spec.loops)
    return replace(spec, tasks=tuple(_task(task, group) for task in spec.tasks), loops=loops)


def _task(task: TaskSpec, group: str) -> TaskSpec:
    def named(name: str | None) -> str | None:
        return None if name is None else f"{group}.{name}"

    return replace(
        task,
        task_id=f"{group}.{task.task_id}",
        arguments=_arguments(task.arguments, group),
        upstream=tuple(f"{group}.{name}" for name in task.upstream),
        mapped_over=named(task.mapped_over),
        teardown_of=named(task.teardown_of),
    )


def _arguments(arguments: Mapping[str, Json], group: str) -> Mapping[str, Json]:
    """Resolve the arguments that name other tasks."""
    changed = dict(arguments)
    if "reads" in changed:
        sources = cast("Mapping[str, Mapping[str, Json]]", changed["reads"])
        changed["reads"] = {
            step: {**source, "task": f"{group}.{source['task']}"}
            for step, source in sources.items()
        }
    if "gathers" in changed:
        gathers = cast("Mapping[str, Json]", changed["gathers"])
        tasks = {key: f"{group}.{gathers[key]}" for key in ("task", "items_task")}
        changed["gathers"] = {**gathers, **tasks}
    for way in ("then", "otherwise"):
        if way in changed:
            changed[way] = [f"{group}.{task}" for task in cast("list[str]", changed[way])]
    return changed
