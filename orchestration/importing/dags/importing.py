"""A DAG file as a pipeline, and what differs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestration.errors import PipelineError, Problem
from orchestration.importing.dags.arguments import left_out
from orchestration.importing.dags.calls import AWAITED, WHY
from orchestration.importing.dags.operators import NOTHING, steps_of
from orchestration.importing.dags.order import order
from orchestration.importing.dags.schedules import Scheduled, scheduled
from orchestration.importing.dags.syntax import Dag, Task
from orchestration.importing.imported import Imported, Note
from orchestration.importing.steps.building import Source, built
from orchestration.importing.steps.step import Step, pipeline_name, renamed, stage_names


def from_dag(source: str, *, name: str | None = None, file: str = "imported") -> Imported:
    """Return the pipeline of a DAG file's operators, and notes on what it does otherwise.

    Raises :class:`~orchestration.errors.PipelineError` where it is no Python, or none of its
    operators does what a stage does.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise PipelineError(
            [Problem(f"line {error.lineno}", f"is no Python: {error.msg}")]
        ) from error
    dag = Dag()
    try:
        dag.read(tree)
        order(dag, tree)
    except RecursionError as error:
        text = "has expressions that are nested too deep"
        raise PipelineError([Problem("", text)]) from error
    dag_id = dag.settings.get("dag_id")
    called = name or pipeline_name(dag_id if isinstance(dag_id, str) else file)
    notes: list[Note] = []
    found = [(variable, task, _made(task, notes)) for variable, task in _numbered(dag.tasks)]
    names = _parameters([step for _, _, steps in found for _, step in steps])
    read = _steps(dag, found, called)
    if not read:
        text = "has no operator of the Amazon provider that a stage does the work of"
        raise PipelineError([Problem("", text)])
    when = scheduled(dag)
    notes += _told(dag, when)
    parameters: dict[str, dict[str, Any]] = {own: {} for own in names.values()}
    return built(Source(called, read, names, parameters, notes, when.fields))


def _numbered(tasks: Mapping[str, Task]) -> Iterator[tuple[str, Task]]:
    """Yield tasks by their variables, no two of one name: those of groups may have one."""
    taken: set[str] = set()
    for variable, task in tasks.items():
        name, number = task.name, 2
        while name in taken:
            name, number = f"{task.name} {number}", number + 1
        taken.add(name)
        yield variable, replace(task, name=name)


def _made(task: Task, notes: list[Note]) -> list[tuple[str, dict[str, Any]]]:
    steps = list(steps_of(task.operator, task.arguments))
    if not steps and task.operator not in NOTHING:
        notes.append(Note(task.path, _left_out(task.operator)))
    else:
        for key in left_out(task.operator, task.arguments):
            notes.append(Note(f"{task.path}.{key}", "is left out"))
        if task.arguments.get("wait_for_completion") is False or _only_starts(task):
            notes.append(Note(f"{task.path}.wait_for_completion", "the stage waits for its end"))
    return steps


def _only_starts(task: Task) -> bool:
    """Return whether an operator waits for an end only where it says that it defers."""
    starts = task.operator == "StepFunctionStartExecutionOperator"
    return starts and task.arguments.get("deferrable") is not True


def _left_out(operator: str) -> str:
    if operator in AWAITED:
        return "is left out: the stage that starts it waits for its end"
    why = WHY.get(operator)
    told = "" if why is None else f"; {why}"
    return f"is left out: no stage does what this {operator} does{told}"


def _steps(
    dag: Dag, found: Sequence[tuple[str, Task, list[tuple[str, dict[str, Any]]]]], called: str
) -> list[Step]:
    names = [f"{task.name}{ending}" for _, task, steps in found for ending, _ in steps]
    stages = stage_names(list(dict.fromkeys(names)), called)
    last = {variable: f"{task.name}{steps[-1][0]}" for variable, task, steps in found if steps}
    made: list[Step] = []
    for variable, task, steps in found:
        waits = list(dict.fromkeys(last[each] for each in _before(dag, variable, last)))
        for ending, given in steps:
            own = f"{task.name}{ending}"
            step = {**given, "DependsOn": waits}
            made.append(
                Step(
                    own, stages[own], given["Type"], task.path, step, (), "config", keeps_names=True
                )
            )
            waits = [own]
    return made


def _before(dag: Dag, variable: str, last: Mapping[str, str]) -> Iterator[str]:
    """Yield the tasks with steps that a task waits for, also through tasks without."""
    seen: set[str] = set()
    waiting = [*dag.before.get(variable, ())]
    while waiting:
        each = waiting.pop(0)
        if each in last:
            yield each
        elif each not in seen:
            seen.add(each)
            waiting += dag.before.get(each, ())


def _parameters(steps: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    places = re.findall(r"'Get': 'Parameters\.(\w+)'", str(list(steps)))
    return renamed(list(dict.fromkeys(places)))


def _told(dag: Dag, when: Scheduled) -> Iterator[Note]:
    yield from when.notes
    said = {"dag_id", "description", *when.said}
    for key, value in dag.settings.items():
        inner = value.keys() if key == "default_args" and isinstance(value, dict) else ()
        for name in inner if inner and "Get" not in inner else (key,):
            if name not in said:
                path = f"DAG.{key}" if name == key else f"DAG.{key}.{name}"
                yield Note(path, "is left out")
    for place, text in dag.notes:
        yield Note(place, text)
