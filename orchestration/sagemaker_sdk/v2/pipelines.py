"""A whole pipeline from an estimator: its role, its region, and all that is wrong at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline import Pipeline
from orchestration.refs import STAGE_NAME, Expression, Ref
from orchestration.sagemaker_sdk.findings import Findings
from orchestration.sagemaker_sdk.v2.attributes import OF_FIELDS
from orchestration.sagemaker_sdk.v2.estimators import converted, settings
from orchestration.stages import Cluster, Stage, TrainingJob

_WORDS: Final = {
    ours: theirs
    for field, theirs in OF_FIELDS.items()
    if "_" in (ours := field.rpartition(".")[2]) and "." not in theirs
}
"""The estimator's words for fields that a message of the pipeline names."""


def pipeline_from_estimator(
    estimator: Any,
    inputs: object = None,
    *,
    name: str,
    workspace: str | Expression[Any],
    stage: str = "train",
    stages: Sequence[Stage] = (),
    conversion: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Pipeline:
    """Return a pipeline that trains as ``estimator.fit(inputs)`` would, in its region, by its role.

    ``stage`` names the training job, ``stages`` are those beside it, ``conversion`` holds further
    arguments of :func:`from_estimator`, and ``fields`` are those of the pipeline; ``role`` and
    ``region`` among them win over the estimator's.

    Raises :class:`~orchestration.errors.PipelineError` that names what is wrong with the estimator
    and with the pipeline together, in the estimator's words what the pipeline has to say of its
    job.
    """
    job, findings = converted(estimator, inputs, name=stage, **(conversion or {}))
    fields = fields if job is None else {**settings(estimator), **fields}
    standing = _stand_in(stage) if job is None else job
    told = list(findings.problems)
    try:
        pipeline = Pipeline(name=name, workspace=workspace, stages=[standing, *stages], **fields)
    except PipelineError as error:
        told += _told(error, standing, stages, job is None, findings)
        raise PipelineError(dict.fromkeys(told)) from error
    if told:
        raise PipelineError(told)
    return pipeline


def _told(
    error: PipelineError,
    job: TrainingJob,
    stages: Sequence[Stage],
    stands_in: bool,
    findings: Findings,
) -> Iterator[Problem]:
    """Yield what the pipeline says that is not due to what the conversion had to leave out."""
    # What reads the job may only be wrong because another one stands in for it.
    reading = {each.name for each in stages if stands_in and _reads(each, job.name)}
    for problem in error.problems:
        if problem.stage == job.name:
            mine = _in_its_words(problem, findings)
            known = {each.field for each in findings.problems}
            left_out = bool(known) and _is_default(job, problem.field)
            if not (stands_in or left_out or mine.field in known):
                yield mine
        elif problem.stage not in reading:
            yield problem


def _is_default(job: TrainingJob, path: str) -> bool:
    name = re.split(r"[.\[]", path)[0]
    field = TrainingJob.model_fields.get(name)
    return field is not None and bool(
        getattr(job, name) == field.get_default(call_default_factory=True)
    )


def _in_its_words(problem: Problem, findings: Findings) -> Problem:
    """Return a problem of the job as one of the estimator."""
    parts = re.findall(r"[^.\[\]]+", problem.field)
    location = tuple(int(part) if part.isdecimal() else part for part in parts)
    message = re.sub(r"\w+", lambda word: _WORDS.get(word[0], word[0]), problem.message)
    place = findings.place("", location)
    return replace(problem, field=f"estimator.{place}".rstrip("."), message=message, stage=None)


def _stand_in(stage: str) -> TrainingJob:
    """Return a job that is right, so that what is wrong beside it can be told."""
    name = stage if STAGE_NAME.fullmatch(stage) else "train"
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1"
    return TrainingJob(name=name, image=image, cluster=Cluster(instance_type="ml.m5.xlarge"))


def _reads(stage: Stage, name: str) -> bool:
    return any(isinstance(node, Ref) and node.stage == name for _, node in stage.references())
