"""The task between a run's stages and those after its end: it says how the run ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator

from orchestration.airflow.context import TaskEnvironment, attempt_number, fail
from orchestration.airflow.ending.failures import failures
from orchestration.backends.airflow.spec import INPUTS
from orchestration.errors import ExpressionError
from orchestration.execution import wording
from orchestration.execution.scope import kept_values
from orchestration.expressions import Json
from orchestration.graph.codec import decode

if TYPE_CHECKING:
    from airflow.sdk import Context

_BAD = ("failed", "upstream_failed")
_NO_ERROR = "TaskFailed"
"""The error of a task that died, or that a person marked, and so has left none."""


class OutcomeOperator(BaseOperator):
    """Leaves how the tasks before it ended, once all of them have.

    It is left as the XCom that ``keeps`` names, where something reads it. ``kept`` are the values
    of the tasks before it that are read with it; ``reads`` says which of these left their results.
    A run whose parameters were refused has begun nothing, so that nothing follows its end either:
    the task is skipped.
    ``group`` is the task group around the whole pipeline, in somebody's own DAG.
    """

    def __init__(
        self,
        *,
        keeps: Sequence[str] = (),
        kept: Json = None,
        reads: Mapping[str, Mapping[str, Any]] | None = None,
        group: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keeps = keeps
        self.kept = kept
        self.reads = reads or {}
        self.group = group

    def execute(self, context: Context) -> None:
        """Look at the states of the tasks before, and leave state, error and cause."""
        inputs = INPUTS if self.group is None else f"{self.group}.{INPUTS}"
        run_id, instance = context["run_id"], context["ti"]
        asked = sorted({inputs, *self.get_flat_relative_ids(upstream=True)})
        index = self._index(context)
        answer: Any = instance.get_task_states(
            dag_id=context["dag"].dag_id, task_ids=asked, run_ids=[run_id], map_index=index
        )
        suffix = "" if index is None else f"_{index}"
        states = {name.removesuffix(suffix): state for name, state in answer[run_id].items()}
        if states.pop(inputs, None) != "success":
            raise AirflowSkipException("the run was refused before its first stage")
        ending = {
            **wording.ending(self._failure(context, states)),
            "attempt": attempt_number(context),
            **self._values(context),
        }
        for step in self.keeps:
            instance.xcom_push(key=step, value=ending)

    @staticmethod
    def _index(context: Context) -> int | None:
        """Return the element of a mapped group around the pipeline, whose tasks alone count."""
        index = context["ti"].map_index
        return None if index is None or index < 0 else int(index)

    def _values(self, context: Context) -> dict[str, Json]:
        """Return the values that the tasks before it have left, null where they have not."""
        if self.kept is None:
            return {}
        environment = TaskEnvironment(context, self.reads, group=self.group)
        ended = {step: left for step in self.reads if (left := environment.left(step)) is not None}
        try:
            return kept_values(decode(self.kept), ended, environment)
        except ExpressionError as error:
            fail(context, wording.EXPRESSION_ERROR, str(error))

    def _failure(self, context: Context, states: dict[str, str | None]) -> tuple[str, str] | None:
        """Return error and cause of the first task that failed; ``None`` where none did."""
        bad = [name for name, state in states.items() if state in _BAD]
        if not bad:
            return None
        failed = [name for name in bad if states[name] == "failed"]
        left = list(failures(context, context["ti"], failed, self._index(context)))
        known = next(((task, error) for task, error in left if error), None)
        if known is not None:
            return known[1]["error"], known[1]["cause"]
        task = left[0][0] if left else bad[0]
        return _NO_ERROR, f"task {task} ended as {states.get(task, 'failed')}, and left no error"
