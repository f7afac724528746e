"""Questions to people, shown in Airflow's UI, and the answers that are given there.

A question is shown as those of the standard provider's ``ApprovalOperator`` are, among the required
actions of a run. Its own operator waits for Airflow's database only, so a task of ours waits for
the run's answer in S3 instead, wherever that is given: an answer in the UI resumes the task
(Airflow 3.3 does that for a deferred one, too), which puts it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from orchestration.errors import ExpressionError, StartError
from orchestration.execution.driving import driven
from orchestration.execution.effects import ServiceError
from orchestration.expressions import Environment, evaluate

if TYPE_CHECKING:
    from airflow.sdk import Context

    from orchestration.airflow.edge import WorkerEdge
    from orchestration.execution.effects import Watch

_COMMENT: Final = "comment"
# Parsing a DAG file comes by here, so what only a question needs is imported when there is one.


def ask(context: Context, watches: Iterable[Watch], values: Environment, log: Any) -> None:
    """Show the questions of the jobs that are waited for; a UI that fails ends no run."""
    for watch in watches:
        person = None if watch.call.until is None else watch.call.until.person
        if person is None:
            continue
        try:
            question = str(evaluate(person.question, values))
        except ExpressionError:
            question = watch.subject
        try:
            _show(context, watch, question)
        except Exception as error:  # whatever it is, the command line still answers
            log.warning("the question is not shown in Airflow's UI: %s", error)


def _show(context: Context, watch: Watch, question: str) -> None:
    from airflow.providers.standard.operators.hitl import ApprovalOperator
    from airflow.sdk import Param
    from airflow.sdk.execution_time.hitl import upsert_hitl_detail

    run, stage = _run(watch)
    comment = Param("", type=["string", "null"], description="Words for the run's outputs.")
    upsert_hitl_detail(
        ti_id=cast(Any, context["ti"]).id,
        options=[ApprovalOperator.APPROVE, ApprovalOperator.REJECT],
        subject=question,
        body=f"Or: `orchestrate approve {run} {stage}`",
        params={_COMMENT: comment.serialize()},
    )


def is_answer(event: Mapping[str, Any]) -> bool:
    """Return whether a task is resumed by an answer in the UI."""
    return "chosen_options" in event


def take(event: Mapping[str, Any], watches: Iterable[Watch], edge: WorkerEdge, log: Any) -> bool:
    """Put an answer from the UI where the run's answer stands, unless there is one.

    Returns whether an answer stands there now; if not, the question is shown once more.
    """
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    from orchestration.execution.people.answering import Answer, answered

    user = event.get("responded_by_user") or {}
    approved = event["chosen_options"] == [ApprovalOperator.APPROVE]
    said = Answer(
        state="approved" if approved else "rejected",
        by=f"airflow:{user.get('name')}",
        at=f"{event['responded_at']:%Y-%m-%dT%H:%M:%SZ}",
        comment=str((event.get("params_input") or {}).get(_COMMENT) or ""),
    )
    try:
        for watch in watches:
            if watch.call.until is not None and watch.call.until.person is not None:
                driven(answered(*_run(watch), said, wakes=False), edge)
    except StartError as error:
        log.warning("the answer from Airflow's UI came second: %s", error)
    except ServiceError as error:
        log.warning("the answer from Airflow's UI could not be kept: %s", error)
        return False
    return True


def _run(watch: Watch) -> tuple[str, str]:
    """Return the S3 URI of the run, and the stage that asks."""
    where = cast("Mapping[str, str]", watch.poll.parameters)
    prefix, stage, _ = where["Key"].rsplit("/", 2)
    return f"s3://{where['Bucket']}/{prefix}", stage
