"""The metrics that a training job has printed, as SageMaker keeps them.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_MetricData.html
"""

from __future__ import annotations

from orchestration.expressions import Best, Compare, Function, Result, Tree, apply, field, join
from orchestration.graph import Call, Operation, Output, Require
from orchestration.refs import Expression
from orchestration.stages.evaluation.fields import EvaluationFields, known

_NAME, _VALUE = "MetricName", "Value"


def described(stage: EvaluationFields) -> Call:
    """Return the step that asks for the last values of the training job's metrics."""
    name = {"TrainingJobName": stage.training_job}
    return Call(
        name=_call(stage),
        operation=Operation("sagemaker", "DescribeTrainingJob", name),
        outputs={
            "metrics": Output(
                ("FinalMetricDataList",),
                kind="list",
                columns=(_NAME, _VALUE),
                texts=(_NAME,),
                default=(),
            ),
            "model": Output(("ModelArtifacts", "S3ModelArtifacts"), default=None),
        },
    )


def recorded(stage: EvaluationFields) -> tuple[Require, ...]:
    """Return the requirements that each metric has a number."""
    before, steps = _call(stage), list[Require]()
    for column, name in stage.measured().items():
        required = Require(
            name=f"{stage.name}.has_{column}",
            condition=Compare("gt", apply(Function.COUNT, _numbers(stage, name)), 0),
            error="MetricMissing",
            cause=join(
                f"stage {stage.name}: training job ",
                known(stage.training_job),
                f" has no number for the metric {stage.reported_name(name)}",
            ),
            after=(before,),
        )
        steps.append(required)
        before = required.name
    return tuple(steps)


def values(stage: EvaluationFields) -> dict[str, Tree]:
    """Return the metrics, by their names in ``results``."""
    return {
        column: field(Best(_numbers(stage, name), _VALUE, "max"), _VALUE)
        for column, name in stage.measured().items()
    }


def report(stage: EvaluationFields, uri: Tree, after: str) -> Call:
    """Return the step that writes the metrics where the job that decides reads a report."""
    metrics = values(stage)
    request: dict[str, Tree] = {
        "Bucket": apply(Function.S3_BUCKET, uri),
        "Key": apply(Function.S3_KEY, uri),
        "Body": {"metrics": {name: metrics[column] for column, name in stage.measured().items()}},
        "ContentType": "application/json",
    }
    put = Operation("s3", "PutObject", request)
    return Call(name=f"{stage.name}.recorded", operation=put, after=(after,))


def model(stage: EvaluationFields) -> Tree:
    """Return the S3 URI of the model that the training job has written."""
    return Result(_call(stage), "model")


def _call(stage: EvaluationFields) -> str:
    return f"{stage.name}.describe"


def _numbers(stage: EvaluationFields, name: str) -> Expression[object]:
    """Return what the job has for a metric: one entry, or none if it was never printed."""
    listed = apply(Function.NUMBERED, Result(_call(stage), "metrics"), _VALUE)
    return apply(Function.WHERE, listed, _NAME, "eq", stage.reported_name(name))
