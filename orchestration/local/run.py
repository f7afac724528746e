"""Runs a pipeline on this machine, whole: data and code uploaded, started, followed, reported."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.errors import ExpressionError, LocalError
from orchestration.expressions import Json, Tree, evaluate, walk
from orchestration.expressions.evaluate import Values, run_token
from orchestration.graph import Workflow, all_steps, trees
from orchestration.local import executions, report
from orchestration.local.embedded import EmbeddedAws
from orchestration.local.report import Followed, On, OnProgress, Progress, RunReport, StageReport

if TYPE_CHECKING:
    from orchestration.local.airflow import LocalAirflow
    from orchestration.pipeline import Pipeline

__all__ = ["On", "OnProgress", "Progress", "RunReport", "StageReport", "run"]

_ROLE = "EmbeddedSageMakerExecution"


def run(
    pipeline: Pipeline,
    *,
    on: On,
    parameters: Mapping[str, str | float | bool] | None = None,
    aws: EmbeddedAws | None = None,
    uploads: Mapping[str, Path] | None = None,
    run_id: str | None = None,
    on_progress: OnProgress | None = None,
    time_scale: float = 0.02,
    airflow: LocalAirflow | None = None,
) -> RunReport:
    """Run a pipeline on an embedded AWS and report what it came to, failures too.

    Buckets that the parameters and the pipeline name are made; ``uploads`` (files or folders by
    their S3 URI) and the folders of code are put into them. Without ``aws`` an account of its own
    is started for the run, with ``time_scale`` real seconds for a second of AWS; without
    ``airflow``, an Airflow too. A parameter ``role`` need not be given.

    Raises :class:`~orchestration.errors.DeployError` where parameters do not fit or code is
    missing.
    """
    from orchestration.deploy import parameters as deploy_parameters

    workflow = pipeline.lower()
    given = deploy_parameters.read(workflow.parameters, dict(parameters or {}))
    with contextlib.ExitStack() as stack:
        account = aws or stack.enter_context(EmbeddedAws(time_scale=time_scale))
        values = {**_filled(account, workflow, given), **given}
        _check_complete(workflow, values)
        _prepare(account, pipeline, workflow, values, dict(uploads or {}))
        attempt = _Attempt(
            aws=account,
            workflow=workflow,
            values=values,
            run_id=run_id or f"local-{_now():%Y%m%dT%H%M%S-%f}",
            on_progress=on_progress or _ignore,
            airflow=airflow,
        )
        return attempt.run(on, [stage.name for stage in pipeline.stages])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One run on one account."""

    aws: EmbeddedAws
    workflow: Workflow
    values: Mapping[str, Json]
    run_id: str
    on_progress: OnProgress
    airflow: LocalAirflow | None

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
            stages=report.stages(stage_names, followed, calls, self.aws.state()),
            outputs=followed.outputs,
            calls=calls,
            log=followed.log,
        )

    def _followed(self, on: On) -> Followed:
        if on == "step-functions":
            return executions.follow(
                self.aws, self.workflow, self.values, self.run_id, self.on_progress
            )
        from orchestration.local import dag_runs

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
            # Ending Airflow ends no job.
            report.stop_jobs(self.aws, run_token(identity))
            raise


def _filled(aws: EmbeddedAws, workflow: Workflow, given: Mapping[str, Json]) -> dict[str, Json]:
    """The role, where nobody gave one, and the defaults."""
    values: dict[str, Json] = {
        spec.name: spec.default for spec in workflow.parameters if spec.default is not None
    }
    required = {spec.name for spec in workflow.parameters if spec.default is None}
    if "role" in required and "role" not in given:
        values["role"] = executions.role(aws, _ROLE, "sagemaker.amazonaws.com")
    return values


def _check_complete(workflow: Workflow, values: Mapping[str, Json]) -> None:
    missing = [spec.name for spec in workflow.parameters if spec.name not in values]
    if missing:
        raise LocalError(
            f"pipeline {workflow.name} has no value for {', '.join(missing)}: give parameters"
        )


def _prepare(
    aws: EmbeddedAws,
    pipeline: Pipeline,
    workflow: Workflow,
    values: Mapping[str, Json],
    uploads: Mapping[str, Path],
) -> None:
    from orchestration.deploy import sources

    s3 = aws.client("s3")
    _make_buckets(s3, {*_buckets(workflow, values), *(_bucket(uri) for uri in uploads)})
    for uri, path in uploads.items():
        _upload(s3, uri, path)
    sources.upload(pipeline, values, s3)


def _make_buckets(s3: Any, names: set[str]) -> None:
    there = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
    region = s3.meta.region_name
    # us-east-1 is the one region that must not be named.
    location = {"LocationConstraint": region} if region != "us-east-1" else None
    more = {"CreateBucketConfiguration": location} if location else {}
    for name in sorted(names - there):
        try:
            s3.create_bucket(Bucket=name, **more)
        except s3.exceptions.ClientError as error:
            raise LocalError(f"the bucket {name!r} can't be made: {error}") from error


def _buckets(workflow: Workflow, values: Mapping[str, Json]) -> Iterator[str]:
    """The buckets of all S3 URIs that are known before the run."""
    environment = Values({}, values)
    for tree in [*values.values(), *(t for step in all_steps(workflow.graph) for t in trees(step))]:
        for part in _texts(tree):
            # What an earlier step gives is in a bucket that exists by then.
            with contextlib.suppress(ExpressionError):
                value = evaluate(part, environment)
                if isinstance(value, str) and value.startswith("s3://") and _bucket(value):
                    yield _bucket(value)


def _texts(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping):
        for value in tree.values():
            yield from _texts(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _texts(value)
    else:
        yield from walk(tree)


def _bucket(uri: str) -> str:
    return uri.removeprefix("s3://").partition("/")[0]


def _upload(s3: Any, uri: str, path: Path) -> None:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if path.is_file():
        whole = f"{key}{path.name}" if key.endswith("/") or not key else key
        s3.put_object(Bucket=bucket, Key=whole, Body=path.read_bytes())
        return
    if not path.is_dir():
        raise LocalError(f"there is no file or folder {path} to upload to {uri}")
    prefix = f"{key.rstrip('/')}/" if key else ""
    for file in sorted(path.rglob("*")):
        if file.is_file():
            name = file.relative_to(path).as_posix()
            s3.put_object(Bucket=bucket, Key=prefix + name, Body=file.read_bytes())


def _ignore(_: Progress) -> None:
    pass


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
