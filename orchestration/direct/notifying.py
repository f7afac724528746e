"""The message about the end of a run, published by the process that ended it."""

from __future__ import annotations

import logging
from dataclasses import replace

from orchestration.direct.edge import DirectEdge
from orchestration.direct.outcomes import ABORTED, Outcome
from orchestration.execution.effects import Request, ServiceError
from orchestration.execution.sending import sent
from orchestration.graph import Retry, Workflow
from orchestration.notices import Notice

_log = logging.getLogger("orchestration.direct")


def publish(workflow: Workflow, outcome: Outcome, edge: DirectEdge) -> None:
    """Publish how a run has ended; the run's end stays what it is if that fails."""
    spec = workflow.notify
    if spec is None:
        return
    notice = _notice(outcome)
    for topic in spec.on_success if outcome.state == "succeeded" else spec.on_failure:
        request = {"TopicArn": topic, "Subject": notice.subject, "Message": notice.message}
        there = replace(edge, clients=edge.clients.elsewhere(topic.split(":")[3]))
        try:
            there.apart(sent(Request("sns", "Publish", request), Retry()))
        except ServiceError as error:
            _log.warning("topic %s was not told of run %r: %s", topic, outcome.run_id, error)


def _notice(outcome: Outcome) -> Notice:
    failed = (step.step for step in outcome.steps if step.state == "failed")
    step = next(failed, None)
    if outcome.state == "succeeded":
        return Notice(pipeline=outcome.workflow, run=outcome.run_id, state="SUCCEEDED")
    return Notice(
        pipeline=outcome.workflow,
        run=outcome.run_id,
        state="ABORTED" if outcome.error == ABORTED else "FAILED",
        stage=None if step is None else step.partition(".")[0],
        error=outcome.error,
        cause=outcome.cause,
    )
