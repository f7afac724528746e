"""A whole pipeline from an estimator: its role, its region, and all that is wrong at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.errors import PipelineError, Problem
from orchestration.pipeline import Pipeline
from orchestration.refs import STAGE_NAME, Expression, Ref
from orchestration.sagemaker_sdk.v2.estimators import from_estimator, settings
from orchestration.stages import Cluster, Stage, TrainingJob


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
    and with the pipeline together.
    """
    problems: list[Problem] = []
    hidden: set[str] = set()
    try:
        job = from_estimator(estimator, inputs, name=stage, **(conversion or {}))
        fields = {**settings(estimator), **fields}
    except PipelineError as error:
        problems += error.problems
        job = _stand_in(stage)
        # What reads the job may only be wrong because that one stands in for it.
        hidden = {job.name, *(each.name for each in stages if _reads(each, job.name))}
    try:
        pipeline = Pipeline(name=name, workspace=workspace, stages=[job, *stages], **fields)
    except PipelineError as error:
        found = [problem for problem in error.problems if problem.stage not in hidden]
        raise PipelineError([*problems, *found]) from error
    if problems:
        raise PipelineError(problems)
    return pipeline


def _stand_in(stage: str) -> TrainingJob:
    """Return a job that is right, so that what is wrong beside it can be told."""
    name = stage if STAGE_NAME.fullmatch(stage) else "train"
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1"
    return TrainingJob(name=name, image=image, cluster=Cluster(instance_type="ml.m5.xlarge"))


def _reads(stage: Stage, name: str) -> bool:
    return any(isinstance(node, Ref) and node.stage == name for _, node in stage.references())
