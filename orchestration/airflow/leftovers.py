"""The last look of a run: at jobs of its own that still run when all its tasks have ended.

A triggerer stops the job of a deferred task that is marked. One that no triggerer has picked up yet
is stopped by nobody, nor is the job of a task whose worker died before the run was marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.providers.amazon.aws.operators.base_aws import AwsBaseOperator
from airflow.providers.amazon.aws.utils.mixins import aws_template_fields
from airflow.providers.common.compat.sdk import AirflowException

from orchestration.airflow.clients import Clients
from orchestration.airflow.context import TaskEnvironment, fail
from orchestration.backends.airflow.spec import OUTPUTS
from orchestration.cleanup import JobKind, Jobs
from orchestration.execution.driving import driven
from orchestration.execution.effects import Effect, Note, Send, ServiceError
from orchestration.execution.leftovers.jobs import stop_running
from orchestration.graph import Retry

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import Logger

ABORTED = "Aborted"


@dataclass(frozen=True, slots=True)
class _Edge:
    clients: Clients
    log: Logger

    def answer(self, effect: Effect) -> Any:
        if isinstance(effect, Send):
            return self.clients.send(effect.request)
        if isinstance(effect, Note):
            self.log.warning("%s", effect.text)
        return None

    def aborted(self) -> bool:
        return False


class LeftoversOperator(AwsBaseOperator[AwsBaseHook]):
    """Stops the jobs that still run after the tasks that started them; a teardown.

    ``jobs`` has the beginnings of their names by the kind of job. Where a person has marked the run
    as failed, Airflow skips the run's last task and would then show the run as successful, so this
    task fails as ``Aborted``.
    """

    aws_hook_class = AwsBaseHook
    template_fields: Sequence[str] = aws_template_fields()

    def __init__(
        self,
        *,
        jobs: Mapping[str, Sequence[str]],
        group: str | None = None,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.jobs = jobs
        self.group = group

    def execute(self, context: Context) -> None:
        """Stop what still runs, and say whether the run was aborted."""
        clients = Clients(
            {
                "aws_conn_id": self.aws_conn_id,
                "region_name": self.region_name,
                "verify": self.verify,
                "config": self.botocore_config,
            }
        )
        states = self._states(context)
        if set(states.values()) == {"upstream_failed"}:
            # No task has started anything.
            return
        run = TaskEnvironment(context, {}, group=self.group).run()
        kinds = [
            Jobs(kind=JobKind(word=word), prefixes=tuple(prefixes))
            for word, prefixes in self.jobs.items()
        ]
        try:
            # Airflow tries the task again.
            stopped = driven(stop_running(kinds, run, Retry(attempts=1)), _Edge(clients, self.log))
        except ServiceError as error:
            if error.passing:
                raise AirflowException(str(error)) from error
            raise
        # Airflow skips what has not begun when a person marks the run.
        if states.get(self._last) == "skipped" and "failed" in states.values():
            names = f"; stopped {', '.join(stopped)}" if stopped else ""
            fail(context, ABORTED, f"the run was marked as failed{names}")

    @property
    def _last(self) -> str:
        return OUTPUTS if self.group is None else f"{self.group}.{OUTPUTS}"

    def _states(self, context: Context) -> dict[str, str | None]:
        """Return the states of the tasks that start jobs, and of the run's last."""
        run_id = context["run_id"]
        states: Any = context["ti"].get_task_states(
            dag_id=context["dag"].dag_id,
            task_ids=[self._last, *self.upstream_task_ids],
            run_ids=[run_id],
        )
        return dict(states[run_id])
