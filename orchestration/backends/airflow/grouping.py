"""A specification's tasks inside of a task group: their ids get the group's in front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from orchestration.backends.airflow.spec import DagSpec, TaskSpec
from orchestration.expressions import Json


def inside(spec: DagSpec, group: str, *, mapped: bool = False) -> DagSpec:
    """Return the specification with task ids as they are inside a task group.

    Names of steps, stages and loops stay: they mean the same in any DAG. In a ``mapped`` group a
    task reads what those of its own element have left.
    """
    loops = tuple(replace(loop, items_task=f"{group}.{loop.items_task}") for loop in spec.loops)
    tasks = tuple(_task(task, group, mapped=mapped) for task in spec.tasks)
    return replace(spec, tasks=tasks, loops=loops)


def unmappable(spec: DagSpec) -> str | None:
    """Return why a specification's tasks can't be in a mapped task group; ``None``: they can."""
    for loop in spec.loops:
        return f"its {loop.group!r} is mapped itself, and Airflow nests no mapped groups"
    for task in spec.tasks:
        if task.mapped_over is not None:
            return f"its {task.task_id!r} is mapped itself, and Airflow nests no mapped groups"
    return None


def _task(task: TaskSpec, group: str, *, mapped: bool) -> TaskSpec:
    def named(name: str | None) -> str | None:
        return None if name is None else f"{group}.{name}"

    return replace(
        task,
        task_id=f"{group}.{task.task_id}",
        arguments=_arguments(task.arguments, group, mapped=mapped),
        upstream=tuple(f"{group}.{name}" for name in task.upstream),
        mapped_over=named(task.mapped_over),
        teardown_of=named(task.teardown_of),
    )


def _arguments(arguments: Mapping[str, Json], group: str, *, mapped: bool) -> Mapping[str, Json]:
    """Resolve the arguments that name other tasks."""
    changed = dict(arguments)
    if "reads" in changed:
        sources = cast("Mapping[str, Mapping[str, Json]]", changed["reads"])
        changed["reads"] = {
            step: {
                **source,
                "task": f"{group}.{source['task']}",
                "element": mapped or source["element"],
            }
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
