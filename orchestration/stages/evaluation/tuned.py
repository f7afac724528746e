"""The best training jobs of a tuning job, whose models are evaluated.

SageMaker ranks them by the objective, and lists none that has not given it:
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ListTrainingJobsForHyperParameterTuningJob.html
"""

from __future__ import annotations

from typing import Final

from orchestration.expressions import Any, Compare, Function, Item, Result, Tree, apply, field, join
from orchestration.graph import Call, Choose, ForEach, Graph, Operation, Output, Require, Step
from orchestration.refs import Expression
from orchestration.stages.evaluation.fields import EvaluationFields, known

JOB: Final = "training_job"
MODEL: Final = "model"
"""The fields of an element: a training job's name, and the S3 URI of the model that it wrote."""
_NAME: Final = "TrainingJobName"
_AT_A_TIME: Final = 10


def steps(stage: EvaluationFields) -> tuple[Step, ...]:
    """Return the steps that find the training jobs and their models."""
    described, ranked = _described(stage), _ranked(stage)
    return described, ranked, _some(stage, ranked.name), _models(stage)


def models(stage: EvaluationFields) -> Expression[object]:
    """Return the elements, the best first."""
    return Result(last(stage), "items")


def last(stage: EvaluationFields) -> str:
    """Return the name of the step after which the evaluations begin."""
    return f"{stage.name}.models"


def _described(stage: EvaluationFields) -> Call:
    """Return the question which way the objective points, so that nobody has to say it again."""
    named = ("HyperParameterTuningJobConfig", "HyperParameterTuningJobObjective", "Type")
    # A search over several algorithms has an objective for each: SageMaker's SDK gives them metrics
    # of their own, and one direction for all (HyperparameterTuner.create).
    first = ("TrainingJobDefinitions", 0, "TuningObjective", "Type")
    return Call(
        name=f"{stage.name}.tuning",
        operation=Operation("sagemaker", "DescribeHyperParameterTuningJob", _named(stage)),
        outputs={
            "objective": Output(named, kind="string", default=""),
            "first_objective": Output(first, kind="string", default=""),
        },
    )


def _ranked(stage: EvaluationFields) -> Choose:
    down, up = _listed(stage, "Descending"), _listed(stage, "Ascending")
    objectives = [Result(f"{stage.name}.tuning", name) for name in ("objective", "first_objective")]
    return Choose(
        name=f"{stage.name}.ranked",
        condition=Any(tuple(Compare("eq", each, "Maximize") for each in objectives)),
        then=Graph((down,)),
        otherwise=Graph((up,)),
        collect={"found": Result(down.name, "found")},
        absent={"found": Result(up.name, "found")},
        after=(f"{stage.name}.tuning",),
    )


def _listed(stage: EvaluationFields, order: str) -> Call:
    request: dict[str, Tree] = {
        **_named(stage),
        "StatusEquals": "Completed",
        "SortBy": "FinalObjectiveMetricValue",
        "SortOrder": order,
        "MaxResults": stage.best_jobs,
    }
    jobs = Output(
        ("TrainingJobSummaries",), kind="list", columns=(_NAME,), texts=(_NAME,), default=()
    )
    return Call(
        name=f"{stage.name}.{order.lower()}",
        operation=Operation("sagemaker", "ListTrainingJobsForHyperParameterTuningJob", request),
        outputs={"found": jobs},
    )


def _some(stage: EvaluationFields, ranked: str) -> Require:
    return Require(
        name=f"{stage.name}.usable",
        condition=Compare("gt", apply(Function.COUNT, Result(ranked, "found")), 0),
        error="NoTrainingJobCompleted",
        cause=join(
            f"stage {stage.name}: no training job of ",
            known(stage.tuning_job),
            " completed with the objective",
        ),
        after=(ranked,),
    )


def _models(stage: EvaluationFields) -> ForEach:
    described = Call(
        name=f"{last(stage)}.describe",
        operation=Operation("sagemaker", "DescribeTrainingJob", {_NAME: field(Item(), _NAME)}),
        outputs={MODEL: Output(("ModelArtifacts", "S3ModelArtifacts"), kind="string")},
    )
    return ForEach(
        name=last(stage),
        items=Result(f"{stage.name}.ranked", "found"),
        body=Graph((described,)),
        collect={JOB: field(Item(), _NAME), MODEL: Result(described.name, MODEL)},
        max_concurrency=_AT_A_TIME,
        at_most=stage.best_jobs,
        after=(f"{stage.name}.usable",),
    )


def _named(stage: EvaluationFields) -> dict[str, Tree]:
    return {"HyperParameterTuningJobName": stage.tuning_job}
