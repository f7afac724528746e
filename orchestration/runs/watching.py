"""A run while it goes on: stages, jobs, metrics, the ends of logs, dollars."""

from __future__ import annotations

import datetime
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.direct.stages import RunState, StageState, own_steps
from orchestration.execution.reading.metrics import final_metrics
from orchestration.pricing import Sum
from orchestration.pricing.billed import of_job
from orchestration.runs.besides import besides, state_of
from orchestration.runs.jobs import Job, Jobs
from orchestration.runs.logs import Logs
from orchestration.runs.progress import Progress, Watched

_LINES: Final = 200
"""Lines read of a stream that is new; what was logged before is not looked at for metrics."""
_HOSTS: Final = 4
"""Streams of a job that are read: with many hosts, the first few tell how it does."""

_LATE_S: Final = 30.0
"""Seconds after its end in which more of a job's log may arrive: CloudWatch gets it late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as it is now."""

    name: str
    status: str
    phase: str
    """The secondary status of a training job: ``Downloading``, ``Training``."""
    reason: str
    """The reason of its failure."""
    metrics: Mapping[str, float]
    log: tuple[str, ...]
    """The last lines of its first host."""
    usd: float | None
    """The dollars so far; ``None`` without a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageView:
    """A stage as it is now."""

    name: str
    state: StageState
    started: datetime.datetime | None
    ended: datetime.datetime | None
    steps: tuple[str, ...]
    """The steps that run."""
    logs: Mapping[str, tuple[str, ...]]
    """The last lines of its failed steps, where the service keeps logs of steps."""
    jobs: tuple[JobView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A run at one moment."""

    pipeline: str
    run: str
    state: RunState
    at: datetime.datetime
    started: datetime.datetime | None
    ended: datetime.datetime | None
    error: str
    cause: str
    stages: tuple[StageView, ...]
    usd: float
    """The dollars that jobs, file systems and endpoints cost so far, as far as their prices are
    known: an endpoint that outlives the run, from its deployment to the end of the run."""
    unpriced: tuple[str, ...]
    """The jobs, and other things, that ``usd`` leaves out."""
    besides: tuple[str, ...] = ()
    """The things beside jobs that it counts: ``FSx for Lustre, 1,200 GiB``."""

    @property
    def has_just_ended(self) -> bool:
        """True if the last lines of its jobs may not have arrived."""
        return self.ended is not None and (self.at - self.ended).total_seconds() < _LATE_S

    @property
    def elapsed_s(self) -> float:
        """Seconds since it started, until now or its end."""
        if self.started is None:
            return 0.0
        return max(0.0, ((self.ended or self.at) - self.started).total_seconds())

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "pipeline": self.pipeline,
            "run": self.run,
            "state": self.state,
            "at": self.at.isoformat(),
            "elapsed_s": round(self.elapsed_s, 1),
            "error": self.error,
            "cause": self.cause,
            "stages": [_stage_data(stage) for stage in self.stages],
            "usd": round(self.usd, 6),
            "unpriced": list(self.unpriced),
            "besides": list(self.besides),
        }


@dataclass(slots=True)
class _Known:
    """The last lines and the metrics of a job's log."""

    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES))
    by_host: dict[int, dict[str, float]] = field(default_factory=dict)
    """The metrics that each of its hosts has told."""
    ended_at: float | None = None
    """The time (monotonic) of the first look that saw that the job has ended."""

    @property
    def metrics(self) -> dict[str, float]:
        """Its metrics; of two hosts that tell one, the first one's word counts."""
        hosts = sorted(self.by_host, reverse=True)
        return {name: value for host in hosts for name, value in self.by_host[host].items()}

    @property
    def is_whole(self) -> bool:
        """True once nothing more is expected."""
        return self.ended_at is not None and time.monotonic() - self.ended_at > _LATE_S


class Watch:
    """A run that is looked at again and again; what can't change is asked for once."""

    def __init__(
        self, run: Watched, jobs: Jobs, logs: Logs, *, region: str, lines: int = 10
    ) -> None:
        self._run = run
        self._jobs = jobs
        self._logs = logs
        self._region = region
        self._lines = lines
        self._stages = [stage.name for stage in jobs.pipeline.every_stage]
        self._workflow = jobs.pipeline.lower()
        self._known: dict[str, _Known] = {}

    def look(self) -> Snapshot:
        """Ask for everything once."""
        # How the run ended comes first: what its jobs did before is read after it.
        progress = self._run.look()
        jobs = self._jobs.of({self._run.token}, since=progress.begun)
        at = datetime.datetime.now(datetime.UTC)
        views = {job.name: self._view(job, at) for job in jobs}
        known = [view.usd for view in views.values() if view.usd is not None]
        stages = tuple(
            _stage(
                name, progress, [views[job.name] for job in jobs if job.stage == name], self._lines
            )
            for name in self._stages
        )
        beside = besides(self._workflow, self._stages, progress, region=self._region, now=at)
        return Snapshot(
            pipeline=self._jobs.pipeline.name,
            run=self._run.name,
            state=progress.state,
            at=at,
            started=progress.started,
            ended=progress.ended,
            error=progress.error,
            cause=progress.cause,
            stages=stages,
            usd=sum(known) + sum(line.expected_usd or 0.0 for line in beside.lines),
            unpriced=(
                *(name for name, view in views.items() if view.usd is None),
                *(line.what for line in beside.lines if line.expected_usd is None),
                *(f"the endpoint of {name}, if it stands" for name in beside.doubtful),
            ),
            besides=tuple(line.what for line in beside.lines if line.expected_usd is not None),
        )

    def _view(self, job: Job, at: datetime.datetime) -> JobView:
        known = self._read(job)
        lines = [
            line
            for kind, each in job.paid
            for line in of_job(kind, job.stage, each, self._region, at=at)
        ]
        return JobView(
            name=job.name,
            status=job.status,
            phase=job.phase,
            reason=str(job.description.get("FailureReason", "")),
            metrics={**known.metrics, **_final(job)},
            log=tuple(known.tail)[-self._lines :] if self._lines else (),
            usd=Sum.of(lines).expected_usd,
        )

    def _read(self, job: Job) -> _Known:
        known = self._known.setdefault(job.name, _Known())
        if known.is_whole:
            return known
        for number, stream in enumerate(self._logs.streams(job)[:_HOSTS]):
            new = [event.message for event in self._logs.read(stream, most=_LINES)]
            known.by_host.setdefault(number, {}).update(_metrics(job, new))
            if number == 0:
                known.tail.extend(new)
        if job.has_ended and known.ended_at is None:
            known.ended_at = time.monotonic()
        return known


def _final(job: Job) -> dict[str, float]:
    """Return the metrics of a job as SageMaker tells them: of a search, its best objective."""
    final = list(job.description.get("FinalMetricDataList") or ())
    best = job.description.get("BestTrainingJob", {})
    if objective := best.get("FinalHyperParameterTuningJobObjectiveMetric"):
        final.append(objective)
    return {each["MetricName"]: each["Value"] for each in final}


def _metrics(job: Job, lines: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield what SageMaker makes of a training job's log, before it says so itself."""
    definitions = job.description.get("AlgorithmSpecification", {}).get("MetricDefinitions", ())
    now = datetime.datetime.now(datetime.UTC)
    for metric in final_metrics(definitions, "\n".join(lines), now):
        yield metric["MetricName"], metric["Value"]


def _stage(name: str, progress: Progress, jobs: Sequence[JobView], most: int) -> StageView:
    own = own_steps(name, progress.steps)
    began = [step.started for step in own if step.started is not None]
    ended = [step.ended for step in own if step.ended is not None]
    running = tuple(step.step for step in own if step.state == "running")
    state = state_of(name, progress)
    return StageView(
        name=name,
        state=state,
        started=min(began, default=None),
        ended=None if state == "running" else max(ended, default=None),
        steps=running,
        logs={
            step: tuple(lines)[-most:]
            for step, lines in progress.logs.items()
            if most and step.partition(".")[0] == name
        },
        jobs=tuple(jobs),
    )


def _stage_data(stage: StageView) -> dict[str, Any]:
    return {
        "name": stage.name,
        "state": stage.state,
        "started": None if stage.started is None else stage.started.isoformat(),
        "ended": None if stage.ended is None else stage.ended.isoformat(),
        "steps": list(stage.steps),
        "logs": {step: list(lines) for step, lines in stage.logs.items()},
        "jobs": [
            {
                "name": job.name,
                "status": job.status,
                "phase": job.phase,
                "reason": job.reason,
                "metrics": dict(job.metrics),
                "log": list(job.log),
                "usd": job.usd,
            }
            for job in stage.jobs
        ],
    }
