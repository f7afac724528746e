"""``orchestration.run``: a pipeline, run from this process in an account that is named."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestration.deploy import sources
from orchestration.direct.asking import OnQuestion, asking
from orchestration.direct.clients import Session
from orchestration.direct.interrupting import Interruption
from orchestration.direct.outcomes import Outcome
from orchestration.direct.performing import perform, refused
from orchestration.direct.progress import OnProgress
from orchestration.errors import RunError, StartError
from orchestration.execution.clients import mismatch, one_attempt
from orchestration.expressions import Json
from orchestration.expressions.evaluate import run_token
from orchestration.graph import ParameterValue

if TYPE_CHECKING:
    from orchestration.pipeline import Pipeline

_NO_SESSION = (
    "orchestration.run does not guess an account; pass session=boto3.Session(profile_name=…, "
    "region_name=…) for an account at AWS, or session=aws inside `with EmbeddedAws() as aws:`"
)


def run(
    pipeline: Pipeline,
    parameters: Mapping[str, ParameterValue] | None = None,
    *,
    session: Session | None = None,
    run_id: str | None = None,
    on_progress: OnProgress | None = None,
    on_question: OnQuestion | None = None,
) -> Outcome:
    """Run a pipeline from this process and wait for its end.

    ``session`` is a ``boto3.Session`` or an embedded AWS; its credentials start the jobs and keep
    the journal in the pipeline's workspace, and its region must be the pipeline's. Code that is
    not in the workspace yet is uploaded. With the ``run_id`` of a run whose process died, it goes
    on with that one: nothing is paid twice. One that has failed is tried again: jobs that finished
    are kept. ``on_question`` answers for a person: it is given a stage and its question.

    Raises :class:`~orchestration.errors.RunError` where the run fails,
    :class:`~orchestration.errors.StartError` where it cannot start, and
    :class:`~orchestration.direct.Interrupted` after a Ctrl-C, once jobs are stopped and clean-ups
    have run.
    """
    outcome = outcome_of(
        pipeline,
        parameters,
        session=session,
        run_id=run_id,
        on_progress=on_progress,
        on_question=on_question,
    )
    if outcome.state == "failed":
        raise RunError(str(outcome.error), str(outcome.cause))
    return outcome


def outcome_of(
    pipeline: Pipeline,
    parameters: Mapping[str, ParameterValue] | None = None,
    *,
    session: Session | None = None,
    run_id: str | None = None,
    on_progress: OnProgress | None = None,
    on_question: OnQuestion | None = None,
    interruption: Interruption | None = None,
) -> Outcome:
    """Run a pipeline as :func:`run` does; a failure is returned.

    ``interruption``: one that several runs share, where a Ctrl-C comes to none of their threads.
    """
    if session is None:
        raise StartError(_NO_SESSION)
    _check_region(pipeline, session)
    account, values = session, dict(parameters or {})
    workflow = pipeline.lower()
    identity = run_id or new_run_id()
    # Where parameters are missing, the workspace may not be known.
    wrong = refused(workflow, values, identity)
    if wrong is not None:
        return wrong
    place = workspace(pipeline, values)
    run = f"{place}/{run_token(f'{workflow.name}/{identity}')}"
    with asking(on_question, workflow, [run], account):
        return perform(
            workflow,
            values,
            session=account,
            run_id=identity,
            workspace=place,
            on_progress=on_progress,
            prepare=lambda: sources.upload(pipeline, values, account.client("s3", config=None)),
            time_scale=getattr(account, "time_scale", None),
            interruption=interruption,
        )


def workspace(pipeline: Pipeline, parameters: Mapping[str, Json]) -> str:
    """Return the S3 URI of a pipeline's workspace, without a slash at its end."""
    bucket, prefix = sources.workspace(pipeline, parameters)
    return f"s3://{bucket}/{prefix}".rstrip("/")


def new_run_id() -> str:
    """Return a run id that no other run has: the time, to the microsecond."""
    return f"direct-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%S-%f}"


def _check_region(pipeline: Pipeline, session: Session) -> None:
    from botocore.exceptions import BotoCoreError

    try:
        client: Any = session.client("sagemaker", config=one_attempt())
    except BotoCoreError as error:
        raise StartError(
            f"the session makes no client of SageMaker: {error}; "
            "pass session=boto3.Session(region_name=…)"
        ) from error
    other = client.meta.region_name
    wrong = mismatch(pipeline.name, pipeline.region, place="the session", other=other)
    if wrong is not None:
        raise StartError(wrong)
