"""``tuning_job``: its requests, its outputs, and what is refused before anything runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from orchestration import Pipeline, PipelineError, Ref, TrainingJob, TuningJob
from orchestration.cleanup import leftovers
from orchestration.deploy import permissions
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, ForEach, Require, Step, all_steps
from orchestration.stages.tuning.request import DEFINITION
from tests.deploy.pipelines import ACCOUNT
from tests.guides import TUNING, shown
from tests.pipeline.building import IMAGE

CODE = {"entry_point": "train.py", "uri": "s3://code/sourcedir.tar.gz"}
TUNE: dict[str, Any] = {
    "kind": "tuning_job",
    "image": IMAGE,
    "source": CODE,
    "cluster": {"instance_type": "ml.m5.xlarge"},
    "hyperparameters": {"epochs": 3},
    "objective": {"metric": "accuracy", "direction": "max", "regex": "accuracy=([0-9.]+)"},
    "ranges": {
        "learning_rate": {"continuous": [0.0001, 0.1], "scaling": "logarithmic"},
        "batch-size": {"integer": [16, 128]},
        "optimizer": {"categorical": ["adam", "sgd"]},
    },
    "limits": {"jobs": 8, "parallel": 2},
}
SEVEN = {f"range_{n}": {"categorical": [1, 2]} for n in range(31)}
_JOB = {"image": IMAGE, "data": "s3://bucket/data", "instance_type": "ml.m5.large"}
_MODEL = {**_JOB, "model_data": {"ref": "tune.model_artifacts"}, "model_archive": True}
_JUDGE = {"kind": "checkpoint_evaluation", "metric": "accuracy", "direction": "max"}
_SCRIPT = {"entry_point": "evaluate.py", "uri": "s3://code/evaluation"}
USERS: list[dict[str, Any]] = [
    {"kind": "batch_transform", **_MODEL, "content_type": "text/csv"},
    {"kind": "deployment", **{k: v for k, v in _MODEL.items() if k != "data"}},
    {**_JUDGE, **_JOB, "source": _SCRIPT, "model": {"ref": "tune.model_artifacts"}},
    {**_JUDGE, "training_job": {"ref": "tune.job_name"}},
    {
        "kind": "training_job",
        "image": IMAGE,
        "cluster": {"instance_type": "ml.m5.large"},
        "channels": {"model": {"ref": "tune.model_artifacts"}},
        "for_each": {"items": ["de", "fr"]},
        "hyperparameters": {"market": {"each": "item"}},
    },
]
_TUNING = {
    f"sagemaker:{verb}HyperParameterTuningJob" for verb in ("Create", "Describe", "Stop")
} | {"sagemaker:AddTags"}


def pipeline(*, name: str = "digits", **stages: Any) -> Pipeline:
    return Pipeline.parse(
        {
            "name": name,
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "role": "arn:aws:iam::111122223333:role/training",
            "parameters": {"jobs": {"type": "number", "default": 3}},
            "stages": stages,
        }
    )


def changed(**fields: Any) -> dict[str, Any]:
    whole = {**TUNE, **fields}
    return {name: value for name, value in whole.items() if value is not None}


def steps(**fields: Any) -> dict[str, Step]:
    lowered = pipeline(tune=changed(**fields)).lower()
    return {step.name: step for step in all_steps(lowered.graph)}


def call(step: Step) -> Call:
    assert isinstance(step, Call)
    return step


def sent(**fields: Any) -> Any:
    request = call(steps(**fields)["tune.job"]).operation.request
    return evaluate(request, Values({}, {}, run_token="0123456789ab"))


def problems(**fields: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(tune=changed(**fields))
    return [str(problem) for problem in error.value.problems]


def test_the_request_tells_the_search_and_the_training_jobs() -> None:
    request = sent(checkpoints={}, seed=7, early_stopping=True)
    assert request["HyperParameterTuningJobName"] == "digits-tune-0123456789ab"
    config = request["HyperParameterTuningJobConfig"]
    assert config["HyperParameterTuningJobObjective"] == {
        "Type": "Maximize",
        "MetricName": "accuracy",
    }
    assert config["ParameterRanges"] == {
        "ContinuousParameterRanges": [
            {
                "Name": "learning_rate",
                "MinValue": "0.0001",
                "MaxValue": "0.1",
                "ScalingType": "Logarithmic",
            }
        ],
        "IntegerParameterRanges": [{"Name": "batch-size", "MinValue": "16", "MaxValue": "128"}],
        # As the training toolkit reads them.
        "CategoricalParameterRanges": [{"Name": "optimizer", "Values": ['"adam"', '"sgd"']}],
    }
    assert (config["Strategy"], config["RandomSeed"]) == ("Bayesian", 7)
    assert config["TrainingJobEarlyStoppingType"] == "Auto"
    definition = request["TrainingJobDefinition"]
    assert definition["AlgorithmSpecification"]["MetricDefinitions"] == [
        {"Name": "accuracy", "Regex": "accuracy=([0-9.]+)"}
    ]
    assert definition["StaticHyperParameters"]["epochs"] == "3"
    assert "learning_rate" not in definition["StaticHyperParameters"]
    assert definition["CheckpointConfig"]["S3Uri"].endswith("/tune/checkpoints")
    assert definition.keys() <= {*DEFINITION, "StaticHyperParameters"}


def test_the_definition_takes_every_field_that_botocore_knows_of_both() -> None:
    import botocore.session

    model = botocore.session.Session().get_service_model("sagemaker")
    definition = model.shape_for("HyperParameterTrainingJobDefinition").members
    training = model.operation_model("CreateTrainingJob").input_shape.members
    assert definition.keys() & training.keys() == DEFINITION
    own = definition["AlgorithmSpecification"].members
    lacking = training["AlgorithmSpecification"].members.keys() - own.keys()
    assert {"ContainerEntrypoint", "ContainerArguments", "EnableSageMakerMetricsTimeSeries"} <= (
        lacking
    )


def test_every_way_to_search_and_to_end_is_sent() -> None:
    grid = {"a": {"categorical": [1, 2]}, "b": {"categorical": [True, 0.5, "x"]}}
    request = sent(
        source=None,
        ranges=grid,
        search="grid",
        limits={"jobs": 6, "runtime_s": 3600},
        end={"objective": 0.9, "not_improving": 3, "converged": True},
        warm_start={"parents": ["digits-tune-before"], "type": "transfer"},
        extra_request={"Autotune": {"Mode": "Enabled"}},
    )
    config = request["HyperParameterTuningJobConfig"]
    assert config["Strategy"] == "Grid"
    values = [each["Values"] for each in config["ParameterRanges"]["CategoricalParameterRanges"]]
    # As the SageMaker Python SDK sends them to images without the toolkit: Python's str().
    assert values == [["1", "2"], ["True", "0.5", "x"]]
    assert config["ResourceLimits"] == {
        "MaxNumberOfTrainingJobs": 6,
        "MaxParallelTrainingJobs": 1,
        "MaxRuntimeInSeconds": 3600,
    }
    assert config["TuningJobCompletionCriteria"] == {
        "TargetObjectiveMetricValue": 0.9,
        "BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": 3},
        "ConvergenceDetected": {"CompleteOnConvergence": "Enabled"},
    }
    assert request["WarmStartConfig"] == {
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "digits-tune-before"}],
        "WarmStartType": "TransferLearning",
    }
    assert request["Autotune"] == {"Mode": "Enabled"}
    assert call(steps(limits={"jobs": 6, "runtime_s": 3600})["tune.job"]).until.timeout_s == 7200  # type: ignore[union-attr]
    hyperband = sent(search="hyperband", hyperband={"min_resource": 1, "max_resource": 9})
    assert hyperband["HyperParameterTuningJobConfig"]["StrategyConfig"] == {
        "HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}
    }


def test_preferred_machines_are_those_that_sagemaker_tries_in_order() -> None:
    preferences = [{"instance_type": "ml.g5.xlarge"}, {"instance_type": "ml.g4dn.xlarge"}]
    definition = sent(cluster={"preferences": preferences})["TrainingJobDefinition"]
    assert "ResourceConfig" not in definition
    assert definition["HyperParameterTuningResourceConfig"] == {
        "AllocationStrategy": "Prioritized",
        "InstanceConfigs": [
            {"InstanceType": name, "InstanceCount": 1, "VolumeSizeInGB": 30}
            for name in ("ml.g5.xlarge", "ml.g4dn.xlarge")
        ],
    }


def test_names_are_short_and_tell_stages_apart() -> None:
    def named(stage: str) -> str:
        lowered = pipeline(name="house-prices", **{stage: TUNE}).lower()
        request = call(lowered.graph.steps[0]).operation.request
        values = Values({}, {}, run_token="0123456789ab")
        return str(evaluate(request["HyperParameterTuningJobName"], values))

    first, second = named("tune_wide_model"), named("tune_deep_model")
    assert first != second
    for name in (first, second):
        # A job that is started anew gets a number of up to two digits.
        assert len(name) <= 32 - len("-99")
        assert name.startswith("house-price-")
        assert name.endswith("-0123456789ab")


def test_each_element_of_a_loop_has_a_search_of_its_own() -> None:
    lowered = pipeline(tune=changed(for_each={"items": ["de", "fr"]})).lower()
    [loop] = [step for step in lowered.graph.steps if isinstance(step, ForEach)]
    [created] = [step for step in loop.body.steps if step.name == "tune.job"]
    tree = call(created).operation.request["HyperParameterTuningJobName"]
    names = {evaluate(tree, Values({}, {}, current=element)) for element in ("de", "fr")}
    assert len(names) == 2
    assert {len(str(name)) for name in names} == {len("digits-tune-0123456789ab")}


def test_the_best_job_gives_the_outputs() -> None:
    job = {"image": IMAGE, "cluster": {"instance_type": "ml.m5.xlarge"}}
    read = {
        **job,
        "kind": "training_job",
        "hyperparameters": {"lr": {"ref": "tune.best_optimizer"}},
    }
    lowered = pipeline(tune=changed(checkpoints={}), train=read).lower()
    outputs: Any = lowered.outputs["tune"]
    assert set(outputs) == {
        *("job_name", "model_artifacts", "objective", "tuning_job_name"),
        # Of ``batch-size`` no output can be called.
        *("best_learning_rate", "best_optimizer"),
    }
    stage = TuningJob.model_validate({"name": "tune", **TUNE})
    assert stage.outputs.best_optimizer == Ref("tune", "best_optimizer")
    with pytest.raises(AttributeError, match="no output 'model'"):
        _ = stage.outputs.model
    with pytest.raises(PipelineError, match="has no output 'best_momentum'; there is best_"):
        pipeline(
            tune=TUNE, train={**read, "hyperparameters": {"lr": {"ref": "tune.best_momentum"}}}
        )
    with pytest.raises(PipelineError, match="give it checkpoints: "):
        pipeline(tune=TUNE, train={**read, "hyperparameters": {"at": {"ref": "tune.checkpoints"}}})


@pytest.mark.parametrize("user", USERS)
def test_other_stages_take_its_outputs_as_those_of_a_training_job(user: dict[str, Any]) -> None:
    train = {key: value for key, value in TUNE.items() if key in TrainingJob.model_fields}
    train |= {"kind": "training_job", "metrics": {"accuracy": "accuracy=([0-9.]+)"}}
    kinds = {"training_job": train, "tuning_job": TUNE}
    lowered = []
    for stage in kinds.values():
        whole = pipeline(tune={**stage, "checkpoints": {}}, use=user).lower()
        own = [step for step in all_steps(whole.graph) if step.name.startswith("use.")]
        # The step that gives an output is another one.
        lowered.append(re.sub(r"'tune\.\w+'", "'tune'", repr(own)))
    assert lowered[0] == lowered[1]
    assert "Result(step='tune'" in lowered[0]


def test_a_hyperparameter_may_have_any_name() -> None:
    ranges = {name: {"integer": [1, 9]} for name in ("job", "job_name", "objective")}
    until = call(steps(ranges=ranges)["tune.job"]).until
    assert until is not None
    tuned = ("BestTrainingJob", "TunedHyperParameters")
    assert until.outputs["job_name"].path == ("BestTrainingJob", "TrainingJobName")
    for name in ranges:
        assert until.outputs[f"best_{name}"].path == (*tuned, name)


def test_a_search_without_a_best_job_fails_with_the_counts() -> None:
    chosen = steps()["tune.chosen"]
    assert isinstance(chosen, Require)
    counts = {"training_jobs_completed": 1, "failed": 2, "failed_inside_sagemaker": 0, "stopped": 3}
    none = Values({"tune.job": {"job_name": "", **counts}}, {})
    assert evaluate(chosen.condition, none) is False
    assert chosen.error == "NoTrainingJobCompleted"
    assert evaluate(chosen.cause, none) == (
        "no training job of stage tune completed with the objective accuracy; 1 training jobs "
        "completed, 2 failed, 0 failed inside SageMaker, 3 stopped"
    )


def test_time_and_cost_follow_from_the_limits() -> None:
    until = call(steps(max_runtime_s=3600)["tune.job"]).until
    assert until is not None
    assert until.timeout_s == 4 * (3600 + 3600)
    facts = list(pipeline(tune=changed(max_runtime_s=3600)).stages[0].facts())
    assert "up to 8 training jobs, 8 h of its cluster at the most" in facts
    unknown = call(steps(limits={"jobs": {"parameter": "jobs"}})["tune.job"]).until
    assert unknown is not None
    assert unknown.timeout_s == 30 * 86_400


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"source": None, "entrypoint": ["train"]},
            "entrypoint: the training jobs of a tuning job have no such field; put it into the "
            "image, or give a source",
        ),
        ({"metrics_time_series": True}, "metrics_time_series: the training jobs of a tuning job"),
        ({"debugger": {}}, "debugger: the training jobs of a tuning job have no such field"),
        ({"profiler": {"enabled": False}}, "profiler: the training jobs of a tuning job have no"),
        ({"tensorboard": {"uri": "s3://b/t"}}, "tensorboard: the training jobs of a tuning job"),
        ({"experiment": {"name": "e"}}, "experiment: the training jobs of a tuning job have no"),
        ({"wait_for_capacity_h": 1}, "wait_for_capacity_h: a tuning job is requested once"),
        (
            {
                "cluster": {
                    "instance_type": "ml.g5.xlarge",
                    "fallbacks": [{"instance_type": "ml.g4dn.xlarge"}],
                }
            },
            "cluster.fallbacks: the training jobs of a tuning job have none; give preferences",
        ),
        (
            {
                "cluster": {
                    "preferences": [{"instance_type": "ml.g5.xlarge"}],
                    "keep_alive_s": 60,
                }
            },
            "cluster.keep_alive_s: can't be had with preferences in a tuning job; remove it",
        ),
        (
            {"objective": {"metric": "loss", "direction": "min"}},
            "objective.regex: is needed to find 'loss' in the log of the script",
        ),
        (
            {"objective": {"metric": "loss", "direction": "min", "regex": "loss"}},
            "objective.regex: 'loss' has no group around the value",
        ),
        (
            {"metrics": {"accuracy": "a=(.*)"}},
            "objective.regex: metrics has a regex of 'accuracy', too; remove one",
        ),
        ({"ranges": {}}, "ranges: "),
        ({"ranges": SEVEN}, "ranges: has 31 entries; the most is 30"),
        (
            {"ranges": {"a": {}}},
            "ranges.a: expected one of continuous, integer, categorical, got none",
        ),
        (
            {"ranges": {"a": {"integer": [1, 2], "categorical": [1]}}},
            "ranges.a: expected one of continuous, integer, categorical, got integer and",
        ),
        (
            {"ranges": {"a": {"integer": [2, 2]}}},
            "ranges.a.integer: expected the smaller number first, got [2, 2]",
        ),
        ({"ranges": {"a": {"categorical": []}}}, "ranges.a.categorical: expected 1 to 30 values"),
        ({"ranges": {"a": {"categorical": [1, 1]}}}, "ranges.a.categorical: names 1 twice"),
        (
            {"ranges": {"a": {"categorical": [1], "scaling": "linear"}}},
            "ranges.a.scaling: categorical values have no scale; remove it",
        ),
        (
            {"ranges": {"a": {"continuous": [0, 1], "scaling": "logarithmic"}}},
            "ranges.a.scaling: logarithmic takes numbers above 0 only",
        ),
        (
            {"ranges": {"a": {"continuous": [0, 1], "scaling": "reverse_logarithmic"}}},
            "ranges.a.scaling: reverse_logarithmic takes numbers from 0 to below 1",
        ),
        (
            {"ranges": {"a": {"integer": [0, 1], "scaling": "reverse_logarithmic"}}},
            "ranges.a.scaling: reverse_logarithmic is for continuous ranges",
        ),
        (
            {"ranges": {"epochs": {"integer": [1, 2]}}},
            "ranges.epochs: hyperparameters has a value of it, too; remove one of them",
        ),
        (
            {"ranges": {"sagemaker_program": {"categorical": ["a", "b"]}}},
            "ranges.sagemaker_program: names with sagemaker_ are the toolkit's",
        ),
        (
            {"ranges": {"_tuning_objective_metric": {"integer": [1, 2]}}},
            "ranges._tuning_objective_metric: is a name of SageMaker's own",
        ),
        (
            {"search": "grid", "limits": {}},
            "ranges.learning_rate: grid search takes categorical values only",
        ),
        (
            {"search": "grid", "ranges": {"a": {"categorical": [1, 2]}}},
            "limits.jobs: expected 2, one for each combination, got 8; remove it",
        ),
        ({"limits": {}}, "limits.jobs: is needed: the training jobs to pay for at the most"),
        (
            {"limits": {"jobs": 2, "parallel": 3}},
            "limits.parallel: expected at most 2, all jobs, got 3",
        ),
        ({"hyperband": {}}, "hyperband: search is bayesian; remove it, or search: hyperband"),
        (
            {"search": "hyperband", "early_stopping": True},
            "early_stopping: hyperband stops training jobs by itself; remove it",
        ),
        (
            {"search": "hyperband", "hyperparameters": {}},
            "hyperband.max_resource: is needed: the epochs of a whole training",
        ),
        (
            {"search": "hyperband", "hyperband": {"min_resource": 3, "max_resource": 2}},
            "hyperband.min_resource: expected at most 2, got 3",
        ),
        (
            {"extra_request": {"HyperParameterTuningJobConfig": {"Strategy": "Random"}}},
            "extra_request: extra_request.HyperParameterTuningJobConfig.Strategy is already set",
        ),
        # The training jobs' own rules.
        ({"spot": {"max_wait_s": 60}}, "spot.max_wait_s: 60 is less than max_runtime_s (86400)"),
        ({"cluster": {}}, "cluster: needs instance_type; or groups, or preferences"),
    ],
)
def test_mistakes_are_found_when_it_is_loaded(fields: Any, expected: str) -> None:
    found = problems(**fields)
    assert any(problem.startswith(f"stages.tune.{expected}") for problem in found), found


def test_a_batch_may_count_with_a_tuned_hyperparameter() -> None:
    batch = {"per_replica": "batch-size", "global_batch": 64}
    assert "tune.job" in steps(batch=batch)


def test_the_guide_s_pipeline_loads_and_its_last_stage_reads_the_best() -> None:
    import yaml

    [text] = shown(TUNING, "yaml")
    lowered = Pipeline.parse(yaml.safe_load(text)).lower()
    assert [step.name for step in all_steps(lowered.graph)] == [
        *("tune.job", "tune.chosen", "tune.best", "final.job")
    ]


def test_the_role_may_start_follow_and_stop_searches_of_the_pipeline_only() -> None:
    workflow = pipeline(tune=TUNE).lower()
    document = permissions.policy(workflow, ACCOUNT, [{}])
    [own] = [s for s in document["Statement"] if set(s["Action"]) >= _TUNING]
    assert [arn.rpartition(":")[2] for arn in own["Resource"]] == [
        "hyper-parameter-tuning-job/digits-tune-*"
    ]
    assert any("iam:PassRole" in s["Action"] for s in document["Statement"])
    [jobs] = leftovers(workflow.graph).jobs
    assert (jobs.kind.word, jobs.prefixes) == ("HyperParameterTuning", ("digits-tune-",))
