"""A batch transform of the held-back data by each model, whose predictions are then scored.

The model of each is deleted in every case: an evaluation of a thousand checkpoints leaves none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Compare, Result, Tree, join
from orchestration.graph import Adopt, Call, Choose, Graph, Guarded, Output, Step
from orchestration.refs import Expression
from orchestration.stages.evaluation.fields import EvaluationFields, known
from orchestration.stages.evaluation.transform import EvaluationTransform
from orchestration.stages.serving.containers import of_code
from orchestration.stages.serving.fields import TransformSettings
from orchestration.stages.serving.model import EXISTS, ServedModel
from orchestration.stages.serving.transform import BatchTransform
from orchestration.stages.stage import Context

PREDICTIONS: Final = "predictions"
"""The input of the job that scores, and the folder of a run's place that holds all of them."""
_STATUS: Final = "TransformJobStatus"


@dataclass(frozen=True, slots=True)
class Predictor:
    """The maker of predictions: files, a version of the registry, or a model that exists."""

    data: Tree = None
    package: Tree = None
    name: Tree = None


@dataclass(frozen=True, slots=True)
class Predicting:
    """The steps around a job that scores predictions."""

    stage: EvaluationFields
    transform: EvaluationTransform
    context: Context
    """The element's own, so that names differ."""
    predictor: Predictor
    location: Expression[str]
    """S3 URI of the predictions."""

    def around(self, prefix: str, scoring: Call) -> tuple[Step, ...]:
        """Return the steps that make the predictions and score them, one after the other.

        Where the scoring may fail, so may the transform; what it left of them is not scored then.
        """
        steps = self._transformed(prefix, scoring)
        if self.predictor.name is not None:
            # The model serves, and stays.
            return steps
        whole = self._whole()
        deleted = replace(whole.deleted(self.context), name=f"{prefix}.delete", after=())
        guarded = Guarded(
            name=f"{prefix}.{PREDICTIONS}",
            acquire=replace(self._model(whole), name=f"{prefix}.create", after=()),
            body=Graph(steps),
            cleanup=Graph((deleted,)),
        )
        return (guarded,)

    def problems(self) -> Iterator[Problem]:
        """Yield what a batch transform of its own would be refused for."""
        transform = self.transform
        if transform.image is None and transform.framework is None:
            yield Problem("image", "is needed by the models that predict; or a framework")
            return
        if None not in (transform.image, transform.framework):
            yield Problem("framework", "there is an image already; remove one of them")
        of_transform = list(of_code(transform))
        yield from of_transform
        own = {*TransformSettings.model_fields, "framework"}
        try:
            found = list(self._whole().check())
        except PipelineError as error:
            found = list(error.problems)
        further = (each for each in found if each not in of_transform)
        yield from (each for each in further if each.field.partition(".")[0] in own)

    def _transformed(self, prefix: str, scoring: Call) -> tuple[Step, ...]:
        job = replace(self._whole().job(self.context), name=f"{prefix}.transform", after=())
        until = job.until
        if not scoring.may_fail or until is None:
            return job, replace(scoring, after=(job.name,))
        # Of the last of its tries, under whichever name: asking for the first would not do.
        status = Output((_STATUS,), kind="string", default="")
        job = replace(job, may_fail=True, until=replace(until, outputs={"status": status}))
        scored = Choose(
            name=f"{prefix}.scored",
            condition=Compare("eq", Result(job.name, "status"), "Completed"),
            then=Graph((scoring,)),
            otherwise=Graph(),
            after=(job.name,),
        )
        return job, scored

    def _model(self, whole: BatchTransform) -> Call:
        package: Any = self.predictor.package
        if package is None:
            return whole.model(self.context)
        served = ServedModel(data=None, is_archive=False, image="", package=package, vpc=whole.vpc)
        request = served.request(self.stage.name, self.context)
        operation = whole.extra_request.merged("CreateModel", request)
        return Call(name="", operation=operation, adopt=Adopt(exists=EXISTS))

    def _whole(self) -> BatchTransform:
        """Return the batch transform as a stage of its own would be."""
        stage, transform = self.stage, self.transform
        settings = {name: getattr(transform, name) for name in TransformSettings.model_fields}
        if transform.framework is not None:
            region, machines = self.context.region, transform.instance_type
            settings["image"] = transform.framework.registry_path(region, machines, serves=True)
        if self.predictor.name is not None:
            none: dict[str, Any] = {"image": None, "source": None, "environment": {}}
            settings |= {**none, "model_name": self.predictor.name}
        else:
            settings |= {"model_data": self.predictor.data, "vpc": stage.vpc}
            settings["model_archive"] = is_archive(stage)
        return BatchTransform(
            **settings,
            name=stage.name,
            data=known(stage.data),
            output_uri=self.location,
            wait_for_capacity_h=stage.wait_for_capacity_h,
            poll_interval_s=stage.poll_interval_s,
        )


def is_archive(stage: EvaluationFields) -> bool:
    """Return whether the models are archives: those of training jobs are, unless it is said."""
    said = None if stage.transform is None else stage.transform.model_archive
    return stage.subject == "tuning_job" if said is None else said


def of_champion(context: Context) -> Context:
    """Return the context in which the champion has names of its own."""
    element = context.element
    champion = join("/champion") if element is None else join(element, "/champion")
    return replace(context, element=champion)
