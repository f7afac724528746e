"""A run's values, from the context of an Airflow task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, cast

from airflow.providers.common.compat.sdk import AirflowFailException

from orchestration.errors import ExpressionError
from orchestration.expressions import Json, Tree, evaluate
from orchestration.expressions.codec import decode
from orchestration.expressions.evaluate import run_token

if TYPE_CHECKING:
    from airflow.sdk import Context

ERROR_KEY = "error"
"""The XCom in which a failed task leaves its error and cause."""


@dataclass(slots=True)
class TaskEnvironment:
    """The environment of a task: parameters, earlier steps' XComs, the run's identity."""

    context: Context
    loop: Mapping[str, Any] | None = None
    """``items_task`` and ``steps`` of the loop it is in."""
    index: int = -1
    """The element it is at."""
    own: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    """Results that are no XCom yet: the step's own."""
    _pulled: dict[str, Any] = field(default_factory=dict)

    def result(self, step: str, output: str) -> Json:
        """The output of a step that has run."""
        results = self.own.get(step) or self._pull(step)
        if results is None or output not in results:
            raise ExpressionError(f"step {step!r} left no output {output!r}")
        return cast(Json, results[output])

    def parameter(self, name: str) -> Json:
        """The value of a parameter of this run."""
        return cast(Json, self.context["params"][name])

    def run(self) -> str:
        """The run's identity: equal for every attempt of every task of one run."""
        return run_token(f"{self.context['dag'].dag_id}/{self.context['run_id']}")

    def item(self) -> Json:
        """The element the enclosing loop is at."""
        if self.loop is None:
            raise ExpressionError("there is no loop around this step")
        return cast("Sequence[Json]", self._pull(self.loop["items_task"]))[self.index]

    def _pull(self, step: str) -> Any:
        if step not in self._pulled:
            inside = self.loop is not None and step in self.loop["steps"]
            self._pulled[step] = self.context["ti"].xcom_pull(
                task_ids=step, map_indexes=self.index if inside else None
            )
        return self._pulled[step]


def environment(context: Context, loop: Mapping[str, Any] | None) -> TaskEnvironment:
    """The environment of the task that runs."""
    return TaskEnvironment(context, loop, cast(int, context["ti"].map_index))


def value(context: Context, encoded: Json, loop: Mapping[str, Any] | None = None) -> Json:
    """The value of an encoded tree; the task fails for good where it has none."""
    return evaluated(context, decode(encoded), environment(context, loop))


def evaluated(context: Context, tree: Tree, values: TaskEnvironment) -> Json:
    """The value of a tree; the task fails for good where it has none."""
    try:
        return evaluate(tree, values)
    except ExpressionError as error:
        fail(context, "ExpressionError", str(error))


def fail(context: Context, error: str, cause: str) -> NoReturn:
    """Fail the task for good: Airflow's retries would only repeat it, or pay twice."""
    context["ti"].xcom_push(key=ERROR_KEY, value={"error": error, "cause": cause})
    raise AirflowFailException(f"{error}: {cause}")
