"""The inputs of a stage with a script, by the names that ``--channel`` gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from orchestration.errors import PipelineError, Problem
from orchestration.refs import Ref, join
from orchestration.stages import Stage
from orchestration.stages.deployment import Deployment
from orchestration.stages.endpoints.updates import EndpointUpdate
from orchestration.stages.evaluation.stage import CheckpointEvaluation
from orchestration.stages.processing.stage import ProcessingJob
from orchestration.stages.serving.transform import BatchTransform
from orchestration.stages.staging import DataStaging
from orchestration.stages.training import TrainingJob
from orchestration.stages.training.channels import FileSystemChannel, S3Channel
from orchestration.stages.tuning import TuningJob
from orchestration.stages.values import Text

_SUBJECTS: Final = ("model", "checkpoints", "data")


@dataclass(frozen=True, slots=True)
class Input:
    """Data that a script reads."""

    name: str
    """The name that ``--channel`` gives it."""
    field: str
    """Its path in the stage."""
    place: str
    """The folder in which the script finds it."""
    uri: Any
    """The S3 URI, or the expression for it."""


def inputs(stage: Stage) -> tuple[Input, ...]:
    """Return the inputs of a stage's script."""
    return tuple(_inputs(stage))


def _inputs(stage: Stage) -> Iterator[Input]:
    match stage:
        case TrainingJob():
            for name, channel in stage.channels.items():
                uri = channel.uri if isinstance(channel, S3Channel) else None
                field = f"channels.{name}{'.uri' if uri is not None else ''}"
                yield Input(name, field, f"/opt/ml/input/data/{name}", uri)
        case ProcessingJob():
            for name, data in stage.inputs.items():
                yield Input(name, f"inputs.{name}.uri", data.place(name), data.uri)
        case CheckpointEvaluation():
            for name in _SUBJECTS:
                uri = getattr(stage, name)
                one = "checkpoint" if name == "checkpoints" else name
                predicts = stage.transform is not None and name != "data"
                place = "/opt/ml/model" if predicts else f"/opt/ml/processing/input/{one}"
                if uri is not None:
                    yield Input(name, name, place, uri)
        case Deployment():
            yield Input("model", "model_data", "/opt/ml/model", stage.model_data)
        case BatchTransform():
            yield Input("model", "model_data", "/opt/ml/model", stage.model_data)
            yield Input("data", "data", "requests to the model", stage.data)
        case _:
            pass


def with_input(stage: Stage, name: str, uri: str) -> Stage:
    """Return the stage with an input at an S3 URI."""
    match stage:
        case TrainingJob():
            return _at(stage, name, uri)
        case ProcessingJob():
            data = stage.inputs[name].model_copy(update={"uri": uri, "data_type": "S3Prefix"})
            return stage.model_copy(update={"inputs": {**stage.inputs, name: data}})
        case Deployment() | BatchTransform() if name == "model":
            given = {"model_data": uri, "model_archive": uri.endswith(".tar.gz")}
            others = {"model_package", "package_group", "model_name"}
            elsewhere = dict.fromkeys(others & type(stage).model_fields.keys())
            return stage.model_copy(update={**given, **elsewhere})
        case _:
            return stage.model_copy(update={name: uri})


def from_s3(stage: Stage, stages: Mapping[str, Stage]) -> Stage:
    """Return the stage with S3 in the place of file systems that staging stages fill from there."""
    if not isinstance(stage, TrainingJob):
        return stage
    for name, channel in stage.channels.items():
        system = channel.file_system if isinstance(channel, FileSystemChannel) else None
        filled = stages.get(system.stage) if isinstance(system, Ref) else None
        if isinstance(filled, DataStaging) and filled.source is not None:
            below = getattr(channel, "path", "")
            stage = _at(stage, name, join(cast(Any, filled.source), below))
    return stage


def _at(stage: TrainingJob, name: str, uri: Text) -> TrainingJob:
    old = stage.channels[name]
    new = old if isinstance(old, S3Channel) else S3Channel(uri=uri)
    here = new.model_copy(update={"uri": uri, "data_type": "S3Prefix"})
    return stage.model_copy(update={"channels": {**stage.channels, name: here}})


def wants_archive(stage: Stage, name: str, stages: Mapping[str, Stage]) -> bool:
    """Return whether an input of a stage is a ``model.tar.gz``, which a folder then becomes."""
    if name != "model":
        return False
    if isinstance(stage, Deployment | BatchTransform):
        return stage.model_archive or stage.model_data is None
    value = getattr(stage, "model", None)
    if not isinstance(value, Ref) or value.stage not in stages:
        return False
    made = stages[value.stage]
    return bool(type(made).outputs.is_archive(made, value.output))


_WITH_SCRIPT: Final = (
    TrainingJob,
    ProcessingJob,
    CheckpointEvaluation,
    BatchTransform,
    Deployment,
)
_AROUND: Final = {
    "for_each": None,
    "when": None,
    "after": (),
    "retry": None,
    "timeout_s": None,
    "spot": None,
    "wait_for_capacity_h": None,
    "experiment": None,
    "vpc": None,
    "threshold": None,
    "champion": None,
    "update": EndpointUpdate(),
    "autoscaling": None,
    "data_capture": None,
}
"""Fields that decide about other jobs, other runs or other models, and are not about a script."""


def without_surroundings(stage: Stage) -> Stage:
    """Return the stage without what is not about its script; raise for one without a script."""
    if isinstance(stage, TuningJob):
        stage = _first_job(stage)
    if not isinstance(stage, _WITH_SCRIPT):
        kind = getattr(stage, "kind", type(stage).__name__)
        message = (
            f"a {kind} has no script of its own; this checks training_job, tuning_job, "
            "processing_job, checkpoint_evaluation, batch_transform and deployment"
        )
        raise PipelineError([Problem("kind", message, stage=stage.name)])
    if isinstance(stage, CheckpointEvaluation) and stage.subject == "training_job":
        message = "reads the metrics of a training job and starts no script; check that stage"
        raise PipelineError([Problem("training_job", message, stage=stage.name)])
    known = {name: value for name, value in _AROUND.items() if name in type(stage).model_fields}
    return stage.model_copy(update=known)


def _first_job(search: TuningJob) -> TrainingJob:
    """Return a training job of a search, with the first value of each range."""
    fields = {name: getattr(search, name) for name in TrainingJob.model_fields if name != "kind"}
    tried = {
        name: (values.categorical or values.integer or values.continuous or (0,))[0]
        for name, values in search.ranges.items()
    }
    objective = search.objective
    metrics = {} if objective.regex is None else {objective.metric: objective.regex}
    return TrainingJob.model_construct(
        **{
            **fields,
            "hyperparameters": {**search.hyperparameters, **tried},
            "metrics": {**search.metrics, **metrics},
        }
    )
