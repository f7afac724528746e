"""Rules of CreateHyperParameterTuningJob, told by the fields of the stage.

Sources: botocore's texts of the operation (1.43.117), and for grid search, which they do not
describe, https://docs.aws.amazon.com/sagemaker/latest/dg/automatic-model-tuning-how-it-works.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from orchestration.errors import Problem
from orchestration.expressions import run_id
from orchestration.stages.stage import Context
from orchestration.stages.training import checks
from orchestration.stages.tuning.fields import TuningFields

MOST_RANGES: Final = 30
"""Tuned hyperparameters, of all kinds together: ``HyperParameterRanges``."""
MOST_METRICS: Final = 40
EPOCHS: Final = ("epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs")
"""Hyperparameters that tell Hyperband's ``MaxResource`` where nothing else does."""

_NOT_CARRIED: Final = {
    "entrypoint": "put it into the image, or give a source",
    "arguments": "put them into the image, or into hyperparameters",
    "metrics_time_series": "remove it",
    "debugger": "remove it",
    "profiler": "remove it",
    "tensorboard": "remove it",
    "experiment": "remove it: SageMaker files a tuning job's trials by itself",
}
"""Fields of a training job that the definition of a tuning job's training jobs lacks."""


def problems(job: TuningFields, context: Context) -> Iterator[Problem]:
    """Yield the errors of a tuning job, those of its training jobs included."""
    yield from _not_carried(job)
    # Values that are known to be there, and known only in the training jobs.
    trained = job.training(tuned=dict.fromkeys(job.ranges, run_id()))
    yield from (_placed(problem, job) for problem in checks.problems(trained, context))
    yield from _objective(job)
    yield from _ranges(job)
    yield from _limits(job)
    yield from _search(job)


def _placed(problem: Problem, job: TuningFields) -> Problem:
    """Return an error of the training job at the field that it comes from."""
    root, _, name = problem.field.partition(".")
    if root == "hyperparameters" and name in job.ranges:
        return replace(problem, field=f"ranges.{name}")
    if root == "metrics" and name not in job.metrics:
        return replace(problem, field="objective.regex")
    return problem


def _not_carried(job: TuningFields) -> Iterator[Problem]:
    for field, way in _NOT_CARRIED.items():
        if getattr(job, field) not in (None, (), False):
            yield Problem(field, f"the training jobs of a tuning job have no such field; {way}")
    if job.wait_for_capacity_h is not None:
        yield Problem("wait_for_capacity_h", "a tuning job is requested once; remove it")
    if job.cluster.fallbacks:
        yield Problem(
            "cluster.fallbacks",
            "the training jobs of a tuning job have none; give preferences, which SageMaker tries "
            "in order",
        )
    if job.cluster.preferences:
        for field in ("keep_alive_s", "training_plan"):
            if getattr(job.cluster, field) is not None:
                yield Problem(
                    f"cluster.{field}", "can't be had with preferences in a tuning job; remove it"
                )


def _objective(job: TuningFields) -> Iterator[Problem]:
    objective = job.objective
    if objective.regex is not None and objective.metric in job.metrics:
        yield Problem(
            "objective.regex", f"metrics has a regex of {objective.metric!r}, too; remove one"
        )
    elif objective.regex is None and objective.metric not in job.metrics and job.source is not None:
        yield Problem(
            "objective.regex",
            f"is needed to find {objective.metric!r} in the log of the script: 'loss=([0-9.]+)'",
        )
    count = len(job.training().metrics)
    if count > MOST_METRICS:
        yield Problem("metrics", f"has {count} entries with the objective; the most is 40")


def _ranges(job: TuningFields) -> Iterator[Problem]:
    if len(job.ranges) > MOST_RANGES:
        yield Problem("ranges", f"has {len(job.ranges)} entries; the most is {MOST_RANGES}")
    for name, each in job.ranges.items():
        where = f"ranges.{name}"
        yield from (problem.within(where) for problem in each.problems())
        if name in job.hyperparameters:
            yield Problem(where, "hyperparameters has a value of it, too; remove one of them")
        if not re.fullmatch(r"\S.{0,255}", name):
            yield Problem(where, f"expected a name of 1 to 256 characters, got {name!r}")
        if name == "_tuning_objective_metric":
            yield Problem(where, "is a name of SageMaker's own; choose another name")
        if job.search == "grid" and each.categorical is None:
            yield Problem(
                where,
                "grid search takes categorical values only; list them: {categorical: [16, 32]}, "
                "or choose another search",
            )


def _limits(job: TuningFields) -> Iterator[Problem]:
    jobs, parallel = job.limits.jobs, job.limits.parallel
    combinations = job.combinations
    if job.search == "grid":
        if isinstance(jobs, int) and combinations and jobs != combinations:
            yield Problem(
                "limits.jobs",
                f"expected {combinations}, one for each combination, got {jobs}; remove it",
            )
        return
    if jobs is None:
        yield Problem("limits.jobs", "is needed: the training jobs to pay for at the most")
    if isinstance(jobs, int) and isinstance(parallel, int) and parallel > jobs:
        yield Problem("limits.parallel", f"expected at most {jobs}, all jobs, got {parallel}")


def _search(job: TuningFields) -> Iterator[Problem]:
    resources = job.hyperband
    if job.search != "hyperband":
        if resources is not None:
            yield Problem("hyperband", f"search is {job.search}; remove it, or search: hyperband")
        return
    if job.early_stopping:
        yield Problem("early_stopping", "hyperband stops training jobs by itself; remove it")
    most = None if resources is None else resources.max_resource
    least = None if resources is None else resources.min_resource
    if most is None and not any(name in job.hyperparameters for name in EPOCHS):
        yield Problem(
            "hyperband.max_resource",
            f"is needed: the epochs of a whole training; or a hyperparameter {', '.join(EPOCHS)}",
        )
    if most is not None and least is not None and least > most:
        yield Problem("hyperband.min_resource", f"expected at most {most}, got {least}")
