"""V2's tuners against tuning jobs: the same request, field by field.

Needs an environment with V2 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestration import TuningJob
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.sagemaker_sdk import from_estimator
from orchestration.stages.tuning.request import request
from tests.sdk import v2
from tests.sdk.capture import JOB, S3, Recorder, generation
from tests.sdk.comparing import CONTEXT, RUN
from tests.sdk.options import IMAGE

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)

OBJECTIVE: dict[str, Any] = {"metric": "loss", "direction": "min", "regex": "loss=([0-9.]+)"}
OWN = ("sagemaker_estimator_class_name", "sagemaker_estimator_module")
"""Hyperparameters by which the SDK finds the class of the estimator again."""
DIFFERENT = ("sagemaker_job_name", "sagemaker_submit_directory")


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("code")
    (folder / "train.py").write_text("print('training')\n")
    recorder = Recorder()
    names = v2.names(folder)
    return SimpleNamespace(**names, recorder=recorder, session=v2.session(recorder))


def script(sdk: Any, **more: Any) -> Any:
    where = sdk.common(sdk.session, framework_version="2.8.0", py_version="py312", **more)
    machines = {"instance_type": "ml.m5.xlarge", "instance_count": 1}
    return sdk.PyTorch(hyperparameters={"epochs": 3, "mode": "a b"}, **where, **machines)


def algorithm(sdk: Any) -> Any:
    return sdk.Estimator(
        IMAGE,
        sdk.ROLE,
        1,
        "ml.m5.xlarge",
        hyperparameters={"epochs": 3},
        sagemaker_session=sdk.session,
    )


def both(sdk: Any, estimator: Any, tuner: dict[str, Any], **fields: Any) -> tuple[Any, Any]:
    """Return the SDK's request and that of the tuning job, without what has to differ."""
    sdk.recorder.requests.clear()
    metrics = [{"Name": "loss", "Regex": OBJECTIVE["regex"]}]
    made = sdk.HyperparameterTuner(
        estimator, "loss", objective_type="Minimize", metric_definitions=metrics, **tuner
    )
    made.fit({"training": S3}, job_name=JOB, wait=False)
    train = from_estimator(estimator, {"training": S3}, name="train")
    # A tuning job's training jobs have neither debugger nor profiler.
    set_there = train.model_fields_set - {"kind", "debugger", "profiler", "metrics_time_series"}
    written = {name: getattr(train, name) for name in set_there}
    given = {**written, "objective": OBJECTIVE, **fields}
    stage = TuningJob.model_validate(given)
    sent = evaluate(request(stage, CONTEXT), Values({}, {}, run_token=RUN))
    theirs, ours = sdk.recorder.request, cast("dict[str, Any]", sent)
    for each in (theirs, ours):
        each.pop("HyperParameterTuningJobName")
        each.pop("Tags", None)
        definition = each["TrainingJobDefinition"]
        definition.pop("OutputDataConfig")
        for name in (*OWN, *DIFFERENT):
            definition["StaticHyperParameters"].pop(name, None)
        # The SDK says what is so by default.
        for ranges in each["HyperParameterTuningJobConfig"]["ParameterRanges"].values():
            for entry in ranges:
                if entry.get("ScalingType") == "Auto":
                    del entry["ScalingType"]
    # Both fields can hold machines of one type; the SDK takes the newer one throughout.
    machines = theirs["TrainingJobDefinition"].pop("HyperParameterTuningResourceConfig")
    theirs["TrainingJobDefinition"]["ResourceConfig"] = machines
    config = theirs["HyperParameterTuningJobConfig"]
    config["ParameterRanges"] = {k: v for k, v in config["ParameterRanges"].items() if v}
    return theirs, ours


def test_a_framework_s_search_is_sent_alike(sdk: Any) -> None:
    estimator = script(
        sdk,
        use_spot_instances=True,
        max_run=3600,
        max_wait=7200,
        checkpoint_s3_uri="s3://my-bucket/checkpoints",
        environment={"A": "1"},
    )
    ranges = {
        "rate": sdk.ContinuousParameter(1e-5, 0.1, scaling_type="Logarithmic"),
        "momentum": sdk.ContinuousParameter(0.5, 0.9, scaling_type="ReverseLogarithmic"),
        "batch": sdk.IntegerParameter(16, 128),
        "optimizer": sdk.CategoricalParameter(["adam", "sgd"]),
        "layers": sdk.CategoricalParameter(["few"]),
    }
    criteria = sdk.TuningJobCompletionCriteriaConfig(
        max_number_of_training_jobs_not_improving=3,
        complete_on_convergence=True,
        target_objective_metric_value=0.1,
    )
    warm = sdk.WarmStartConfig(sdk.WarmStartTypes.TRANSFER_LEARNING, parents=["before"])
    theirs, ours = both(
        sdk,
        estimator,
        {
            "hyperparameter_ranges": ranges,
            "max_jobs": 20,
            "max_parallel_jobs": 4,
            "max_runtime_in_seconds": 7200,
            "early_stopping_type": "Auto",
            "random_seed": 7,
            "completion_criteria_config": criteria,
            "warm_start_config": warm,
        },
        ranges={
            "rate": {"continuous": [1e-5, 0.1], "scaling": "logarithmic"},
            "momentum": {"continuous": [0.5, 0.9], "scaling": "reverse_logarithmic"},
            "batch": {"integer": [16, 128]},
            "optimizer": {"categorical": ["adam", "sgd"]},
            "layers": {"categorical": ["few"]},
        },
        limits={"jobs": 20, "parallel": 4, "runtime_s": 7200},
        early_stopping=True,
        seed=7,
        end={"objective": 0.1, "not_improving": 3, "converged": True},
        warm_start={"parents": ["before"], "type": "transfer"},
    )
    assert json.dumps(ours, sort_keys=True, indent=1) == json.dumps(
        theirs, sort_keys=True, indent=1
    )


def test_a_grid_of_an_image_is_sent_alike(sdk: Any) -> None:
    ranges = {
        "word": sdk.CategoricalParameter(["a", "b"]),
        "number": sdk.CategoricalParameter([1, 2]),
    }
    theirs, ours = both(
        sdk,
        algorithm(sdk),
        {"hyperparameter_ranges": ranges, "strategy": "Grid", "max_jobs": 4},
        ranges={"word": {"categorical": ["a", "b"]}, "number": {"categorical": [1, 2]}},
        search="grid",
        limits={"jobs": 4},
    )
    assert ours == theirs


def test_hyperband_is_sent_alike(sdk: Any) -> None:
    resources = sdk.HyperbandStrategyConfig(max_resource=9, min_resource=1)
    theirs, ours = both(
        sdk,
        algorithm(sdk),
        {
            "hyperparameter_ranges": {"rate": sdk.ContinuousParameter(0.0, 1.0)},
            "strategy": "Hyperband",
            "strategy_config": sdk.StrategyConfig(hyperband_strategy_config=resources),
            "max_jobs": 3,
        },
        ranges={"rate": {"continuous": [0, 1]}},
        search="hyperband",
        hyperband={"max_resource": 9, "min_resource": 1},
        limits={"jobs": 3},
    )
    assert ours == theirs
