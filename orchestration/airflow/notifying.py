"""The messages about the ends of a DAG's runs, published by its callbacks.

Airflow calls them where DAG files are parsed, after the run has ended: one that fails is logged
there, and changes no run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from airflow.providers.amazon.aws.notifications.sns import SnsNotifier
from airflow.providers.common.compat.sdk import conf
from typing_extensions import override

from orchestration.airflow.ending.failures import failures
from orchestration.airflow.leftovers import ABORTED
from orchestration.backends.airflow.spec import INPUTS, LEFTOVERS, OUTCOME, OUTPUTS, SKIPPED
from orchestration.execution.wording import SUPERSEDED
from orchestration.notices import Notice, State

if TYPE_CHECKING:
    from airflow.sdk import Context

_NO_STAGE: Final = frozenset({INPUTS, OUTPUTS, LEFTOVERS, OUTCOME})


class RunNotifier(SnsNotifier):
    """Publishes how a run has ended, with the connection that its tasks have."""

    template_fields: Sequence[str] = ()

    def __init__(self, *, topic: str, failed: bool, aws_conn_id: str | None) -> None:
        super().__init__(
            target_arn=topic, message="", aws_conn_id=aws_conn_id, region_name=topic.split(":")[3]
        )
        self.failed = failed

    @override
    def notify(self, context: Context) -> None:
        """Publish the message about the run in the context, unless it was skipped for another."""
        if not self.failed and _is_skipped(context):
            return
        notice = notice_of(context, failed=self.failed)
        self.hook.publish_to_target(
            target_arn=self.target_arn, message=notice.message, subject=notice.subject
        )


def notice_of(context: Context, *, failed: bool) -> Notice:
    """Return what there is to say about a run, by the context of its DAG's callbacks."""
    dag_id, run_id = context["dag"].dag_id, str(context["run_id"])
    base = str(conf.get("api", "base_url", fallback="") or "").rstrip("/")
    task_id, failure = _failure(context) if failed else (None, {})
    stage = None if task_id is None else task_id.partition(".")[0]
    return Notice(
        pipeline=dag_id,
        run=run_id,
        state=_state(context, failure) if failed else "SUCCEEDED",
        link=f"{base}/dags/{quote(dag_id)}/runs/{quote(run_id)}" if base else None,
        stage=None if stage in _NO_STAGE else stage,
        error=failure.get("error"),
        cause=failure.get("cause"),
    )


def _is_skipped(context: Context) -> bool:
    """Return whether a run that Airflow calls a success gave way to an older one."""
    last = context.get("ti")
    try:
        return last is not None and bool(last.xcom_pull(task_ids=INPUTS, key=SKIPPED))
    except Exception:
        # As with a failure: rather a message too many than none.
        return False


def _state(context: Context, failure: Mapping[str, str]) -> State:
    if failure.get("error") in (ABORTED, SUPERSEDED):
        return "ABORTED"
    return "TIMED_OUT" if context.get("reason") == "timed_out" else "FAILED"


def _failure(context: Context) -> tuple[str | None, Mapping[str, str]]:
    """Return the task that failed, and its error and cause, as far as Airflow still has them."""
    last = context.get("ti")
    if last is None:
        return None, {}
    failures = list(_failures(context, last))
    named = [(task_id, left) for task_id, left in failures if left]
    return next(iter([*named, *failures]), (last.task_id, {}))


def _failures(context: Context, last: Any) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the failed tasks in the order of the DAG, each with what it has left."""
    run_id = context["run_id"]
    try:
        states = last.get_task_states(dag_id=context["dag"].dag_id, run_ids=[run_id])[run_id]
    except Exception:
        # Its answer only adds to the message; the API server may be what is gone.
        states = {last.task_id: "failed"}
    yield from failures(context, last, [name for name in states if states[name] == "failed"])
