"""Loops: what a mapped task group runs over, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator

from orchestration.airflow.context import ERROR_KEY, TaskEnvironment, evaluated, fail, value
from orchestration.expressions import Json
from orchestration.expressions.codec import decode

if TYPE_CHECKING:
    from airflow.sdk import Context

_BAD = ("failed", "upstream_failed")


class ItemsOperator(BaseOperator):
    """The list that a loop runs over."""

    def __init__(self, *, items: Json, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.items = items

    def execute(self, context: Context) -> Any:
        """The list, which Airflow maps the body over."""
        found = value(context, self.items)
        if isinstance(found, str) or not isinstance(found, Sequence):
            fail(context, "ExpressionError", f"{found!r} is no list to run over")
        return list(found)


class CollectOperator(BaseOperator):
    """The end of a loop: what is collected of each element, or the failure of the first one."""

    def __init__(
        self,
        *,
        collect: Json,
        tasks: Sequence[str],
        loop: Mapping[str, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.collect = collect
        self.tasks = list(tasks)
        self.loop = loop

    def execute(self, context: Context) -> Any:
        """The loop's output ``items``."""
        items = context["ti"].xcom_pull(task_ids=self.loop["items_task"], map_indexes=None)
        states = self._states(context)
        if items is None:
            self._not_run(context, states)
        failed = self._failed(len(items), states)
        if failed:
            self._fail(context, failed, len(items))
        collect = decode(self.collect)
        return {
            "items": [
                evaluated(context, collect, TaskEnvironment(context, self.loop, index))
                for index in range(len(items))
            ]
        }

    def _states(self, context: Context) -> Mapping[str, str | None]:
        ti = context["ti"]
        tasks = [self.loop["items_task"], *self.tasks]
        states = ti.get_task_states(dag_id=ti.dag_id, task_ids=tasks, run_ids=[ti.run_id])
        return cast("Mapping[str, str | None]", states.get(ti.run_id, {}))

    def _not_run(self, context: Context, states: Mapping[str, str | None]) -> None:
        if states.get(self.loop["items_task"]) == "skipped":
            raise AirflowSkipException("the loop is on a branch that was not taken")
        fail(context, "LoopFailed", f"{self.loop['items_task']} did not end well")

    def _failed(self, count: int, states: Mapping[str, str | None]) -> list[tuple[str, int]]:
        """The tasks that failed, by element, those that only followed a failure last."""
        found = [
            (_BAD.index(state), index, task)
            for index in range(count)
            for task in self.tasks
            if (state := states.get(f"{task}_{index}")) in _BAD
        ]
        return [(task, index) for _, index, task in sorted(found)]

    def _fail(self, context: Context, failed: Sequence[tuple[str, int]], count: int) -> None:
        task, index = failed[0]
        elements = sorted({element for _, element in failed})
        self.log.error("%d of %d elements failed: %s", len(elements), count, elements)
        left = context["ti"].xcom_pull(task_ids=task, key=ERROR_KEY, map_indexes=index) or {}
        fail(
            context,
            left.get("error", "LoopFailed"),
            left.get("cause", f"element {index}: {task} failed"),
        )
