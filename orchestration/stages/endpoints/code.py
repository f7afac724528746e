"""Code, containers and machines of models, as deployments may combine them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestration.errors import Problem
from orchestration.refs import is_given
from orchestration.stages.endpoints import sharing
from orchestration.stages.endpoints.cases import OK
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.serving.containers import of_code, of_image
from orchestration.stages.values import s3_problem

_NOT_SERVERLESS: Final = {
    "instance_type": "has no instances",
    "fallbacks": "has no instances",
    "capacity_timeout_s": "has no instances",
    "volume_kms_key": "has no volumes of its own",
    "startup_timeout_s": "has no instances",
    "download_timeout_s": "has no instances",
    "routing": "has no instances",
    "asynchronous": "has no queue",
    "autoscaling": "scales by itself",
    "data_capture": "captures nothing",
    "vpc": "has no network of its own",
    "enable_network_isolation": "has a network",
    "variants": "has one variant",
    "preprocessing": "has one container",
    "postprocessing": "has one container",
}
"""https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints.html, its exclusions."""


def problems(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what keeps a model from being served by its code in its container."""
    if stage.model_data is not None or stage.image is not None:
        yield from of_image(stage)
    yield from of_code(stage)
    yield from stage.problems_of_sequence()
    yield from stage.problems_of_model(stage.extra_request.CreateModel)


def combined(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what SageMaker does not combine."""
    if stage.autoscaling is not None:
        for problem in stage.autoscaling.problems():
            yield problem.within("autoscaling")
    yield from _places(stage)
    yield from _queued(stage)
    yield from _judged(stage)
    yield from sharing.problems(stage)
    if stage.serverless is None:
        if stage.instance_type is None:
            yield Problem("instance_type", "is needed; or serverless: {memory_mb: 2048}")
        yield from _fallen_back(stage)
        yield from _unguarded(stage)
        return
    for problem in stage.serverless.problems():
        yield problem.within("serverless")
    for name, reason in _NOT_SERVERLESS.items():
        if is_given(getattr(stage, name)):
            yield Problem(name, f"a serverless endpoint {reason}; remove it")
    for field in stage.update.guards:
        reason = "a serverless endpoint changes over all at once, and nothing watches it"
        yield Problem(f"update.{field}", f"{reason}; remove it")


def _places(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield places in S3 that are none."""
    if stage.data_capture is not None:
        yield from s3_problem("data_capture.uri", stage.data_capture.uri)
    if stage.asynchronous is not None:
        for field in ("output_uri", "failure_uri"):
            yield from s3_problem(f"asynchronous.{field}", getattr(stage.asynchronous, field))


def _fallen_back(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield instance types that are asked for already."""
    before: list[object] = [stage.instance_type]
    for number, kind in enumerate(stage.fallbacks):
        if kind in before:
            yield Problem(f"fallbacks.{number}", f"{kind} stands before it already; remove it")
        before.append(kind)


def _unguarded(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what SageMaker leaves out without a word where it updates Inf1 instances.

    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-exclusions.html
    """
    if stage.inference_component is not None or stage.shadow or not sharing.has_inf1(stage):
        return
    for field in stage.update.guards:
        reason = "SageMaker updates Inf1 instances all at once, and nothing watches them"
        yield Problem(f"update.{field}", f"{reason}; remove it, or choose other instances")


def _judged(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what keeps a script from judging answers."""
    trial = stage.update.trial
    if stage.judge is None:
        if trial is not None and trial.job is not None:
            yield Problem("update.trial.job", "nothing runs in it; give the stage a judge")
        return
    if trial is None:
        yield Problem("judge", "judges the answers to cases; give update: {trial: [...]}")
        return
    if all(case.status != OK for case in trial.cases):
        yield Problem("judge", "every case is to be refused, which leaves no answer to judge")
    if stage.judge.archive_only:
        yield Problem(
            "judge",
            "is an archive, which a processing job does not unpack; give it a directory, or "
            "the uri of a prefix that holds files/",
        )
    own = trial.job is not None and (trial.job.image or trial.job.framework)
    if not own and stage.image is None and stage.framework is None:
        yield Problem("update.trial.job", "needs an image for the judge: {image: ...}")


def _queued(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what an asynchronous endpoint has or lacks, and others do not."""
    if stage.asynchronous is None:
        for name in () if stage.autoscaling is None else stage.autoscaling.resting():
            message = "only an asynchronous endpoint can wait without instances; change it"
            yield Problem(f"autoscaling.{name}", message)
        return
    if stage.update.trial is not None and stage.update.trial.after:
        answers = "an asynchronous endpoint answers into S3; use smoke_test"
        yield Problem("update.trial.after", answers)


def unanswered(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield that a test may find no instances, and start none.

    https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-autoscale.html
    """
    scaling = stage.autoscaling
    if stage.asynchronous is None or stage.smoke_test is None or scaling is None:
        return
    if scaling.rests and not scaling.from_zero and (scaling.backlog_per_instance or 1) >= 1:
        message = "an update may find no instances, and one request that waits starts none"
        remedy = (
            "give autoscaling from_zero: true, or set its backlog_per_instance below 1, or its "
            "min_instances to 1"
        )
        yield Problem("smoke_test", f"{message} (AnswerMissing after 15 minutes); {remedy}")


def unencrypted(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield that a key does not encrypt the local storage that an instance type has.

    botocore's text of CreateEndpointConfig, 1.43: such a key is taken, and does nothing there.
    """
    from orchestration.catalog import instance

    if stage.volume_kms_key is None or not isinstance(stage.instance_type, str):
        return
    known = instance(stage.instance_type)
    if known is not None and known.local_storage_gb:
        yield Problem(
            "volume_kms_key",
            f"{stage.instance_type} has local storage, which its hardware encrypts with a key of "
            "its own; this one encrypts other volumes only",
        )
