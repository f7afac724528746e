"""The common part of a pipeline's tasks: they perform steps."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn, cast

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowSkipException,
    Asset,
    BaseOperator,
)

from orchestration.airflow.clients import Clients
from orchestration.airflow.context import TaskEnvironment, another_follows, attempt, fail, run_begun
from orchestration.airflow.dags.superseding import Turn, superseded, wait_for_turn
from orchestration.airflow.edge import GoesOnElsewhere, WorkerEdge
from orchestration.airflow.journal import Journal
from orchestration.airflow.links import links
from orchestration.airflow.people import asking
from orchestration.airflow.triggers import FollowTrigger
from orchestration.airflow.watches import watch_to_json
from orchestration.backends.airflow.spec import CHOICE_PARTS, PERFORMED
from orchestration.errors import ExpressionError, RunError
from orchestration.execution import wording
from orchestration.execution.driving import Suspended, driven
from orchestration.execution.effects import Aborted, Performance, Started, Trouble
from orchestration.execution.outputs import checked_results
from orchestration.execution.scope import Scope
from orchestration.execution.steps import (
    acquired,
    chosen_outputs,
    performed,
    performed_element,
)
from orchestration.expressions import Json, Tree, evaluate
from orchestration.graph import ForEach, Graph
from orchestration.graph.codec import decode

if TYPE_CHECKING:
    import jinja2
    from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
    from airflow.providers.amazon.aws.operators.base_aws import AwsBaseOperator
    from airflow.sdk import Context

    _Operator = AwsBaseOperator[AwsBaseHook]
else:
    # Before the provider's class in the order of resolution; Airflow's metaclass wants an operator.
    _Operator = BaseOperator

ABORTED = "Aborted"
_LONGEST_ELEMENT_NAME = 250


class StepsMixin(_Operator):
    """A task that performs steps: any number of attempts may, and they pay once.

    ``steps`` are performed in their order, or ``each`` (a loop) for one element of its list.
    ``reads`` says which tasks left the results that they read, ``keeps`` whose results are left
    under their names, ``returns`` what the task's return value is, ``writes`` the S3 URIs of its
    assets. ``gathers`` a loop's elements, ``joins`` the outputs of a choice. One that ``skips`` is
    shown as skipped where its only condition does not hold.
    ``group`` is the task group around the whole pipeline, in somebody's own DAG. One that
    ``gives_way`` ends when a newer run of the DAG begins.
    ``config`` is the request that the UI shows; a mapped task has it and ``each`` as JSON text.
    Requests are evaluated from data: no text of a user ever passes a template engine.
    """

    def __init__(
        self,
        *,
        config: Json = None,
        steps: Sequence[Json] = (),
        each: Json = None,
        item: Any = None,
        reads: Mapping[str, Mapping[str, Any]] | None = None,
        keeps: Sequence[str] = (),
        returns: Json = None,
        writes: Mapping[str, Json] | None = None,
        gathers: Mapping[str, str] | None = None,
        joins: Mapping[str, Json] | None = None,
        skips: bool = False,
        items_task: str | None = None,
        group: str | None = None,
        deferrable: bool = True,
        gives_way: bool = False,
        **kwargs: Any,
    ) -> None:
        # The serialized DAG shows the encoded request, so that a change of it is a new version.
        super().__init__(config=_parsed(config) if config is not None else {}, **kwargs)
        self.steps = steps
        self.each = _parsed(each)
        self.item = item
        self.reads = reads or {}
        self.keeps = keeps
        self.returns = returns
        self.writes = writes or {}
        self.gathers = gathers
        self.joins = joins
        self.skips = skips
        self.items_task = items_task
        self.group = group
        self.deferrable = deferrable
        self.gives_way = gives_way
        self.element_name = ""
        """What the UI calls the element that a mapped instance is at."""
        self._edge: WorkerEdge | None = None
        self._thread = threading.get_ident()
        self._unseen: list[Started] = []
        self._killed_early = False
        self._turn: Turn | None = None

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Any,
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        """Evaluate the request that the UI shows; Airflow renders the connection's settings.

        Airflow calls this for plain and for mapped tasks alike (``render_template_fields`` of a
        mapped one is not the operator's own). ``test_a_users_text_is_never_a_template`` fails where
        that changes.
        """
        rest = [name for name in template_fields if name != "config"]
        super()._do_render_template_fields(parent, rest, context, jinja_env, seen_oids)
        self.element_name = _named(self.item)
        try:
            self.config: Any = evaluate(decode(self.config), self._scope(context))
        except ExpressionError:
            # It reads what the task's own steps have yet to give.
            self.log.debug("the request is not known yet")

    def execute(self, context: Context) -> Any:
        """Perform the steps; returns what the task's return value is."""
        if self.gives_way:
            self._turn = Turn(context)
            wait_for_turn(self, context, self._turn, deferrable=self.deferrable)
        return self._perform(context, Journal())

    def begin(self, context: Context, event: object = None) -> Any:
        """Look again, after a while, whether other runs have ended."""
        return self.execute(context)

    def execute_complete(
        self,
        context: Context,
        event: Mapping[str, Any] | None = None,
        progress: str = "{}",
    ) -> Any:
        """Go on where the task was deferred, with what the trigger has learned."""
        return self._perform(context, Journal.loaded(context, progress, event or {}), event or {})

    def on_kill(self) -> None:
        """Stop what was started, and start nothing else: the task is ended from outside."""
        if self._edge is None:
            self._killed_early = True
        else:
            self._edge.kill()

    def started(self, context: Context, started: Started) -> None:
        """Leave what shows a job that runs; a subclass leaves its links here."""

    def _perform(
        self, context: Context, journal: Journal, event: Mapping[str, Any] | None = None
    ) -> Any:
        self._edge = self._at(context, journal)
        if event is not None:
            self._resume(event, journal, self._edge)
        scope = self._scope(context)
        self._thread, self._unseen = threading.get_ident(), []
        try:
            try:
                result = driven(self._performance(context, scope), self._edge)
                written = self._written(scope)
            finally:
                for started in self._unseen:
                    self._show(context, started)
        except Suspended as suspended:
            asking.ask(context, suspended.watches, scope, self.log)
            self._defer(context, journal, suspended)
        except Trouble as trouble:
            # Trouble outlasted this attempt's own retries; Airflow's are for that.
            self._leave(context, scope, journal)
            fail(context, trouble.error, trouble.cause, for_good=False)
        except GoesOnElsewhere as end:
            message = "the task was ended from outside; another attempt follows what it started"
            raise AirflowException(message) from end
        except Aborted:
            self._leave(context, scope, journal)
            fail(context, *_end(self._edge))
        except RunError as error:
            self._leave(context, scope, journal)
            fail(context, error.error, error.cause)
        self._leave(context, scope, journal)
        if self.skips and not self._holds(scope):
            raise AirflowSkipException("the condition of the stage does not hold")
        for asset, uri in written.items():
            context["outlet_events"][Asset(asset)].extra = {"uri": uri}
        return result

    def _at(self, context: Context, journal: Journal) -> WorkerEdge:
        """Return the side of this attempt that answers effects."""
        if self.gives_way:
            self._turn = self._turn or Turn(context)
        return WorkerEdge(
            Clients(self._connection),
            journal,
            cast(Any, self.log),
            self.deferrable,
            lambda started: self._show(context, started),
            lambda: another_follows(context),
            begun=run_begun(context),
            killed=self._killed_early,
            newer=None if self._turn is None else self._turn.newer,
        )

    def _resume(self, event: Mapping[str, Any], journal: Journal, edge: WorkerEdge) -> None:
        """Take what has happened while the task was deferred."""
        edge.look()
        if asking.is_answer(event):
            stands = asking.take(event, journal.watches.values(), edge, self.log)
            # The next poll sees it, so it is not worth a deferral.
            edge.deferrable = self.deferrable and not stands

    def _leave(self, context: Context, scope: Scope, journal: Journal) -> None:
        """Leave the results that other tasks read, after a failure those that are there.

        One that performs several stages leaves how the steps of each have ended.
        """
        for step in self.keeps:
            if step in scope.ended:
                context["ti"].xcom_push(key=step, value=dict(scope.ended[step]))
        performed = journal.performed()
        if len({stage for stage, _, _ in (name.partition(".") for name in performed)}) > 1:
            digest = sha256(json.dumps(performed, sort_keys=True).encode()).hexdigest()
            context["ti"].xcom_push(key=f"{PERFORMED}{digest}", value=performed)

    def _performance(self, context: Context, scope: Scope) -> Performance[Any]:
        if self.gathers is not None:
            name = self.gathers["loop"]
            scope.leave(name, {"items": checked_results(_gathered(context, self.gathers), name)})
        if self.joins is not None:
            name, condition, *ways = (decode(self.joins[part]) for part in CHOICE_PARTS)
            scope.leave(name, chosen_outputs(condition, (ways[0], ways[1]), scope))
        if self.each is not None:
            loop = cast(ForEach, decode(self.each))
            element = scope.at(loop.name, context["ti"].map_index or 0, self.item)
            return (yield from performed_element(loop, element, attempt(context)))
        if self.is_setup:
            [acquire] = self._decoded
            yield from acquired(acquire, self._release, scope, attempt(context))
        else:
            yield from performed(Graph(tuple(self._decoded)), scope, attempt(context))
        if self.returns is None:
            return None
        try:
            return evaluate(cast(Tree, decode(self.returns)), scope)
        except ExpressionError as error:
            raise RunError(wording.EXPRESSION_ERROR, str(error)) from error

    def _holds(self, scope: Scope) -> bool:
        """Return whether the choice holds that the task makes, or that it ends."""
        own = self._decoded[0].condition if self.joins is None else decode(self.joins["condition"])
        return bool(evaluate(cast(Tree, own), scope))

    def _written(self, scope: Scope) -> Mapping[str, Any]:
        """Return the S3 URIs of the task's assets; a job may end well without a model."""
        try:
            uris = {
                asset: evaluate(cast(Tree, decode(uri)), scope)
                for asset, uri in self.writes.items()
            }
        except ExpressionError as error:
            raise RunError(wording.EXPRESSION_ERROR, str(error)) from error
        return {asset: uri for asset, uri in uris.items() if uri is not None}

    def _show(self, context: Context, started: Started) -> None:
        """Leave what shows a job; one started in a thread of a loop is shown after the loop.

        A task talks to Airflow in the thread that Airflow runs it in, and in no other.
        """
        if threading.get_ident() != self._thread:
            self._unseen.append(started)
            return
        if self._is_shown(started):
            self.config = started.request.parameters
        service = started.request.service
        if self._edge is not None and service in ("fsx", "sagemaker"):
            region, partition = self._edge.clients.place(service)
            for key, address in links(started, region, partition).items():
                context["ti"].xcom_push(key=key, value=address)
        self.started(context, started)

    def _is_shown(self, started: Started) -> bool:
        return isinstance(self.config, Mapping) and self.config.keys() <= (
            started.request.parameters.keys()
        )

    @cached_property
    def _decoded(self) -> list[Any]:
        return [decode(step) for step in self.steps]

    @property
    def _release(self) -> Graph:
        """The steps of a setup's teardown, which Airflow leaves out if the setup has failed."""
        teardowns = [task for task in self.downstream_list if task.is_teardown]
        return Graph(tuple(step for task in teardowns for step in cast(Any, task)._decoded))

    def _scope(self, context: Context) -> Scope:
        scope = Scope(TaskEnvironment(context, self.reads, self.items_task, self.group))
        if self.each is not None:
            scope.element = (self.item,)
        return scope

    @property
    def _connection(self) -> Mapping[str, Any]:
        """The arguments of a hook, as an argument of a trigger."""
        return {
            "aws_conn_id": self.aws_conn_id,
            "region_name": self.region_name,
            "verify": self.verify,
            "config": self.botocore_config,
        }

    def _defer(self, context: Context, journal: Journal, suspended: Suspended) -> NoReturn:
        journal.watches = {watch.path: watch for watch in suspended.watches}
        journal.rests |= dict(suspended.rests)
        self.defer(
            trigger=FollowTrigger(
                watches=json.dumps([watch_to_json(watch) for watch in suspended.watches]),
                connection=dict(self._connection),
                until=min((until for _, until in suspended.rests), default=None),
                variable=None if self._turn is None else self._turn.variable,
                seen=None if self._turn is None else self._turn.seen,
            ),
            method_name="execute_complete",
            kwargs={"progress": journal.saved(context)},
        )


def _end(edge: WorkerEdge) -> tuple[str, str]:
    """Return the error and the cause of a task that was ended before its time."""
    if edge.superseded_by is not None:
        return superseded(edge.superseded_by)
    return ABORTED, "the task was ended from outside; what it started is stopped"


def _gathered(context: Context, gathers: Mapping[str, str]) -> list[Json]:
    """Return what is collected of each element of a loop, in order."""
    ti = context["ti"]
    items = ti.xcom_pull(task_ids=gathers["items_task"], map_indexes=None)
    if not items:
        return []
    values = ti.xcom_pull(task_ids=gathers["task"])
    # Of one instance Airflow gives the value, of several a list of them.
    return [values] if len(items) == 1 else list(values)


def _parsed(value: Json) -> Json:
    """Return a nested value; a mapped task has it as JSON text."""
    return cast(Json, json.loads(value)) if isinstance(value, str) else value


def _named(item: Any) -> str:
    """Return what a person would call an element: the last part of the first text in it."""
    values = item.values() if isinstance(item, Mapping) else [item]
    text = next((value for value in values if isinstance(value, str)), str(item))
    return (text.rstrip("/").rpartition("/")[2] or text)[:_LONGEST_ELEMENT_NAME]
