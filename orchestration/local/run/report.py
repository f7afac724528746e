"""The report of a run on the embedded AWS, the same for all backends."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from botocore import xform_name

from orchestration import notebook
from orchestration.direct.progress import StepRun
from orchestration.direct.stages import StageState, own_steps, stage_state
from orchestration.expressions import Json
from orchestration.expressions.evaluate import run_token
from orchestration.graph import Workflow, job_name_fields
from orchestration.local.account.records import RecordedCall

if TYPE_CHECKING:
    from orchestration.local.server.embedded import EmbeddedAws

On = Literal["direct", "step-functions", "airflow"]
RunState = Literal["succeeded", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A run as its backend reports it."""

    identity: str
    """The identity from which the names of the run's resources are derived."""
    state: RunState
    error: str | None = None
    cause: str | None = None
    outputs: Mapping[str, Json] | None = None
    steps: tuple[StepRun, ...] = ()
    log: str = ""
    """The end of the backend's own log, if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageReport:
    """The result of a stage."""

    name: str
    state: StageState
    started: datetime.datetime | None
    ended: datetime.datetime | None
    job_names: tuple[str, ...] = ()
    """SageMaker jobs, in the order in which they were created."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The last values of the metrics of its training job, or of the best one of a search; and the
    numbers among the stage's outputs."""
    log: tuple[str, ...] = ()
    """The last lines of the log of the job that failed, or of the models of an endpoint."""

    @property
    def duration_s(self) -> float | None:
        """The real seconds from the start of the first step to the end of the last."""
        if self.started is None or self.ended is None:
            return None
        return (self.ended - self.started).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The result of a run, from the backend's records, the AWS calls and the account."""

    pipeline: str
    on: On
    run_id: str
    state: RunState
    error: str | None
    cause: str | None
    started: datetime.datetime
    ended: datetime.datetime
    stages: tuple[StageReport, ...]
    outputs: Mapping[str, Json] | None
    """The outputs of the pipeline, by stage; None if it failed."""
    calls: tuple[RecordedCall, ...]
    """The orchestrators' calls during the run, in order; including those of concurrent runs."""
    log: str = ""
    """The end of Airflow's log; empty for other backends."""

    @property
    def duration_s(self) -> float:
        """The real seconds from start to end."""
        return (self.ended - self.started).total_seconds()

    def _repr_html_(self) -> str:
        rows = [
            (
                each.name,
                each.state,
                notebook.seconds(each.duration_s),
                "\n".join(f"{name} = {value:.6g}" for name, value in each.metrics.items()),
                "\n".join(each.job_names),
            )
            for each in self.stages
        ]
        failed = [] if self.error is None else [f"{self.error}: {self.cause}"]
        logs = ["\n".join(each.log) for each in self.stages if each.log]
        ended = f"{self.state}, {self.duration_s:.1f} s"
        return notebook.block(
            f"{self.pipeline} on {self.on}, run {self.run_id}: {ended}",
            notebook.table(("stage", "state", "time", "metrics", "jobs"), rows),
            *map(notebook.line, [*failed, *logs]),
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything but the calls' requests and the log as a JSON object."""
        return {
            "pipeline": self.pipeline,
            "on": self.on,
            "run_id": self.run_id,
            "state": self.state,
            "error": self.error,
            "cause": self.cause,
            "started": self.started.isoformat(),
            "duration_s": round(self.duration_s, 3),
            "stages": [_stage_json(stage) for stage in self.stages],
            "outputs": self.outputs,
            "calls": [
                {
                    "operation": f"{c.service}:{c.operation}",
                    "status": c.status,
                    "error": c.error_code,
                }
                for c in self.calls
            ],
        }


def _stage_json(stage: StageReport) -> dict[str, Any]:
    seconds = stage.duration_s
    return {
        "name": stage.name,
        "state": stage.state,
        "started": stage.started.isoformat() if stage.started else None,
        "duration_s": None if seconds is None else round(seconds, 3),
        "job_names": list(stage.job_names),
        "metrics": dict(stage.metrics),
        "log": list(stage.log),
    }


def stages(
    names: Sequence[str],
    followed: Followed,
    calls: Iterable[RecordedCall],
    account: Mapping[str, Any],
    name_fields: Mapping[str, str],
) -> tuple[StageReport, ...]:
    """Return a report for each stage, in the order of ``names``.

    ``name_fields`` are the workflow's :func:`~orchestration.graph.job_name_fields`.
    """
    jobs: dict[str, list[str]] = {}
    for stage, job, call in _requested(calls, run_token(followed.identity), name_fields):
        made = jobs.setdefault(stage, [])
        if job not in made and _exists(job, call, account, name_fields):
            made.append(job)
    return tuple(_stage(name, followed, tuple(jobs.get(name, ())), account) for name in names)


def _requested(
    calls: Iterable[RecordedCall], token: str, name_fields: Mapping[str, str]
) -> Iterator[tuple[str, str, RecordedCall]]:
    """The jobs that a run asked for, by their tags: stage, name and call.

    Whatever the answer was: a job may exist though its response was lost.
    """
    for call in calls:
        name_field = name_fields.get(call.operation)
        tags = _tags(call) if name_field is not None else {}
        if name_field is not None and tags.get("orchestration:run") == token:
            yield tags.get("orchestration:stage", ""), str(call.request[name_field]), call


def _exists(
    job: str, call: RecordedCall, account: Mapping[str, Any], name_fields: Mapping[str, str]
) -> bool:
    """Return whether a job was created; where the account lists no such jobs, by the answer."""
    listed = account["sagemaker"].get(f"{_kind(name_fields[call.operation])}s")
    return call.error_code is None if listed is None else job in listed


def _kind(name_field: str) -> str:
    """Return the kind of a job, as in the names of its fields and operations: ``TrainingJob``."""
    return name_field.removesuffix("Name")


def stop_jobs(aws: EmbeddedAws, workflow: Workflow, token: str) -> None:
    """Stop the jobs that a run left running."""
    name_fields = job_name_fields(workflow.graph)
    started = {job for _, job, _ in _requested(aws.calls(), token, name_fields)}
    account = aws.state()["sagemaker"]
    sagemaker = aws.client("sagemaker")
    for name_field in name_fields.values():
        kind = _kind(name_field)
        for name, job in account.get(f"{kind}s", {}).items():
            if name in started and job[f"{kind}Status"] == "InProgress":
                getattr(sagemaker, xform_name(f"Stop{kind}"))(**{name_field: name})


def _stage(
    name: str, followed: Followed, jobs: tuple[str, ...], account: Mapping[str, Any]
) -> StageReport:
    own = own_steps(name, followed.steps)
    began = [step.started for step in own if step.started is not None]
    ended = [step.ended for step in own if step.ended is not None]
    return StageReport(
        name=name,
        state=stage_state(name, followed.steps, followed.state, followed.outputs),
        started=min(began, default=None),
        ended=max(ended, default=None),
        job_names=jobs,
        metrics={
            **_final_metrics((*jobs, *_best(followed.outputs, name)), account),
            **_numbers(followed.outputs, name),
        },
    )


def _final_metrics(jobs: Iterable[str], account: Mapping[str, Any]) -> dict[str, float]:
    known = account["sagemaker"]["TrainingJobs"]
    return {
        metric["MetricName"]: metric["Value"]
        for job in jobs
        for metric in known.get(job, {}).get("FinalMetricDataList", ())
    }


def _best(outputs: Mapping[str, Json] | None, stage: str) -> tuple[str, ...]:
    """Return the job that a stage shows, which may be one of many that its own job has run."""
    shown = (outputs or {}).get(stage)
    name = shown.get("job_name") if isinstance(shown, Mapping) else None
    return (name,) if isinstance(name, str) else ()


def _numbers(outputs: Mapping[str, Json] | None, stage: str) -> dict[str, float]:
    shown = (outputs or {}).get(stage)
    if not isinstance(shown, Mapping):
        return {}
    return {
        key: value
        for key, value in shown.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _tags(call: RecordedCall) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in call.request.get("Tags", ())}
