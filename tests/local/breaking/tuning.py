"""Requests for tuning jobs that break SageMaker's rules, each of them once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from orchestration.local import EmbeddedAws, Fault
from tests.local.conftest import BUCKET, training_request, wait

_numbers = itertools.count()
SPAN = {"Name": "rate", "MinValue": "0", "MaxValue": "1"}
WORDS = {"Name": "word", "Values": ["a", "b"]}


def tuning_request(name: str, /, **more: Any) -> dict[str, Any]:
    """Return the request of a search whose two training jobs run no script."""
    training = training_request("unused", f"s3://{BUCKET}/code.tar.gz")
    del training["TrainingJobName"]
    training["StaticHyperParameters"] = training.pop("HyperParameters")
    config = {
        "Strategy": "Random",
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 2, "MaxParallelTrainingJobs": 2},
        "ParameterRanges": {"ContinuousParameterRanges": [SPAN]},
        **more.pop("config", {}),
    }
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {k: v for k, v in config.items() if v is not None},
        "TrainingJobDefinition": {**training, **more.pop("definition", {})},
        **more,
    }


def tune(aws: EmbeddedAws, **more: Any) -> str:
    name = str(more.pop("name", f"tuning-{next(_numbers)}"))
    aws.client("sagemaker").create_hyper_parameter_tuning_job(**tuning_request(name, **more))
    return name


def finished(aws: EmbeddedAws, name: str) -> dict[str, Any]:
    """Return the description of a tuning job that has ended."""
    sagemaker = aws.client("sagemaker")
    return wait(
        lambda: sagemaker.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=name),
        lambda job: job["HyperParameterTuningJobStatus"] in ("Completed", "Failed", "Stopped"),
    )


def _tuning(**config: Any) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: tune(aws, config=config)


def _ranged(**fields: str) -> Callable[[EmbeddedAws], Any]:
    return _tuning(ParameterRanges={"ContinuousParameterRanges": [{**SPAN, **fields}]})


def _grid(jobs: int, **ranges: Any) -> Callable[[EmbeddedAws], Any]:
    limits = {"MaxNumberOfTrainingJobs": jobs, "MaxParallelTrainingJobs": 1}
    return _tuning(Strategy="Grid", ResourceLimits=limits, ParameterRanges=ranges)


def _hyperband(most: int | None = None, **config: Any) -> Callable[[EmbeddedAws], Any]:
    resources = {} if most is None else {"MaxResource": most}
    strategy = {"HyperbandStrategyConfig": resources}
    return _tuning(**{"Strategy": "Hyperband", "StrategyConfig": strategy, **config})


def _twice(aws: EmbeddedAws) -> None:
    aws.inject(Fault.job("tuning-twice"))
    name = tune(aws, name="tuning-twice")
    finished(aws, name)
    tune(aws, name=name)


def _child(name: str) -> dict[str, Any]:
    parents = [{"HyperParameterTuningJobName": name}]
    kind = "IdenticalDataAndAlgorithm"
    return {"WarmStartConfig": {"ParentHyperParameterTuningJobs": parents, "WarmStartType": kind}}


def _of_running(aws: EmbeddedAws) -> None:
    aws.inject(Fault.capacity("tuning-parent", after_s=1e6))
    name = tune(aws, name="tuning-parent")
    try:
        tune(aws, **_child(name))
    finally:
        stop = aws.client("sagemaker").stop_hyper_parameter_tuning_job
        stop(HyperParameterTuningJobName=name)
        finished(aws, name)


BREAKING: dict[str, Callable[[EmbeddedAws], Any]] = {
    "tuning names once": _twice,
    "objective is required": _tuning(HyperParameterTuningJobObjective=None),
    "something is tuned": _tuning(ParameterRanges={}),
    "30 ranges": _tuning(
        ParameterRanges={
            "CategoricalParameterRanges": [{**WORDS, "Name": f"w{n}"} for n in range(16)],
            "ContinuousParameterRanges": [{**SPAN, "Name": f"s{n}"} for n in range(15)],
        }
    ),
    "tuned once": _tuning(
        ParameterRanges={
            "CategoricalParameterRanges": [{**WORDS, "Name": "rate"}],
            "ContinuousParameterRanges": [SPAN],
        }
    ),
    "ranges ascend": _ranged(MinValue="2"),
    "logarithms above 0": _ranged(ScalingType="Logarithmic"),
    "reverse logarithms below 1": _ranged(ScalingType="ReverseLogarithmic"),
    "grids are categorical": _grid(1, ContinuousParameterRanges=[SPAN]),
    "jobs of a grid": _grid(3, CategoricalParameterRanges=[WORDS]),
    "resources of Hyperband": _hyperband(9, Strategy="Random"),
    "Hyperband stops jobs itself": _hyperband(9, TrainingJobEarlyStoppingType="Auto"),
    "Hyperband knows its epochs": _hyperband(),
    "20,000 epochs": _hyperband(20_001),
    "parents exist": lambda aws: tune(aws, **_child("no-such-job")),
    "parents have ended": _of_running,
}
"""How each rule is broken."""
