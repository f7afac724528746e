"""The task between a run's stages and those after its end: it says how the run ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator

from orchestration.airflow.context import attempt_number
from orchestration.airflow.ending.failures import failures
from orchestration.backends.airflow.spec import INPUTS
from orchestration.execution import wording

if TYPE_CHECKING:
    from airflow.sdk import Context

_BAD = ("failed", "upstream_failed")
_NO_ERROR = "TaskFailed"
"""The error of a task that died, or that a person marked, and so has left none."""


class OutcomeOperator(BaseOperator):
    """Leaves how the tasks before it ended, once all of them have.

    It is left as the XCom that ``keeps`` names, where something reads it. A run whose parameters
    were refused has begun nothing, so that nothing follows its end either: the task is skipped.
    ``group`` is the task group around the whole pipeline, in somebody's own DAG.
    """

    def __init__(
        self, *, keeps: Sequence[str] = (), group: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.keeps = keeps
        self.group = group

    def execute(self, context: Context) -> None:
        """Look at the states of the tasks before, and leave state, error and cause."""
        inputs = INPUTS if self.group is None else f"{self.group}.{INPUTS}"
        run_id, instance = context["run_id"], context["ti"]
        asked = sorted({inputs, *self.get_flat_relative_ids(upstream=True)})
        answer: Any = instance.get_task_states(
            dag_id=context["dag"].dag_id, task_ids=asked, run_ids=[run_id]
        )
        states: dict[str, str | None] = dict(answer[run_id])
        if states.pop(inputs, None) != "success":
            raise AirflowSkipException("the run was refused before its first stage")
        ending = {
            **wording.ending(self._failure(context, states)),
            "attempt": attempt_number(context),
        }
        for step in self.keeps:
            instance.xcom_push(key=step, value=ending)

    def _failure(self, context: Context, states: dict[str, str | None]) -> tuple[str, str] | None:
        """Return error and cause of the first task that failed; ``None`` where none did."""
        bad = [name for name, state in states.items() if state in _BAD]
        if not bad:
            return None
        failed = [name for name in bad if states[name] == "failed"]
        left = list(failures(context, context["ti"], failed))
        known = next(((task, error) for task, error in left if error), None)
        if known is not None:
            return known[1]["error"], known[1]["cause"]
        task = left[0][0] if left else bad[0]
        return _NO_ERROR, f"task {task} ended as {states.get(task, 'failed')}, and left no error"
