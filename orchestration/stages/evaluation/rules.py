"""Checks of an evaluation beyond the types of its fields; each problem names a way out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orchestration.checks import places
from orchestration.errors import Problem, near
from orchestration.refs import Ref
from orchestration.stages.evaluation import sizes
from orchestration.stages.evaluation.comparing import EvaluationMetric
from orchestration.stages.evaluation.fields import SUBJECTS, EvaluationFields
from orchestration.stages.evaluation.predicting import is_archive
from orchestration.stages.serving import archives
from orchestration.stages.serving.containers import SequenceFields
from orchestration.stages.stage import Stage
from orchestration.stages.training.fields import TrainingFields
from orchestration.stages.values import s3_problem

_NEEDED: Final = ("data", "instance_type")
_OF_A_JOB: Final = (
    *_NEEDED,
    *("image", "framework", "instance_count", "source", "command", "local", "transform"),
    *("arguments", "volume_gib", "max_runtime_s", "environment", "vpc", "wait_for_capacity_h"),
    *("poll_interval_s", "extra_request"),
)
_OF_CHECKPOINTS: Final = (
    *("checkpoint_prefix", "select", "recorded", "max_checkpoints", "max_concurrency"),
)
_OF_SEVERAL: Final = ("max_concurrency",)
_OTHER_JOBS: Final = ("processing_job", "batch_transform")
_OF_A_COMPARISON: Final = ("slices", "failures_allowed", "champion")
_OF_A_RECORDED_DECISION: Final = ("vpc", "poll_interval_s", "extra_request")
"""The fields of jobs that the one has, too, that decides about recorded metrics."""
_MODELS: Final = frozenset({"best_checkpoint", "model"})
_TAKEN: Final = ("checkpoint", "metric", "model", "training_job")


def problems(stage: EvaluationFields) -> Iterator[Problem]:
    """Yield all problems but those of the job's request."""
    yield from _subject(stage)
    for field in ("checkpoints", "model", "data"):
        yield from s3_problem(field, getattr(stage, field))
    yield from _fields(stage)
    if stage.source is not None and stage.source.archive_only:
        yield Problem(
            "source",
            "is an archive, which a processing job does not unpack; give it a directory, or "
            "the uri of a prefix that holds files/",
        )
    for name, metric in stage.metrics.items():
        for problem in _metric(name, metric):
            yield problem.within(f"metrics.{name}")
    yield from _places(stage)
    yield from _decided(stage)
    if stage.on_miss is not None and stage.threshold is not None:
        yield Problem("on_miss", "the threshold says it already; write it there only")
    elif stage.on_miss is not None and not (stage.bounded() or stage.decided_by_job):
        yield Problem("on_miss", "nothing can be missed; give metrics a minimum or a maximum")


def _subject(stage: EvaluationFields) -> Iterator[Problem]:
    subjects = [name for name in SUBJECTS if getattr(stage, name) is not None]
    if not subjects:
        yield Problem("checkpoints", "is needed; or a model, a training_job, or a tuning_job")
    for name in subjects[1:]:
        yield Problem(name, f"expected one of {', '.join(SUBJECTS)}, got {subjects[0]}, too")
    checkpoints, model, job = stage.checkpoints, stage.model, stage.training_job
    if isinstance(checkpoints, Ref) and checkpoints.output == "model_artifacts":
        way_out = f"write model: {{ref: {checkpoints.stage}.model_artifacts}}"
        yield Problem("checkpoints", f"is one model and no folder of checkpoints; {way_out}")
    elif isinstance(checkpoints, str) and checkpoints.endswith((".tar.gz", ".tgz")):
        yield Problem(
            "checkpoints", f"is one file and no folder of checkpoints; write model: {checkpoints}"
        )
    if isinstance(model, Ref) and model.output == "checkpoints":
        way_out = f"write checkpoints: {{ref: {model.stage}.checkpoints}}"
        yield Problem("model", f"is a folder of checkpoints and no single model; {way_out}")
    if isinstance(job, Ref) and job.output in ("model_artifacts", "checkpoints"):
        way_out = f"write training_job: {{ref: {job.stage}.job_name}}"
        yield Problem("training_job", f"is the name of a job, not what it writes; {way_out}")
    tuning = stage.tuning_job
    if isinstance(tuning, Ref) and tuning.output != "tuning_job_name":
        way_out = f"write tuning_job: {{ref: {tuning.stage}.tuning_job_name}}"
        yield Problem("tuning_job", f"is the name of the whole search; {way_out}")


def _fields(stage: EvaluationFields) -> Iterator[Problem]:
    """Yield the fields that are missing, and those that nothing would come of."""
    subject, idle = stage.subject, list[str]()
    if subject != "checkpoints":
        idle += [name for name in _OF_CHECKPOINTS if not (stage.several and name in _OF_SEVERAL)]
    if subject == "training_job":
        used = _OF_A_RECORDED_DECISION if stage.decided_by_job else ()
        idle += [name for name in (*_OF_A_JOB, *_OF_A_COMPARISON) if name not in used]
        reason = "a training_job's own metrics decide, and no job is started; remove it"
    elif subject == "checkpoints" and stage.recorded is not None:
        used = _OF_A_RECORDED_DECISION if stage.decided_by_job else ()
        idle += [name for name in (*_OF_A_JOB, "champion") if name not in used]
        reason = "the recorded metrics decide, and no job is started; remove it, or recorded"
    else:
        reason = "is for checkpoints, and there is one model; remove it"
        if subject == "tuning_job":
            reason = "is for checkpoints, and best_jobs says how many models there are; remove it"
        for name in _NEEDED:
            if getattr(stage, name) is None:
                yield Problem(name, f"is needed by the job that evaluates the {subject}")
        yield from _program(stage)
        yield from _container(stage)
    for name in idle:
        if getattr(stage, name) != type(stage).model_fields[name].default:
            yield Problem(name, reason)
    usual = type(stage).model_fields["best_jobs"].default
    if subject != "tuning_job" and stage.best_jobs != usual:
        yield Problem("best_jobs", "is for a tuning_job; remove it")


def _program(stage: EvaluationFields) -> Iterator[Problem]:
    if stage.source is None and not stage.command:
        needed = f"is needed by the job that evaluates the {stage.subject}"
        yield Problem("source", f"{needed}; or the command of a container with its own program")
    elif stage.source is not None and stage.command:
        yield Problem("command", "there is a source already, which python3 runs; remove one")


def _container(stage: EvaluationFields) -> Iterator[Problem]:
    if stage.image is None and stage.framework is None:
        needed = f"is needed by the job that evaluates the {stage.subject}"
        yield Problem("image", f"{needed}; or a framework")
    elif None not in (stage.image, stage.framework):
        yield Problem("framework", "there is an image already; remove one of them")
    if stage.framework is not None and stage.framework.model_dir is not None:
        yield Problem("framework.model_dir", "only training scripts receive this; remove it")


def _decided(stage: EvaluationFields) -> Iterator[Problem]:
    """Yield what is wrong with the fields of a job that decides."""
    has_image = stage.report is not None and stage.report.image is not None
    printed = stage.subject == "training_job" and stage.report is not None
    if (stage.recorded is not None or printed) and stage.decided_by_job and not has_image:
        needed = "is needed: no job evaluates, whose container could decide, too"
        yield Problem("report.image", needed)
    for name, group in stage.slices.items():
        for problem in group.problems():
            yield problem.within(f"slices.{name}")
    if stage.champion is not None:
        for problem in stage.champion.problems():
            yield problem.within("champion")
    yield from sizes.problems(stage)
    if stage.failures_allowed and stage.subject == "model":
        yield Problem("failures_allowed", "there is one model; remove it")


def _places(stage: EvaluationFields) -> Iterator[Problem]:
    """Yield the places in documents that are none of one value."""
    # Of a training job, a path is the whole name of a metric.
    if stage.subject != "training_job":
        for name, metric in stage.metrics.items():
            if metric.path is not None:
                yield from places.problems(f"metrics.{name}.path", metric.path)
    for name, group in stage.slices.items():
        if group.path is not None:
            yield from places.problems(f"slices.{name}.path", group.path)
    best = None if stage.select is None else stage.select.best
    if best is not None:
        yield from places.problems("select.best.metric", best.metric)


def _metric(name: str, metric: EvaluationMetric) -> Iterator[Problem]:
    if name in _TAKEN:
        yield Problem("", "results have something else of this name; choose another, with a path")
    yield from metric.problems()


def read_by(stage: EvaluationFields, readers: Sequence[Stage]) -> Iterator[Problem]:
    """Yield the readers of the best model that would take one that has lost."""
    champion = stage.champion
    goes_on = {
        "champion.on_kept": champion is not None and champion.on_kept == "go_on",
        "on_miss" if stage.threshold is None else "threshold.on_miss": stage.miss == "go_on",
    }
    lost = {"champion.on_kept": "the champion is kept"}
    for field in [field for field, is_said in goes_on.items() if is_said]:
        for reader in readers:
            read = {
                each.output
                for _, each in reader.references()
                if isinstance(each, Ref) and each.stage == stage.name
            }
            if reader.when is None and not read.isdisjoint(_MODELS):
                where = lost.get(field, "it misses a bound, or there is none")
                way_out = f"give it when: {_promoted(stage)}"
                message = f"stage {reader.name!r} takes the best also where {where}; {way_out}"
                yield Problem(field, message)


def _promoted(stage: EvaluationFields) -> str:
    if stage.decided_by_job:
        return f"{{equal: [{{ref: {stage.name}.outcome}}, promoted]}}"
    return f"{{ref: {stage.name}.passed}}"


def beside(stage: EvaluationFields, stages: Mapping[str, Stage]) -> Iterator[Problem]:
    """Yield what does not fit the stages that train and serve."""
    yield from _served(stage, stages)
    yield from _trained(stage, stages)
    yield from _packed(stage, stages)


def _served(stage: EvaluationFields, stages: Mapping[str, Stage]) -> Iterator[Problem]:
    """Yield that a stage serves or registers the champion's model at another position."""
    champion = stage.champion
    if champion is None:
        return
    for other in stages.values():
        if not isinstance(other, SequenceFields):
            continue
        served = any(
            place is not None and place == getattr(other, field, None)
            for field, place in (
                ("endpoint_name", champion.endpoint),
                ("package_group", champion.package_group),
            )
        )
        shares = getattr(other, "inference_component", None) is not None
        if served and shares and champion.endpoint and champion.inference_component is None:
            message = f"stage {other.name!r} serves by a component of the endpoint; name that"
            yield Problem("champion.inference_component", message)
            continue
        position = len(other.preprocessing) + 1
        has_model = getattr(other, "model_data", None) is not None
        if served and has_model and champion.container != position:
            message = f"stage {other.name!r} has its model in container {position}; give that"
            yield Problem("champion.container", message)


def _packed(stage: EvaluationFields, stages: Mapping[str, Stage]) -> Iterator[Problem]:
    """Yield that the models of a batch transform have another form than it says."""
    if stage.transform is not None and stage.subject == "checkpoints" and is_archive(stage):
        yield Problem("transform.model_archive", "checkpoints are directories; remove it")
    job = stage.tuning_job
    model = Ref[str](job.stage, "model_artifacts") if isinstance(job, Ref) else stage.model
    if stage.transform is None or model is None:
        return
    is_packed = archives.is_packed(model, stages)
    if is_packed is not None and is_packed is not is_archive(stage):
        form = "a model.tar.gz" if is_packed else "a folder and no model.tar.gz"
        message = f"each model is {form}; give model_archive: {str(is_packed).lower()}"
        yield Problem("transform.model_archive", message)


def _trained(stage: EvaluationFields, stages: Mapping[str, Stage]) -> Iterator[Problem]:
    job = stage.training_job
    if not isinstance(job, Ref) or job.stage not in stages:
        return
    train = stages[job.stage]
    if not isinstance(train, TrainingFields):
        kind = str(getattr(train, "kind", ""))
        if kind in _OTHER_JOBS:
            message = f"stage {job.stage!r} is a {kind}; name a training_job or a tuning_job"
            yield Problem("training_job", message)
        return
    defined = train.defined_metrics
    # Built-in algorithms print metrics that SageMaker knows by itself.
    if train.source is None and not defined:
        return
    for name in dict.fromkeys((stage.metric, *stage.metrics)):
        reported = stage.reported_name(name)
        if reported not in defined:
            path = "metric" if name == stage.metric else f"metrics.{name}"
            yield Problem(
                path,
                f"stage {job.stage!r} defines no metric {reported!r}; give it metrics: "
                f"{{{reported!r}: <regular expression over the log>}}{near(reported, defined)}",
            )
