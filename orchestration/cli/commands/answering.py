"""``orchestrate approve`` and ``orchestrate reject``: answers to the questions of runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from orchestration.cli.naming import of_run
from orchestration.cli.output import document, note, require
from orchestration.errors import StartError

if TYPE_CHECKING:
    from orchestration.stages.people.places import Decision

_TOKEN = re.compile(r"[0-9a-f]{12}")


def answer(
    run: str,
    stage: str,
    decision: Decision,
    *,
    comment: str,
    workspace: str | None,
    region: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Answer the question of a stage, in the name of the profile's caller."""
    require({"boto3": "aws"}, what="answering")
    from orchestration.cli.commands.deployment import session_to_change
    from orchestration.direct import answering

    session = session_to_change(of_run(run), region, profile)
    place = _place(run, workspace, session)
    given = answering.answer(place, stage, decision, session=session, comment=comment)
    for text in given.notes:
        note(f"warning: {text}")
    if as_json:
        document({"run": place, "stage": stage, "state": decision, "by": given.answer.by})
        return
    note(f"{stage} of {place} is {decision}, by {given.answer.by}")


def _place(run: str, workspace: str | None, session: Any) -> str:
    """Return the S3 URI of a run."""
    if run.startswith("s3://"):
        return run
    if workspace is None:
        raise StartError(
            f"expected the S3 URI of the run, <workspace>/<12 digits>, got {run!r}; or name the "
            "workspace as well: --workspace s3://..."
        )
    return f"{workspace.rstrip('/')}/{_token(run, session)}"


def _token(run: str, session: Any) -> str:
    from orchestration.deploy.executions.rerunning import token_of
    from orchestration.expressions.evaluate import run_token

    if _TOKEN.fullmatch(run):
        return run
    # DAG/RUN of Airflow, PIPELINE/RUN of the direct driver; an execution has colons only.
    return run_token(run) if "/" in run else token_of(run, session)
