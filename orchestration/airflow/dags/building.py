"""From a specification to Airflow's objects."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow.providers.common.compat.sdk import DAG, TaskGroup, task_group
from airflow.sdk import Asset
from airflow.sdk.definitions.param import ParamsDict

from orchestration.airflow import operators, versions
from orchestration.airflow.dags import overlapping
from orchestration.airflow.dags.groups import PipelineGroup, current_dag, group_for, is_mapped
from orchestration.airflow.dags.options import outlets, task_arguments
from orchestration.airflow.dags.parameters import bound, defaults, params
from orchestration.airflow.dags.triggering import catching_up, schedule_of, success_of
from orchestration.airflow.dags.ways import only_if_chosen
from orchestration.backends.airflow import DagSpec, LoopSpec, TaskSpec
from orchestration.backends.airflow.grouping import inside
from orchestration.backends.airflow.spec import INPUTS, OUTPUTS
from orchestration.errors import PipelineError, Problem
from orchestration.execution.clients import mismatch
from orchestration.graph import Overlap

_log = logging.getLogger(__name__)

_PLAIN = frozenset({"InputsOperator", "ChooseOperator", "JoinOperator", "OutcomeOperator"})

# A worker that dies is what retries are for: a second attempt adopts what the first one started.
# What ended badly fails for good, whatever this says.
DEFAULT_ARGS: Mapping[str, Any] = {"owner": "orchestration", "retries": 2}

_NESTED = frozenset({"config", "each"})
"""The arguments of a mapped task that are given as JSON text."""
_LONGEST_TAG = 100
"""Characters that Airflow's database has for a tag of a DAG."""
_ELEMENT_NAME = "{{ task.element_name }}"


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection by which tasks reach AWS."""

    aws_conn_id: str | None
    region_name: str | None
    deferrable: bool

    def of(self, spec: DagSpec) -> Connection:
        """Return the connection in the region of the pipeline."""
        wrong = mismatch(spec.dag_id, spec.region, place="region_name", other=self.region_name)
        if wrong is not None:
            raise PipelineError([Problem("region_name", wrong)])
        return replace(self, region_name=self.region_name or spec.region)


def build(
    spec: DagSpec,
    connection: Connection,
    parameters: Mapping[str, Any],
    dag_kwargs: Mapping[str, Any],
) -> DAG:
    """Make the DAG; nothing is read, sent or asked for."""
    if current_dag() is not None:
        raise PipelineError(
            [Problem("dag", "there is a DAG around this; use task_group() to be part of it")]
        )
    schedule, own = spec.schedule, connection.of(spec)
    values = defaults(spec.parameters, {} if schedule is None else schedule.parameters, parameters)
    default_args = {**_defaults(spec), **(dag_kwargs.get("default_args") or {})}
    given = default_args.pop("params", None) or {}
    arguments: dict[str, Any] = {
        "dag_id": spec.dag_id,
        "description": spec.description or None,
        "doc_md": spec.description or None,
        "schedule": schedule_of(spec, own.aws_conn_id, own.region_name),
        "tags": sorted({tag[:_LONGEST_TAG] for tag in spec.tags}),
        **catching_up(schedule),
        **dag_kwargs,
        "default_args": default_args,
    }
    policy = overlapping.policy_of(spec, arguments["schedule"])
    arguments = {**overlapping.bound(policy), **arguments}
    for name, notifiers in _notifiers(spec, connection).items():
        arguments[name] = [*_several(arguments.get(name)), *notifiers]
    trigger = spec.trigger
    told = () if trigger is None else (*trigger.values, *trigger.parameters)
    timed = None if schedule is None else schedule.time_parameter
    told = told if timed is None else (*told, timed)
    made = {**params(spec.parameters, values, told), **given}
    made |= arguments.pop("params", None) or {}
    if arguments["schedule"] is not None:
        _check_scheduled(spec, values, dag_kwargs)
    with DAG(**arguments) as dag:
        builder = _Builder(spec, own, dag, dag.task_group, policy=policy)
        builder.build()
        versions.show_result(dag, builder.tasks[OUTPUTS])
    # Set last: DAG(params=…) copies them into every task, and each copy is validated over and over
    # while the DAG is serialised.
    dag.params = ParamsDict(made)
    return dag


def build_group(
    spec: DagSpec,
    connection: Connection,
    parameters: Mapping[str, Any],
    group_kwargs: Mapping[str, Any],
) -> PipelineGroup:
    """Make the task group, in the DAG around; nothing is read, sent or asked for."""
    values = bound(spec.parameters, parameters)
    if spec.notify is not None:
        _log.warning(
            "notify of %s is about whole runs; in a task group nobody is told, so give the DAG "
            "around it callbacks of its own",
            spec.dag_id,
        )
    group = group_for(spec, _defaults(spec), group_kwargs)
    name = str(group.group_id)
    own = inside(spec, name, mapped=is_mapped(group))
    builder = _Builder(own, connection.of(spec), group.dag, group, name, values)
    with group:
        builder.build()
    group.outputs = builder.tasks[f"{name}.{OUTPUTS}"].output
    return group


def _defaults(spec: DagSpec) -> dict[str, Any]:
    """Return the arguments of all tasks, unless a task or the user's ``default_args`` differ."""
    return {**DEFAULT_ARGS, **task_arguments(spec.options)}


def _notifiers(spec: DagSpec, connection: Connection) -> dict[str, list[Any]]:
    """Return the callbacks of the DAG that tell how its runs end."""
    if spec.notify is None:
        return {}
    # Only a pipeline that tells somebody pays for this import while it is parsed.
    from orchestration.airflow.notifying import RunNotifier

    return {
        f"on_{end}_callback": [
            RunNotifier(topic=topic, failed=end == "failure", aws_conn_id=connection.aws_conn_id)
            for topic in topics
        ]
        for end, topics in (
            ("failure", spec.notify.on_failure),
            ("success", spec.notify.on_success),
        )
        if topics
    }


def _several(callbacks: Any) -> list[Any]:
    """Return a user's own callbacks: none, one or several."""
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]


def _check_scheduled(
    spec: DagSpec, values: Mapping[str, Any], dag_kwargs: Mapping[str, Any]
) -> None:
    trigger, problems = spec.trigger, list[Problem]()
    # A run at a time has no event, whoever says the time; and a run after an event has no time.
    if trigger is None or spec.schedule is not None or "schedule" in dag_kwargs:
        told = frozenset[str]() if spec.schedule is None else spec.schedule.told
        problems += _untold("scheduled", "in the schedule", told, spec, values)
    if trigger is not None and "schedule" not in dag_kwargs:
        told = frozenset((*trigger.values, *trigger.parameters))
        problems += _untold("triggered", "in the trigger", told, spec, values)
    if problems:
        raise PipelineError(problems)


def _untold(
    kind: str, place: str, told: Collection[str], spec: DagSpec, values: Mapping[str, Any]
) -> list[Problem]:
    text = f"a {kind} run can't ask for it; give it a value in `dag(parameters=…)`, {place}, or as "
    return [
        Problem(f"parameters.{p.name}", f"{text}its default")
        for p in spec.parameters
        if values[p.name] is None and p.name not in told
    ]


@dataclass(slots=True)
class _Builder:
    spec: DagSpec
    connection: Connection
    dag: DAG
    root: TaskGroup
    """The group that its tasks stand in."""
    group: str | None = None
    """The task group around all its tasks, in somebody's own DAG."""
    values: Mapping[str, Any] | None = None
    """In such a group, the parameters' values, those of earlier tasks as references."""
    policy: Overlap = "allow"
    """The policy for runs that overlap; in such a group, the DAG's own settings count."""
    groups: dict[str, TaskGroup] = field(default_factory=dict)
    tasks: dict[str, Any] = field(default_factory=dict)

    def build(self) -> None:
        loops = {loop.name: loop for loop in self.spec.loops}
        built: set[str] = set()
        for task in self.spec.tasks:
            if task.loop is None:
                self._add(task, None)
            elif task.loop not in built:
                built.add(task.loop)
                self._loop(loops[task.loop])
        for task in self.spec.tasks:
            self._connect(task)

    def _loop(self, loop: LoopSpec) -> None:
        """Make a task group that is mapped over what its items task returns."""
        items = self.tasks[loop.items_task]

        def elements(element: object) -> None:  # noqa: ARG001 (Airflow counts the elements by it)
            for task in self.spec.tasks:
                if task.loop == loop.name:
                    self._add(task, loop)

        stage, inner, _ = loop.name.partition(".")
        group = self._stage_group(stage) if inner else self.root
        mapped = task_group(group_id=loop.group, prefix_group_id=False, parent_group=group)
        mapped(elements).expand(element=items.output)

    def _stage_group(self, stage: str) -> TaskGroup:
        if stage not in self.groups:
            self.groups[stage] = TaskGroup(stage, dag=self.dag, parent_group=self.root)
        return self.groups[stage]

    def _add(self, task: TaskSpec, loop: LoopSpec | None) -> None:
        arguments: dict[str, Any] = {
            **task.arguments,
            **task_arguments(task.options),
            "task_id": task.task_id,
            "trigger_rule": task.trigger_rule,
        }
        if loop is not None:
            arguments["max_active_tis_per_dagrun"] = loop.max_concurrency
            if task.operator != "JoinOperator":
                arguments["items_task"] = loop.items_task
        else:
            self._place(task, arguments)
        arguments |= self._chosen(task, loop)
        if task.stage == INPUTS:
            arguments["parameters"] = self.spec.parameters
            arguments["values"] = self.values
            arguments["tasks"] = {task.task_id: task.arguments for task in self.spec.tasks}
            if self.group is None:
                arguments["trigger"] = self.spec.trigger
                arguments["schedule"] = self.spec.schedule
            arguments |= self._region()
            arguments |= overlapping.looking(self.policy, deferrable=self.connection.deferrable)
        elif self.group is not None and task.operator != "JoinOperator":
            arguments["group"] = self.group
        if task.stage == OUTPUTS and self.group is not None:
            arguments["multiple_outputs"] = True
        assets = [Asset(name) for name in arguments.get("writes", ())]
        if task.stage == OUTPUTS:
            assets.append(success_of(self.spec.dag_id))
        assets += outlets(self.spec.options if task.stage == OUTPUTS else task.options)
        if assets:
            arguments["outlets"] = assets
        if task.operator not in _PLAIN:
            arguments |= overlapping.giving_way(self.policy, task)
            arguments["aws_conn_id"] = self.connection.aws_conn_id
            arguments["region_name"] = self.connection.region_name
            bounded = loop is not None or task.mapped_over is not None
            counted = versions.COUNTS_DEFERRED or not bounded
            arguments["deferrable"] = self.connection.deferrable and counted
        self.tasks[task.task_id] = self._made(task, arguments)

    def _chosen(self, task: TaskSpec, loop: LoopSpec | None) -> dict[str, Any]:
        """Return how a task with an instance for each element asks what a choice has chosen."""
        if loop is None and not is_mapped(self.root):
            return {}
        operator = {each.task_id: each.operator for each in self.spec.tasks}
        choices = [name for name in task.upstream if operator[name] == "ChooseOperator"]
        if not choices:
            return {}
        versions.check_choice(choices[-1])
        return {"pre_execute": only_if_chosen(choices[-1])}

    def _region(self) -> dict[str, Any]:
        """Return what the first task compares before anything is sent."""
        if self.spec.region is None:
            return {}
        return {
            "pipeline": self.spec.dag_id,
            "region": self.spec.region,
            "aws_conn_id": self.connection.aws_conn_id,
        }

    def _place(self, task: TaskSpec, arguments: dict[str, Any]) -> None:
        """Put the task into its groups, which Airflow puts in front of its id."""
        name = task.task_id if self.group is None else task.task_id.removeprefix(f"{self.group}.")
        if name.startswith(f"{task.stage}."):
            arguments["task_group"] = self._stage_group(task.stage)
            name = name.removeprefix(f"{task.stage}.")
        arguments["task_id"] = name

    def _made(self, task: TaskSpec, arguments: dict[str, Any]) -> Any:
        operator = getattr(operators, task.operator)
        if task.mapped_over is None:
            return operator(**arguments)
        # Airflow writes down a mapped task's arguments value by value, with the type of each.
        texts = {name: json.dumps(arguments[name]) for name in _NESTED & arguments.keys()}
        mapped = operator.partial(
            **{**arguments, **texts},
            max_active_tis_per_dagrun=task.max_concurrency,
            map_index_template=_ELEMENT_NAME,
        )
        return mapped.expand(item=self.tasks[task.mapped_over].output)

    def _connect(self, task: TaskSpec) -> None:
        operator = self.tasks[task.task_id]
        operator.set_upstream([self.tasks[name] for name in task.upstream])
        if task.setup:
            operator.as_setup()
        if task.teardown_of is not None:
            operator.as_teardown(setups=self.tasks[task.teardown_of], on_failure_fail_dagrun=True)
        elif task.teardown:
            operator.as_teardown(on_failure_fail_dagrun=True)
