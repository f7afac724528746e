"""The last look of a run: at jobs of its own that still run when all its tasks have ended.

A triggerer stops the job of a deferred task that is marked. One that no triggerer has picked up yet
is stopped by nobody, nor is the job of a task whose worker died before the run was marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.providers.amazon.aws.operators.base_aws import AwsBaseOperator
from airflow.providers.amazon.aws.utils.mixins import aws_template_fields
from airflow.providers.common.compat.sdk import AirflowException

from orchestration.airflow.clients import Clients
from orchestration.airflow.context import TaskEnvironment, fail
from orchestration.backends.airflow.spec import OUTPUTS
from orchestration.cleanup import RUN, JobKind, Jobs
from orchestration.execution.effects import Request, ServiceError

if TYPE_CHECKING:
    from airflow.sdk import Context

ABORTED = "Aborted"


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
        stopped: list[str] = []
        for word, prefixes in self.jobs.items():
            jobs = Jobs(kind=JobKind(word=word), prefixes=tuple(prefixes))
            stopped += self._running(clients, jobs, run)
        # Airflow skips what has not begun when a person marks the run.
        if states.get(self._last) == "skipped" and "failed" in states.values():
            names = f"; stopped {', '.join(stopped)}" if stopped else ""
            fail(context, ABORTED, f"the run was marked as failed{names}")

    def _running(self, clients: Clients, jobs: Jobs, run: str) -> Iterator[str]:
        for name, arn in self._listed(clients, jobs):
            tags = _sent(clients, "ListTags", {"ResourceArn": arn})["Tags"]
            if {"Key": RUN, "Value": run} in tags:
                self.log.warning("%s still runs after the tasks of its run; stopping it", name)
                _sent(clients, jobs.kind.stop, {jobs.kind.name: name})
                yield name

    def _listed(self, clients: Clients, jobs: Jobs) -> Iterator[tuple[str, str]]:
        kind, page = jobs.kind, dict[str, str]()
        while True:
            named = {"NameContains": jobs.common} if jobs.common else {}
            request = {**named, "StatusEquals": "InProgress", **page}
            try:
                answer = _sent(clients, kind.list, {**request, "MaxResults": 100})
            except ServiceError as error:
                # A run must not fail because its connection may not list jobs.
                self.log.warning("jobs that still run can't be looked for: %s", error)
                return
            for summary in answer[kind.summaries]:
                if summary[kind.name].startswith(jobs.prefixes):
                    yield summary[kind.name], summary[kind.arn]
            if "NextToken" not in answer:
                return
            page = {"NextToken": answer["NextToken"]}

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


def _sent(clients: Clients, operation: str, parameters: Mapping[str, Any]) -> Any:
    try:
        return clients.send(Request("sagemaker", operation, parameters))
    except ServiceError as error:
        if error.passing:
            raise AirflowException(str(error)) from error
        raise
