"""From a workflow to the tasks of a DAG."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from orchestration.backends.airflow import last_look, skipping
from orchestration.backends.airflow.assets import give_options, place_assets
from orchestration.backends.airflow.cutting import Cutter, Place
from orchestration.backends.airflow.draft import Draft
from orchestration.backends.airflow.spec import (
    CHOICE_PARTS,
    INPUTS,
    LEFTOVERS,
    OUTPUTS,
    DagSpec,
    LoopSpec,
    OperatorName,
    TaskSpec,
)
from orchestration.cleanup import leftovers
from orchestration.errors import Problem, UnsupportedError
from orchestration.expressions import SCALARS, Json
from orchestration.graph import Call, Graph, Workflow, all_steps
from orchestration.graph.codec import encode

PROVIDER_OPERATORS: Final[Mapping[tuple[str, str], OperatorName]] = {
    ("sagemaker", "CreateTrainingJob"): "TrainingOperator",
    ("sagemaker", "CreateProcessingJob"): "ProcessingOperator",
    ("sagemaker", "CreateTransformJob"): "TransformOperator",
    ("sagemaker", "CreateHyperParameterTuningJob"): "TuningOperator",
    ("sagemaker", "CreateEndpoint"): "EndpointOperator",
    ("sagemaker", "UpdateEndpoint"): "EndpointOperator",
    ("sagemaker", "CreateEndpointConfig"): "EndpointConfigOperator",
    ("sagemaker", "CreateModel"): "ModelOperator",
}
"""Calls for which the Amazon provider has an operator that takes the whole request; the first one
that is in a task makes it an instance of it.

Its S3 operators take a bucket and a key only, so they would drop the rest of a request."""
_OPERATORS: Final[Mapping[tuple[str, str], OperatorName]] = {
    **PROVIDER_OPERATORS,
    ("fsx", "CreateFileSystem"): "FileSystemOperator",
    ("fsx", "DescribeFileSystems"): "FileSystemOperator",
}

_ID = re.compile(r"[A-Za-z0-9_.-]{1,250}")


def render(workflow: Workflow) -> DagSpec:
    """Return the DAG of a workflow.

    Raises :class:`UnsupportedError` with everything in the workflow that Airflow can't do.
    """
    cutter = Cutter()
    inputs = Draft(stage=INPUTS, kind="inputs", named_by=INPUTS, open=False)
    cutter.tasks.append(inputs)
    exits = cutter.graph(workflow.graph, Place((inputs,), begun_by=inputs))
    outputs = Draft(
        stage=OUTPUTS,
        kind="outputs",
        named_by=OUTPUTS,
        returns=workflow.outputs,
        has_return=True,
        upstream=list(exits),
        begun_by=inputs,
        open=False,
    )
    cutter.tasks.append(outputs)
    skipping.show(cutter.tasks)
    place_assets(workflow, cutter.tasks)
    cutter.problems += give_options(workflow, cutter.tasks)
    left = leftovers(workflow.graph)
    cutter.tasks += last_look.tasks(left, cutter.tasks)
    writer = _Writer(cutter.tasks, last_look.arguments(left))
    tasks = tuple(writer.task(draft) for draft in _sorted(cutter.tasks))
    loops = tuple(
        LoopSpec(
            name=group.step.name,
            items_task=writer.names[group.items],
            group=group.name,
            max_concurrency=group.step.max_concurrency,
        )
        for group in cutter.groups
    )
    problems = [*_misnamed(workflow), *cutter.problems, *writer.problems]
    if problems:
        raise UnsupportedError(problems)
    return DagSpec(
        dag_id=workflow.name,
        description=workflow.description,
        parameters=tuple(sorted(workflow.parameters, key=lambda parameter: parameter.name)),
        schedule=workflow.schedule,
        trigger=workflow.trigger,
        overlap=workflow.overlap,
        tasks=tasks,
        loops=loops,
        region=workflow.region,
        notify=workflow.notify,
        options=workflow.airflow.get("", {}),
        tags=tuple(f"{key}:{value}" for key, value in sorted(workflow.tags.items())),
    )


def warnings(workflow: Workflow) -> list[Problem]:
    """Return what means something else on Airflow."""
    if workflow.schedule is None or workflow.schedule.flexible_window_minutes is None:
        return []
    text = "Airflow has no window: it starts each run at the beginning, with those of other DAGs"
    field = "schedule.flexible_window_minutes"
    return [Problem(field, f"{text}; a pool keeps their tasks apart (airflow: {{pool: …}})")]


def _sorted(tasks: Sequence[Draft]) -> Iterator[Draft]:
    """Yield each task after those it waits for, else in the order in which they were cut."""
    done: set[int] = set()

    def visit(task: Draft) -> Iterator[Draft]:
        stack = [(task, iter(task.upstream))]
        while stack:
            current, waits = stack[-1]
            following = next((w for w in waits if id(w) not in done), None)
            if following is not None:
                stack.append((following, iter(following.upstream)))
                continue
            stack.pop()
            if id(current) not in done:
                done.add(id(current))
                yield current

    for task in tasks:
        yield from visit(task)


def _misnamed(workflow: Workflow) -> Iterator[Problem]:
    if not _ID.fullmatch(workflow.name):
        yield Problem("name", f"{workflow.name!r} can't be a DAG id; use letters, digits and '_.-'")
    names = [step.name for step in all_steps(workflow.graph)]
    grouped = {name.partition(".")[0] for name in names if "." in name}
    for name in names:
        if name.partition(".")[0] in (INPUTS, OUTPUTS, LEFTOVERS):
            yield Problem(name, "a task of every DAG has this name; use another")
        if name in grouped:
            yield Problem(name, f"a task group has this name; call the step {name}.<what>")
        if not _ID.fullmatch(f"{name}__collect"):
            yield Problem(name, "too long for an Airflow task id (238 characters)")


@dataclass(slots=True)
class _Writer:
    """Writes tasks down, once all of them are known."""

    drafts: Sequence[Draft]
    fixed: dict[str, Json]
    """The arguments of the task that looks for leftovers."""
    names: dict[Draft, str] = field(default_factory=dict)
    owners: dict[str, Draft] = field(default_factory=dict)
    """The task that leaves the results of each step."""
    wanted: Counter[str] = field(default_factory=Counter)
    """The steps whose results other tasks read."""
    problems: list[Problem] = field(default_factory=list)
    _consumed: dict[Draft, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stages = Counter(draft.stage for draft in self.drafts)
        taken = {name for draft in self.drafts for name in draft.step_names}
        for draft in self.drafts:
            self.names[draft] = _name(draft, taken, alone=stages[draft.stage] == 1)
            taken.add(self.names[draft])
            self.owners |= dict.fromkeys(draft.produced, draft)
            self._consumed[draft] = draft.consumed
            self.wanted.update(self._consumed[draft])

    def task(self, draft: Draft) -> TaskSpec:
        arguments = self._arguments(draft)
        name = self.names[draft]
        if not _is_json(arguments):
            self._check_json(arguments, name)
        loop = draft.loop_step
        mapped = draft.kind == "mapped" and loop is not None
        return TaskSpec(
            task_id=name,
            stage=draft.stage,
            operator=_operator(draft),
            arguments=arguments,
            upstream=tuple(self.names[task] for task in draft.upstream),
            trigger_rule=draft.trigger_rule,
            mapped_over=self.names[draft.items] if mapped and draft.items is not None else None,
            max_concurrency=loop.max_concurrency if mapped and loop is not None else None,
            loop=draft.loop,
            setup=draft.setup,
            teardown_of=None if draft.teardown_of is None else self.names[draft.teardown_of],
            teardown=draft.kind == "leftovers",
            options=draft.options,
        )

    def _arguments(self, draft: Draft) -> dict[str, Json]:
        if draft.kind in ("join", "inputs", "leftovers"):
            return self.fixed if draft.kind == "leftovers" else {}
        sources = self._sources(draft)
        arguments: dict[str, Json] = {"reads": sources} if sources else {}
        if draft.kind == "choose" and draft.choice is not None:
            then, otherwise = ([self.names[task] for task in way] for way in draft.ways)
            condition = encode(draft.choice.condition)
            return arguments | {"condition": condition, "then": then, "otherwise": otherwise}
        if draft.ends is not None and draft.ends.kept:
            arguments["kept"] = encode(draft.ends.kept)
        if draft.kind == "mapped":
            arguments["each"] = encode(draft.loop_step)
        elif draft.steps:
            arguments["steps"] = encode(draft.steps)
        if kept := sorted(draft.produced & self.wanted.keys()):
            arguments["keeps"] = kept
        if draft.gathers is not None and draft.loop_step is not None and draft.items is not None:
            arguments["gathers"] = {
                "loop": draft.loop_step.name,
                "task": self.names[draft.gathers],
                "items_task": self.names[draft.items],
            }
        arguments |= _results(draft)
        if draft.skips:
            arguments["skips"] = True
        if call := _shown(draft):
            arguments["config"] = encode(call.operation.request)
        return arguments

    def _sources(self, draft: Draft) -> dict[str, Json]:
        """Which task left each result that the task reads; in the same element, with a mark."""
        sources: dict[str, Json] = {}
        for step in sorted(self._consumed[draft]):
            owner = self.owners.get(step)
            if owner is None or owner is draft:
                continue
            same = draft.loop is not None and owner.loop == draft.loop
            sources[step] = {"task": self.names[owner], "element": same}
        return sources

    def _check_json(self, value: object, path: str) -> None:
        """Name what is not JSON, which Airflow would serialise into something else."""
        if value is None or isinstance(value, bool | int | str):
            return
        if isinstance(value, float):
            if not math.isfinite(value):
                self.problems.append(Problem(path, f"{value!r} is not a JSON number"))
        elif isinstance(value, Mapping):
            for key, item in value.items():
                if not isinstance(key, str):
                    self.problems.append(Problem(path, f"the key {key!r} is not text"))
                self._check_json(item, f"{path}.{key}")
        elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            for index, item in enumerate(value):
                self._check_json(item, f"{path}[{index}]")
        else:
            kind = type(value).__name__
            message = f"{value!r} ({kind}) has no JSON form; give text or a number"
            self.problems.append(Problem(path, message))


def _results(draft: Draft) -> dict[str, Json]:
    """Return the arguments that say what a task gives beside the results of its steps."""
    arguments: dict[str, Json] = {}
    if (choice := draft.collects) is not None:
        arguments["joins"] = {part: encode(getattr(choice, part)) for part in CHOICE_PARTS}
    if draft.has_return:
        arguments["returns"] = encode(draft.returns)
    if draft.writes:
        arguments["writes"] = {name: encode(uri) for name, uri in draft.writes.items()}
    return arguments


def _is_json(value: object) -> bool:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if isinstance(value, (dict, Mapping)):
            if any(not isinstance(key, str) for key in value):
                return False
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif not isinstance(value, SCALARS):
            return False
    return True


def _name(draft: Draft, taken: Set[str], *, alone: bool) -> str:
    """Return a task's id: the stage's name where the stage is one task."""
    if alone:
        return draft.stage
    if draft.named_by:
        return draft.named_by
    if draft.gathers is None or draft.loop_step is None:
        return draft.steps[0].name
    if draft.steps:
        return draft.steps[-1].name
    # No step follows the loop: the task collects its results.
    loop, results = draft.loop_step.name, f"{draft.stage}.results"
    return results if "." in loop and results not in taken else f"{loop}__results"


def _operator(draft: Draft) -> OperatorName:
    match draft.kind:
        case "inputs":
            return "InputsOperator"
        case "choose":
            return "ChooseOperator"
        case "join":
            return "JoinOperator"
        case "leftovers":
            return "LeftoversOperator"
        case "outcome":
            return "OutcomeOperator"
        case _:
            call = _shown(draft)
            if call is None:
                return "StepsOperator"
            return _OPERATORS[call.operation.service, call.operation.name]


def _shown(draft: Draft) -> Call | None:
    """Return the call that decides the task's operator, and whose request the task shows."""
    calls = {
        (step.operation.service, step.operation.name): step
        for step in all_steps(Graph(tuple(draft.performed)))
        if isinstance(step, Call)
    }
    return next((calls[kind] for kind in _OPERATORS if kind in calls), None)
