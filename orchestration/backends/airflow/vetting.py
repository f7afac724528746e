"""Checks of a specification: it names our operators, steps and expressions, and its own tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, get_args

from orchestration.backends.airflow import options
from orchestration.backends.airflow.spec import (
    INPUTS,
    OUTPUTS,
    LoopSpec,
    OperatorName,
    TaskSpec,
    TriggerRule,
)
from orchestration.errors import Problem
from orchestration.graph import NotifySpec, Overlap, ParameterSpec, ScheduleSpec, TriggerSpec
from orchestration.graph.codec import unknown

_STEPS: Final = frozenset(
    {
        *("config", "each", "gathers", "joins", "keeps", "reads", "returns", "skips", "steps"),
        "writes",
    },
)
_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(get_args(OperatorName), _STEPS),
    "InputsOperator": frozenset(),
    "ChooseOperator": frozenset({"condition", "otherwise", "reads", "then"}),
    "JoinOperator": frozenset(),
    "OutcomeOperator": frozenset({"keeps"}),
    "LeftoversOperator": frozenset({"jobs"}),
}
"""The arguments that a specification gives to each operator."""


def problems(document: Any) -> Iterator[Problem]:
    """Yield what is wrong with the JSON of a specification; nothing in it is built or imported."""
    try:
        shape = list(_shape(document))
        yield from shape
        if not shape:
            yield from _missing(document["tasks"], document["loops"])
            for name, task in document["tasks"].items():
                yield from _task(f"tasks.{name}", task)
    except (AttributeError, KeyError, TypeError) as error:
        yield Problem("", f"expected a specification, got something else ({error!r:.80})")


def _shape(document: Any) -> Iterator[Problem]:
    for name in ("dag_id", "description"):
        if not isinstance(document[name], str):
            yield Problem(name, f"expected text, got {document[name]!r:.60}")
    if not isinstance(document.get("region", ""), str):
        yield Problem("region", f"expected text, got {document['region']!r:.60}")
    yield from _records(document["parameters"], "parameters", ParameterSpec, "name")
    yield from _records(document["loops"], "loops", LoopSpec, "name")
    yield from _records(document["tasks"], "tasks", TaskSpec, "task_id")
    if not all(isinstance(tag, str) for tag in document["tags"]):
        yield Problem("tags", f"expected texts, got {document['tags']!r:.60}")
    if document["schedule"] is not None:
        yield from _fields(document["schedule"], "schedule", ScheduleSpec, "")
    if "trigger" in document:
        yield from _fields(document["trigger"], "trigger", TriggerSpec, "")
    yield from options.problems(document.get("options", {}), "options")
    yield from _of_runs(document)


def _of_runs(document: Any) -> Iterator[Problem]:
    """Yield what is wrong with what the specification says of whole runs."""
    if document.get("overlap") not in (None, *get_args(Overlap)):
        yield Problem("overlap", f"unknown policy {document['overlap']!r:.60}")
    notify = document.get("notify")
    if notify is not None:
        yield from _fields(notify, "notify", NotifySpec, "")
        for end, topics in notify.items():
            if not isinstance(topics, list) or not all(isinstance(arn, str) for arn in topics):
                yield Problem(f"notify.{end}", f"expected a list of texts, got {topics!r:.60}")


def _records(records: Any, path: str, kind: type, key: str) -> Iterator[Problem]:
    for name, record in records.items():
        yield from _fields(record, f"{path}.{name}", kind, key)


def _fields(record: Any, path: str, kind: type, key: str) -> Iterator[Problem]:
    """Compare the keys of an object with a dataclass's fields, without the one of its name."""
    known = {field.name: field for field in fields(kind) if field.name != key}
    for name in record.keys() - known.keys():
        yield Problem(path, f"unknown field {name!r:.60}")
    for name, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and name not in record:
            yield Problem(path, f"missing field {name!r}")


def _missing(tasks: Mapping[str, Any], loops: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the tasks that others name and that are missing."""
    for name in {INPUTS, OUTPUTS} - tasks.keys():
        yield Problem("tasks", f"missing task {name!r}")
    for name, task in tasks.items():
        others = [*task["upstream"], task.get("mapped_over"), task.get("teardown_of")]
        for other in others:
            if other is not None and other not in tasks:
                yield Problem(f"tasks.{name}", f"unknown task {other!r:.60}")
        if task.get("loop") is not None and task["loop"] not in loops:
            yield Problem(f"tasks.{name}", f"unknown loop {task['loop']!r:.60}")
    for name, loop in loops.items():
        if loop["items_task"] not in tasks:
            yield Problem(f"loops.{name}", f"unknown task {loop['items_task']!r:.60}")


def _task(path: str, task: Mapping[str, Any]) -> Iterator[Problem]:
    yield from options.problems(task.get("options", {}), f"{path}.options")
    operator = task["operator"]
    if operator not in _ARGUMENTS:
        yield Problem(path, f"unknown operator {operator!r:.60}")
        return
    if task.get("trigger_rule", "all_success") not in get_args(TriggerRule):
        yield Problem(path, f"unknown trigger rule {task['trigger_rule']!r:.60}")
    for name in task["arguments"].keys() - _ARGUMENTS[operator]:
        yield Problem(path, f"unknown argument {name!r:.60} of {operator}")
    for what in unknown(task["arguments"]):
        yield Problem(path, f"unknown {what}")
