"""Run a whole pipeline on this machine: upload data and code, start, follow, report."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.direct.asking import OnQuestion, asking
from orchestration.direct.pipelines import workspace
from orchestration.direct.progress import OnProgress, Progress
from orchestration.errors import LocalError
from orchestration.execution.clients import mismatch
from orchestration.expressions import Json
from orchestration.expressions.evaluate import run_token
from orchestration.graph import ParameterValue, Workflow, job_name_fields
from orchestration.local.account.protocol import ACCOUNT_ID
from orchestration.local.run import direct_runs, executions, report
from orchestration.local.run.failed_logs import with_logs
from orchestration.local.run.preparation import prepare
from orchestration.local.run.report import Followed, On, RunReport
from orchestration.local.run.toolkits_needed import check_toolkits
from orchestration.local.run.working import OnWork, following_jobs
from orchestration.local.server.embedded import DEFAULT_REGION, EmbeddedAws

if TYPE_CHECKING:
    from orchestration.local.airflow import LocalAirflow
    from orchestration.pipeline import Pipeline

_ROLE = "EmbeddedSageMakerExecution"

OnEnd = Callable[[EmbeddedAws, RunReport], None]
"""Is called with the account of a run that has ended, and its report."""


def run(
    pipeline: Pipeline,
    *,
    on: On = "direct",
    parameters: Mapping[str, ParameterValue] | None = None,
    aws: EmbeddedAws | None = None,
    uploads: Mapping[str, Path] | None = None,
    run_id: str | None = None,
    on_progress: OnProgress | None = None,
    on_work: OnWork | None = None,
    on_question: OnQuestion | None = None,
    on_end: OnEnd | None = None,
    time_scale: float = 0.02,
    airflow: LocalAirflow | None = None,
    job_cache: Path | None = None,
) -> RunReport:
    """Run a pipeline on an embedded AWS and report its result, even a failure.

    Creates the buckets that the run writes to, and uploads ``uploads`` (files or folders by S3 URI;
    their buckets are created, too) and the folders of code; a bucket that is only read must exist.
    Without ``aws`` the run gets a new account in the pipeline's region, in which a second of AWS
    takes ``time_scale`` real seconds, and a job that does what one has done whose results lie in
    the folder ``job_cache`` does not run again; without ``airflow``, a new Airflow. The parameter
    ``role`` is optional. ``on_question`` answers for a person: it is given a stage and its
    question. ``on_work`` is told once a second how far the jobs are. ``on_end`` is given the
    account and the report before the account goes.

    Raises :class:`~orchestration.errors.DeployError` if parameters do not fit or code is
    missing, and :class:`~orchestration.errors.LocalError` if a training toolkit is.
    """
    from orchestration.deploy import parameters as deploy_parameters

    workflow = pipeline.lower()
    passed = deploy_parameters.read(workflow.parameters, dict(parameters or {}))
    check_toolkits(pipeline, workflow, {**_declared(workflow), **passed})
    with contextlib.ExitStack() as stack:
        account = aws or stack.enter_context(account_of(pipeline, time_scale, job_cache))
        wrong = mismatch(
            pipeline.name, pipeline.region, place="the embedded AWS", other=account.region
        )
        if wrong is not None:
            raise LocalError(wrong)
        values = {**_defaults(account, workflow, passed), **passed}
        _check_complete(workflow, values)
        prepare(account, pipeline, workflow, values, dict(uploads or {}))
        attempt = _Attempt(
            aws=account,
            workflow=workflow,
            values=values,
            workspace=workspace(pipeline, values),
            run_id=run_id or f"local-{_now():%Y%m%dT%H%M%S-%f}",
            on_progress=on_progress or _ignore,
            airflow=airflow,
        )
        with asking(on_question, workflow, attempt.places, account), attempt.telling(on_work):
            ended = attempt.run(on, [stage.name for stage in pipeline.every_stage])
        if on_end is not None:
            on_end(account, ended)
        return ended


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One run on one account."""

    aws: EmbeddedAws
    workflow: Workflow
    values: Mapping[str, Json]
    workspace: str
    run_id: str
    on_progress: OnProgress
    airflow: LocalAirflow | None

    @property
    def tokens(self) -> list[str]:
        """The tokens that the run may have, by what runs it."""
        name, region = self.workflow.name, self.aws.region
        execution = f"arn:aws:states:{region}:{ACCOUNT_ID}:execution:{name}:{self.run_id}"
        return [run_token(each) for each in (f"{name}/{self.run_id}", execution)]

    @property
    def places(self) -> list[str]:
        """The S3 URIs that the run may have."""
        return [f"{self.workspace}/{token}" for token in self.tokens]

    def telling(self, on_work: OnWork | None) -> contextlib.AbstractContextManager[None]:
        """Tell how far the jobs are, if anybody asks."""
        if on_work is None:
            return contextlib.nullcontext()
        return following_jobs(self.aws, self.tokens, on_work)

    def run(self, on: On, stage_names: list[str]) -> RunReport:
        before = max((call.sequence for call in self.aws.calls()), default=0)
        started = _now()
        followed = self._followed(on)
        calls = tuple(call for call in self.aws.calls() if call.sequence > before)
        return RunReport(
            pipeline=self.workflow.name,
            on=on,
            run_id=self.run_id,
            state=followed.state,
            error=followed.error,
            cause=followed.cause,
            started=started,
            ended=_now(),
            stages=with_logs(
                report.stages(
                    stage_names,
                    followed,
                    calls,
                    self.aws.state(),
                    job_name_fields(self.workflow.graph),
                ),
                calls,
                self.aws,
            ),
            outputs=followed.outputs,
            calls=calls,
            log=followed.log,
        )

    def _followed(self, on: On) -> Followed:
        if on == "direct":
            return direct_runs.follow(
                self.aws,
                self.workflow,
                self.values,
                self.run_id,
                self.on_progress,
                workspace=self.workspace,
            )
        if on == "step-functions":
            return executions.follow(
                self.aws, self.workflow, self.values, self.run_id, self.on_progress
            )
        from orchestration.local.run import dag_runs

        identity = f"{self.workflow.name}/{self.run_id}"
        try:
            return dag_runs.follow(
                self.aws,
                self.workflow,
                self.values,
                self.run_id,
                self.on_progress,
                self.airflow,
            )
        except BaseException:
            # Stopping Airflow stops no job.
            report.stop_jobs(self.aws, self.workflow, run_token(identity))
            raise


def account_of(pipeline: Pipeline, time_scale: float, job_cache: Path | None = None) -> EmbeddedAws:
    """Return a new account in a pipeline's region."""
    region = pipeline.region or DEFAULT_REGION
    return EmbeddedAws(region=region, time_scale=time_scale, job_cache=job_cache)


def _defaults(aws: EmbeddedAws, workflow: Workflow, passed: Mapping[str, Json]) -> dict[str, Json]:
    """Return the defaults of the parameters, and a role if the user passed none."""
    values = _declared(workflow)
    required = {spec.name for spec in workflow.parameters if spec.default is None}
    if "role" in required and "role" not in passed:
        values["role"] = executions.role(aws, _ROLE, "sagemaker.amazonaws.com")
    return values


def _declared(workflow: Workflow) -> dict[str, Json]:
    return {s.name: s.default for s in workflow.parameters if s.default is not None}


def _check_complete(workflow: Workflow, values: Mapping[str, Json]) -> None:
    missing = [spec.name for spec in workflow.parameters if spec.name not in values]
    if missing:
        raise LocalError(
            f"pipeline {workflow.name} has no value for {', '.join(missing)}: pass parameters"
        )


def _ignore(_: Progress) -> None:
    pass


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
