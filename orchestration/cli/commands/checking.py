"""``orchestrate plan --check``: figures of a run beside those of the plan that is pinned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from orchestration.cli.output import FAILED, document, note, require, say
from orchestration.errors import DeployError, PipelineError, Problem, near

if TYPE_CHECKING:
    from orchestration.planning.telling.outcome import Outcome

_PIPELINE, _STAGE, _RUN = (f"orchestration:{name}" for name in ("pipeline", "stage", "run"))


def check(
    path: Path,
    *,
    stage: str | None,
    run_id: str | None,
    region: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Show how far the plans of a pipeline were off, and exit with 1 if a stage has no job."""
    if path.suffix == ".py":
        raise typer.BadParameter("takes a pipeline's YAML file", param_hint="--check")
    require({"boto3": "aws"}, what="looking up jobs")
    from orchestration import Pipeline
    from orchestration.cli.commands.deployment import session_of
    from orchestration.planning.telling.outcome import outcome

    pins = _pins(path)
    if stage is not None and stage not in pins:
        raise typer.BadParameter(f"there is no {stage!r}{near(stage, pins)}", param_hint="--stage")
    pipeline = Pipeline.load(path)
    session = session_of(region or pipeline.region, profile)
    names = [stage] if stage else list(pins)
    found: dict[str, Outcome | None] = {}
    for name in names:
        job, run = _latest(session.client("sagemaker"), pipeline.name, name, run_id)
        found[name] = None if job is None else outcome(pins[name], job, run)
    if as_json:
        document({name: None if each is None else each.data() for name, each in found.items()})
    for name, each in found.items():
        if each is None:
            of_run = f" of run {run_id}" if run_id else ""
            note(f"{name}: no training job{of_run} in {session.region_name} has this stage's tags")
        elif not as_json:
            _show(name, each)
    if None in found.values():
        raise typer.Exit(FAILED)


def _pins(path: Path) -> Mapping[str, Any]:
    """Return the plans that a pipeline's lock file pins, by stage."""
    from orchestration.pipeline.pinning.lock_file import lock_path

    lock = lock_path(path)
    pins = json.loads(lock.read_text(encoding="utf-8")).get("plans") if lock.exists() else None
    if not pins:
        text = f"pins no plan; `orchestrate plan {path} --update` writes one, before the run"
        raise PipelineError([Problem(lock.name, text)])
    return dict(pins)


def _latest(
    sagemaker: Any, pipeline: str, stage: str, run_id: str | None
) -> tuple[Mapping[str, Any] | None, str]:
    """Return the latest job of a stage that has ended, and its run."""
    for job, run in jobs_of(sagemaker, pipeline, stage):
        if run_id in (None, run):
            return sagemaker.describe_training_job(TrainingJobName=job), run
    return None, ""


def jobs_of(sagemaker: Any, pipeline: str, stage: str) -> Iterator[tuple[str, str]]:
    """Yield the jobs of a stage that have ended, the latest first, each with its run."""
    yield from _tagged(sagemaker, pipeline, stage, lambda name: name == stage)


def probes_of(sagemaker: Any, pipeline: str, stage: str) -> Iterator[tuple[str, str]]:
    """Yield the probes of a stage that a pipeline of probes ran, as :func:`jobs_of` does."""
    from orchestration.pipeline.probing.together import is_one, named

    probing, begin = named(pipeline, stage)
    yield from _tagged(sagemaker, probing, begin, lambda name: is_one(name, begin))


def _tagged(
    sagemaker: Any, pipeline: str, stage: str, is_it: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the jobs whose names begin with a stage's, and whose tags say that they are its."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        for summary in _jobs(sagemaker, f"{pipeline}-{stage.replace('_', '-')}-"):
            listed = sagemaker.list_tags(ResourceArn=summary["TrainingJobArn"])["Tags"]
            tags = {tag["Key"]: tag["Value"] for tag in listed}
            if tags.get(_PIPELINE) == pipeline and is_it(tags.get(_STAGE, "")):
                yield summary["TrainingJobName"], tags.get(_RUN, "")
    except (BotoCoreError, ClientError) as error:
        raise DeployError(
            f"the training jobs of {sagemaker.meta.region_name} can't be read: {error}; choose a "
            "profile (--profile, AWS_PROFILE), and sign in; it needs sagemaker:ListTrainingJobs "
            "and sagemaker:ListTags"
        ) from error


def _jobs(sagemaker: Any, prefix: str) -> Iterator[Mapping[str, Any]]:
    """Yield the jobs that have ended and whose names begin so, the latest first."""
    pages = sagemaker.get_paginator("list_training_jobs").paginate(
        NameContains=prefix, SortBy="CreationTime", SortOrder="Descending"
    )
    for page in pages:
        for summary in page["TrainingJobSummaries"]:
            running = summary["TrainingJobStatus"] in ("InProgress", "Stopping")
            if summary["TrainingJobName"].startswith(prefix) and not running:
                yield summary


def _show(stage: str, outcome: Outcome) -> None:
    say(f"{stage}: {outcome.job}, {outcome.status.lower()}, run {outcome.run_id}")
    for figure in outcome.figures:
        say(f"{figure.name:<12}{figure}")
    for text in outcome.notes:
        say(f"{'note':<12}{text}")
