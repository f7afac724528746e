"""Control flow: the operators that make no call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import BaseBranchOperator, BaseOperator

from orchestration.airflow.context import TaskEnvironment, event_triggered, fail, scheduled_time
from orchestration.airflow.dags.overlapping import skip_if_under_way
from orchestration.airflow.dags.parameters import resolved
from orchestration.airflow.dags.superseding import Turn, wait_for_turn
from orchestration.airflow.dags.triggering import values_told
from orchestration.backends.airflow.triggers import RUN
from orchestration.errors import ExpressionError
from orchestration.execution import wording
from orchestration.execution.clients import mismatch
from orchestration.execution.parameters import problems
from orchestration.expressions import Json, evaluate
from orchestration.graph import (
    Call,
    Graph,
    ParameterSpec,
    ScheduleSpec,
    TriggerSpec,
    all_steps,
    operations,
)
from orchestration.graph.codec import decode

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class InputsOperator(BaseOperator):
    """The first task: what the run was started with, refused whole where anything is wrong.

    ``values`` are the parameters in a task group, the results of earlier tasks among them; without
    it they are the DAG's params. ``tasks`` are the arguments of all others, whose requests are
    checked against the botocore that is installed here. ``region`` is that of ``pipeline``, which
    the connection must not contradict. ``skips_overlapping``: whether the run is skipped while an
    older one is under way. ``stops_older``: whether it takes the place of those that are.
    """

    template_fields: Sequence[str] = ("values",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"values": "json"}

    def __init__(
        self,
        *,
        parameters: Sequence[ParameterSpec],
        values: Mapping[str, Any] | None = None,
        tasks: Mapping[str, Mapping[str, Any]] | None = None,
        trigger: TriggerSpec | None = None,
        schedule: ScheduleSpec | None = None,
        pipeline: str = "",
        region: str | None = None,
        aws_conn_id: str | None = None,
        skips_overlapping: bool = False,
        stops_older: bool = False,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.skips_overlapping = skips_overlapping
        self.stops_older = stops_older
        self.deferrable = deferrable
        self.pipeline = pipeline
        self.region = region
        self.aws_conn_id = aws_conn_id
        self.parameters = parameters
        self.tasks = tasks or {}
        self.trigger = trigger
        self.time_parameter = None if schedule is None else schedule.time_parameter
        self.values = values

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Any,
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        """Read the results of earlier tasks; texts stay as they are, whatever is in them."""
        rest = [name for name in template_fields if name != "values"]
        super()._do_render_template_fields(parent, rest, context, jinja_env, seen_oids)
        if self.values is not None:
            self.values = {name: resolved(value, context) for name, value in self.values.items()}

    def execute(self, context: Context) -> Any:
        """Return the parameters of this run."""
        specs = self.parameters
        if self.values is None:
            known = {spec.name for spec in specs}
            values = {name: v for name, v in context["params"].items() if name in known}
            told = self._told(context)
            values |= {name: v for name, v in told.items() if name in known} | self._timed(context)
            wrong = problems(specs, {**(context["dag_run"].conf or {}), **values})
            values = {**told, **values}
        else:
            values = dict(self.values)
            # A default is among the values: what is None is the result of a task that left none.
            wrong = problems([replace(spec, default=None) for spec in specs], values)
        if wrong:
            fail(context, wording.INVALID_INPUT, wording.SEPARATOR.join(wrong))
        if contradiction := self._contradiction():
            fail(context, wording.REGION_MISMATCH, contradiction)
        if unknown := [*_unknown_fields(self.tasks)]:
            cause = f"the botocore installed here ({version('botocore')}) does not know "
            fail(context, wording.UNKNOWN_FIELD, cause + ", ".join(unknown))
        if self.skips_overlapping:
            skip_if_under_way(context)
        if self.stops_older:
            turn = Turn(context, starts=True, event=values.get(RUN))
            wait_for_turn(self, context, turn, deferrable=self.deferrable)
        return {**values, **self._element(context)}

    def begin(self, context: Context, event: object = None) -> Any:
        """Look again, after a while, whether older runs have ended."""
        return self.execute(context)

    def _element(self, context: Context) -> dict[str, str]:
        """Return the name of the run in a task group that is mapped: each element has its own."""
        index = context["ti"].map_index
        if self.values is None or index is None or index < 0:
            return {}
        group = self.task_id.rpartition(".")[0]
        return {RUN: f"{context['dag'].dag_id}/{context['run_id']}/{group}/{index}"}

    def _told(self, context: Context) -> dict[str, Any]:
        """Return what an event told, if one started the run."""
        if self.trigger is None or not event_triggered(context):
            return {}
        return values_told(self.trigger, self.parameters, context)

    def _timed(self, context: Context) -> dict[str, str]:
        """Return the time of a scheduled run, unless who started a back-fill gave it another."""
        name = self.time_parameter
        if name is None or name in (context["dag_run"].conf or {}):
            return {}
        time = scheduled_time(context)
        return {} if time is None else {name: time}

    def _contradiction(self) -> str | None:
        """Return how the connection contradicts the pipeline's region; ``None``: it does not."""
        if self.region is None or self.aws_conn_id is None:
            return None
        # Only this task reads the connection by itself, and a DAG file is parsed all the time.
        from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook

        connection: AwsBaseHook = AwsBaseHook(aws_conn_id=self.aws_conn_id)
        place = f"the connection {self.aws_conn_id!r}"
        return mismatch(self.pipeline, self.region, place=place, other=connection.region_name)


def _unknown_fields(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the fields that the service model at hand lacks, before anything is paid.

    Where a DAG is parsed from its lock file its requests were checked elsewhere, perhaps with a
    newer botocore than the workers have.
    """
    # Only this task needs it, and a DAG file is parsed all the time.
    from orchestration.checks.requests import unknown_fields

    for arguments in tasks.values():
        steps = [decode(step) for step in arguments.get("steps", ())]
        steps += [decode(arguments["each"])] if "each" in arguments else []
        for step in all_steps(Graph(tuple(steps))):
            for operation in operations(step) if isinstance(step, Call) else ():
                for path in unknown_fields(operation.service, operation.name, operation.request):
                    yield f"{operation.service}:{operation.name} {path} ({step.name})".strip()


class ChooseOperator(BaseBranchOperator):
    """Goes one of two ways."""

    def __init__(
        self,
        *,
        condition: Json,
        then: Sequence[str],
        otherwise: Sequence[str],
        reads: Mapping[str, Mapping[str, Any]] | None = None,
        items_task: str | None = None,
        group: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.group = group
        self.condition = condition
        self.then = list(then)
        self.otherwise = list(otherwise)
        self.reads = reads or {}
        self.items_task = items_task

    def choose_branch(self, context: Context) -> list[str]:
        """Return the first tasks of the way to go."""
        environment = TaskEnvironment(context, self.reads, self.items_task, self.group)
        try:
            holds = evaluate(decode(self.condition), environment)
        except ExpressionError as error:
            fail(context, wording.EXPRESSION_ERROR, str(error))
        if not isinstance(holds, bool):
            message = f"expected a condition that is true or false, got {holds!r}"
            fail(context, wording.EXPRESSION_ERROR, message)
        return self.then if holds else self.otherwise


class JoinOperator(BaseOperator):
    """The end of a choice, at which its two ways meet again."""

    def execute(self, context: Context) -> Any:
        """Return nothing."""
        return {}
