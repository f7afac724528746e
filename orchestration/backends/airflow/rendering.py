"""From step kinds to tasks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from orchestration.backends.airflow.calls import encode_call, encode_outputs
from orchestration.backends.airflow.spec import DagSpec, LoopSpec, OperatorName, TaskSpec
from orchestration.errors import Problem, UnsupportedError
from orchestration.expressions import Json
from orchestration.expressions.codec import encode
from orchestration.graph import (
    Call,
    Choose,
    Fail,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    Read,
    Require,
    Step,
    Wait,
    Workflow,
    all_steps,
    ordered,
    upstream,
)

INPUTS: Final = "inputs"
OUTPUTS: Final = "outputs"

PROVIDER_OPERATORS: Final[Mapping[tuple[str, str], OperatorName]] = {
    ("sagemaker", "CreateTrainingJob"): "TrainingOperator",
    ("sagemaker", "CreateProcessingJob"): "ProcessingOperator",
    ("sagemaker", "CreateTransformJob"): "TransformOperator",
    ("sagemaker", "CreateModel"): "ModelOperator",
    ("sagemaker", "CreateEndpointConfig"): "EndpointConfigOperator",
    ("sagemaker", "CreateEndpoint"): "EndpointOperator",
    ("sagemaker", "UpdateEndpoint"): "EndpointOperator",
}
"""Calls for which the Amazon provider has an operator that takes the whole request.

Its S3 operators take a bucket and a key only, so they would drop the rest of a request."""

_ID = re.compile(r"[A-Za-z0-9_.-]{1,250}")


def render(workflow: Workflow) -> DagSpec:
    """The DAG of a workflow.

    Raises :class:`UnsupportedError` with everything in the workflow that Airflow can't do.
    """
    renderer = _Renderer()
    renderer.check_names(workflow)
    parameters = sorted(workflow.parameters, key=lambda parameter: parameter.name)
    renderer.add(
        TaskSpec(
            task_id=INPUTS,
            operator="InputsOperator",
            arguments={
                "parameters": [
                    {"name": p.name, "type": p.type, "required": p.default is None}
                    for p in parameters
                ]
            },
        )
    )
    exits = renderer.graph(workflow.graph, _Place((INPUTS,)))
    renderer.add(
        TaskSpec(
            task_id=OUTPUTS,
            operator="OutputsOperator",
            arguments={"outputs": encode(workflow.outputs)},
            upstream=exits,
        )
    )
    if renderer.problems:
        raise UnsupportedError(renderer.problems)
    return DagSpec(
        dag_id=workflow.name,
        description=workflow.description,
        parameters=tuple(parameters),
        schedule=workflow.schedule,
        tasks=tuple(renderer.tasks),
        loops=tuple(renderer.loops),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a graph stands: what its first tasks wait for, and what is around it."""

    entry: tuple[str, ...]
    loop: str | None = None
    teardown_of: str | None = None


@dataclass(slots=True)
class _Renderer:
    tasks: list[TaskSpec] = field(default_factory=list)
    loops: list[LoopSpec] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def check_names(self, workflow: Workflow) -> None:
        if not _ID.fullmatch(workflow.name):
            self._problem("name", f"{workflow.name!r} is no DAG id; use letters, digits and '_.-'")
        names = [step.name for step in all_steps(workflow.graph)]
        groups = {name.partition(".")[0] for name in names if "." in name}
        for name in names:
            if name.partition(".")[0] in (INPUTS, OUTPUTS):
                self._problem(name, "Airflow's first and last task have this name; use another")
            if name in groups:
                self._problem(name, f"a task group has this name; call the step {name}.<what>")
            if not _ID.fullmatch(f"{name}__elements"):
                self._problem(name, "too long for an Airflow task id (238 characters)")

    def add(self, task: TaskSpec) -> tuple[str, ...]:
        self._check_json(task.arguments, task.task_id)
        self.tasks.append(task)
        return (task.task_id,)

    def graph(self, graph: Graph, place: _Place) -> tuple[str, ...]:
        """Add a graph's tasks; those that what follows waits for."""
        before = upstream(graph)
        exits: dict[str, tuple[str, ...]] = {}
        for step in ordered(graph):
            waits = _union(exits[name] for name in sorted(before[step.name]))
            exits[step.name] = self._step(step, replace(place, entry=waits or place.entry))
        inner = frozenset[str]().union(*before.values())
        return _union(exits[name] for name in exits if name not in inner) or place.entry

    def _step(self, step: Step, place: _Place) -> tuple[str, ...]:
        match step:
            case Call():
                return self._call(step, place)
            case Read():
                arguments = {"uri": encode(step.uri), "outputs": encode_outputs(step.outputs)}
                return self._task(step.name, "ReadOperator", arguments, place)
            case Wait():
                return self._task(
                    step.name, "WaitOperator", {"seconds": encode(step.seconds)}, place
                )
            case Fail():
                arguments = {"error": step.error, "cause": encode(step.cause)}
                return self._task(step.name, "FailOperator", arguments, place)
            case Require():
                arguments = {
                    "condition": encode(step.condition),
                    "error": step.error,
                    "cause": encode(step.cause),
                }
                return self._task(step.name, "RequireOperator", arguments, place)
            case Parallel():
                return _union(self.graph(branch, place) for branch in step.branches) or place.entry
            case Choose():
                return self._choose(step, place)
            case ForEach():
                return self._for_each(step, place)
            case Guarded():
                return self._guarded(step, place)
            case _:
                assert_never(step)

    def _task(
        self, task_id: str, operator: OperatorName, arguments: Mapping[str, Json], place: _Place
    ) -> tuple[str, ...]:
        return self.add(
            TaskSpec(
                task_id=task_id,
                operator=operator,
                arguments=arguments,
                upstream=place.entry,
                loop=place.loop,
                teardown_of=place.teardown_of,
            )
        )

    def _call(self, step: Call, place: _Place) -> tuple[str, ...]:
        operation = step.operation
        operator = PROVIDER_OPERATORS.get((operation.service, operation.name), "AwsCallOperator")
        arguments: dict[str, Json] = {
            "config": encode(operation.request),
            "call": encode_call(step),
        }
        return self._task(step.name, operator, arguments, place)

    def _choose(self, step: Choose, place: _Place) -> tuple[str, ...]:
        if place.teardown_of is not None:
            self._problem(step.name, "Airflow can't branch in a clean-up; move it into the body")
        at, join = len(self.tasks), f"{step.name}__join"
        inside = replace(place, entry=(step.name,))
        self._task(step.name, "ChooseOperator", {}, place)
        exits, roots = [], []
        for graph in (step.then, step.otherwise):
            first = len(self.tasks)
            exits.append(self.graph(graph, inside))
            new = [task.task_id for task in self.tasks[first:] if step.name in task.upstream]
            roots.append(new or [join])
        self.tasks[at] = replace(
            self.tasks[at],
            arguments={
                "condition": encode(step.condition),
                "then": roots[0],
                "otherwise": roots[1],
            },
        )
        joined = self._task(join, "JoinOperator", {}, replace(place, entry=_union(exits)))
        self.tasks[-1] = replace(self.tasks[-1], trigger_rule="none_failed_min_one_success")
        return joined

    def _for_each(self, step: ForEach, place: _Place) -> tuple[str, ...]:
        if place.teardown_of is not None:
            self._problem(step.name, "Airflow can't loop in a clean-up; move it into the body")
        if place.loop is not None:
            self._problem(step.name, f"Airflow can't nest loops; it is inside {place.loop}")
        items = f"{step.name}__items"
        self._task(items, "ItemsOperator", {"items": encode(step.items)}, place)
        first = len(self.tasks)
        self.graph(step.body, replace(place, entry=(items,), loop=step.name))
        body = [task.task_id for task in self.tasks[first:]]
        # Airflow wants all_success behind a setup task; its own clean-up stands in for it.
        done = [task.task_id for task in self.tasks[first:] if not task.setup]
        self.loops.append(
            LoopSpec(
                name=step.name,
                items_task=items,
                # Names of groups take no dots; no step's name has a dash.
                group=f"{step.name.partition('.')[2].replace('.', '-') or step.name}-elements",
                max_concurrency=step.max_concurrency,
                steps=tuple(inner.name for inner in all_steps(step.body)),
            )
        )
        arguments: dict[str, Json] = {"collect": encode(step.collect), "tasks": body}
        # It waits for every task, not for the last ones only: a failure marks what follows it at
        # once, while other elements still run.
        collected = self._task(
            step.name, "CollectOperator", arguments, replace(place, entry=(items, *done))
        )
        self.tasks[-1] = replace(self.tasks[-1], trigger_rule="all_done")
        return collected

    def _guarded(self, step: Guarded, place: _Place) -> tuple[str, ...]:
        if place.teardown_of is not None:
            self._problem(step.name, "Airflow can't nest a clean-up in a clean-up")
        acquired = self._call(step.acquire, place)
        self.tasks[-1] = replace(self.tasks[-1], setup=bool(step.cleanup.steps))
        first = len(self.tasks)
        exits = self.graph(step.body, replace(place, entry=acquired))
        # Again every task of the body, so that nothing is released while anything uses it.
        body = tuple(task.task_id for task in self.tasks[first:])
        if not step.cleanup.steps:
            return exits
        released = self.graph(
            step.cleanup,
            replace(place, entry=body or acquired, teardown_of=step.acquire.name),
        )
        return _union([exits if body else (), released])

    def _problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def _check_json(self, value: object, path: str) -> None:
        """Airflow serialises a value that is no JSON into something else without a word."""
        if value is None or isinstance(value, bool | int | str):
            return
        if isinstance(value, float):
            if not math.isfinite(value):
                self._problem(path, f"{value!r} is no JSON number")
        elif isinstance(value, Mapping):
            for key, item in value.items():
                if not isinstance(key, str):
                    self._problem(path, f"the key {key!r} is no text")
                self._check_json(item, f"{path}.{key}")
        elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            for index, item in enumerate(value):
                self._check_json(item, f"{path}[{index}]")
        else:
            kind = type(value).__name__
            self._problem(path, f"{value!r} ({kind}) has no JSON form; give text or a number")


def _union(parts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))
