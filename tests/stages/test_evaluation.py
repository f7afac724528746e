"""``checkpoint_evaluation``: what is evaluated, the choice, and what is refused beforehand."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration import Pipeline, PipelineError
from orchestration.backends import stepfunctions
from orchestration.deploy.account import Account
from orchestration.deploy.permissions import policies
from orchestration.execution.outputs import taken
from orchestration.expressions import Json, evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Choose, Workflow, all_steps
from tests.guides import EVALUATION, shown

ACCOUNT = Account(id="123456789012", region="us-east-1")
ROLE = "arn:aws:iam::111122223333:role/Execution"
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/x:1"
TRAIN: dict[str, Any] = {
    "kind": "training_job",
    "image": IMAGE,
    "source": {"uri": "s3://bucket/code", "entry_point": "train.py"},
    "channels": {"training": "s3://bucket/train"},
    "cluster": {"instance_type": "ml.m5.large"},
    "checkpoints": {},
    "metrics": {"accuracy": "accuracy=(.*)", "loss": "loss=(.*)", "validation:f1": "f1=(.*)"},
}
JOB: dict[str, Any] = {
    "data": "s3://bucket/holdout",
    "image": IMAGE,
    "source": {"uri": "s3://bucket/code", "entry_point": "evaluate.py"},
    "instance_type": "ml.m5.large",
}
OF_CHECKPOINTS: dict[str, Any] = {"checkpoints": {"ref": "train.checkpoints"}, **JOB}
OF_MODEL: dict[str, Any] = {"model": {"ref": "train.model_artifacts"}, **JOB}
OF_JOB: dict[str, Any] = {"training_job": {"ref": "train.job_name"}}
OF_TUNING: dict[str, Any] = {"tuning_job": {"ref": "tune.tuning_job_name"}, **JOB}
LATENCY = {"latency_ms": {"path": "timing.p95", "maximum": 40}}
STOP = {"threshold": {"value": 0.9, "on_miss": "stop"}}


def pipeline(subject: dict[str, Any], **fields: Any) -> Pipeline:
    judged = {"metric": "accuracy", "direction": "max", **subject, **fields}
    stage = {"kind": "checkpoint_evaluation", **judged}
    searched = "tune" in str(subject.get("tuning_job"))
    stages = {
        "train": TRAIN,
        **({"tune": TUNE} if searched else {}),
        "evaluate": {k: v for k, v in stage.items() if v is not None},
    }
    return Pipeline.parse(
        {"name": "p", "workspace": "s3://bucket/runs", "role": ROLE, "stages": stages}
    )


def lowered(subject: dict[str, Any], **fields: Any) -> Workflow:
    return pipeline(subject, **fields).lower()


def problems(subject: dict[str, Any], **fields: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(subject, **fields)
    return [str(problem) for problem in error.value.problems]


def step(workflow: Workflow, name: str) -> Any:
    [match] = [each for each in all_steps(workflow.graph) if each.name == f"evaluate.{name}"]
    return match


def names(workflow: Workflow) -> list[str]:
    return [each.name for each in all_steps(workflow.graph) if each.name.startswith("evaluate.")]


def env(**results: Any) -> Values:
    known = {f"evaluate.{name}": outputs for name, outputs in results.items()}
    train = {"job_name": "train-1", "model_artifacts": "s3://bucket/m/model.tar.gz"}
    return Values({"train.job": train, **known}, {}, "0123456789ab")


def rows(*measured: tuple[float | None, ...]) -> list[Json]:
    """Return results of checkpoints: the metric that decides, and the latency."""
    return [
        {"checkpoint": f"s3://c/{number}/", "metric": each[0], "latency_ms": each[1]}
        for number, each in enumerate(measured)
    ]


def test_a_final_model_is_evaluated_once() -> None:
    made = lowered(OF_MODEL, arguments=["--fast"])
    assert names(made) == ["evaluate.job", "evaluate.report"]
    sent: Any = evaluate(step(made, "job").operation.request, env())
    assert sent["ProcessingJobName"] == "p-evaluate-0123456789ab"
    root = "/opt/ml/processing"
    assert sent["AppSpecification"]["ContainerArguments"] == [
        *("--model", f"{root}/input/model", "--data", f"{root}/input/data"),
        *("--output", f"{root}/output", "--fast"),
    ]
    inputs = {each["InputName"]: each["S3Input"]["S3Uri"] for each in sent["ProcessingInputs"]}
    assert inputs["model"] == "s3://bucket/m/model.tar.gz"
    report = step(made, "report")
    uri = "s3://bucket/runs/0123456789ab/evaluate/evaluation.json"
    assert evaluate(report.uri, env()) == uri
    outputs: Any = evaluate(made.outputs["evaluate"], env(report={"metric": 0.9}))
    model = "s3://bucket/m/model.tar.gz"
    assert outputs == {
        "model": model,
        "best_metric": 0.9,
        "passed": True,
        "results": [{"model": model, "metric": 0.9}],
    }


def test_a_framework_s_own_container_may_evaluate_on_several_machines() -> None:
    framework = {"name": "pytorch", "version": "2.8.0"}
    more = {"image": None, "framework": framework, "instance_count": 2, "report": {}}
    judged = {"metric": "accuracy", "direction": "max", **OF_CHECKPOINTS, **more}
    stage = {"kind": "checkpoint_evaluation", **{k: v for k, v in judged.items() if v is not None}}
    made = Pipeline.parse(
        {
            "name": "p",
            "workspace": "s3://bucket/runs",
            "role": ROLE,
            "region": "us-east-1",
            "stages": {"train": TRAIN, "evaluate": stage},
        }
    ).lower()
    requests = [step(made, name).operation.request for name in ("each.job", "decide")]
    images = {each["AppSpecification"]["ImageUri"] for each in requests}
    assert len(images) == 1
    assert "us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu" in images.pop()
    clusters = [each["ProcessingResources"]["ClusterConfig"] for each in requests]
    assert [each["InstanceCount"] for each in clusters] == [2, 1]


def test_a_container_s_own_program_evaluates_with_the_same_arguments() -> None:
    given: list[dict[str, Any]] = [{}, {"source": None, "command": ["judge", "--all"]}]
    sent: list[Any] = [
        evaluate(step(lowered(OF_MODEL, **fields), "job").operation.request, env())
        for fields in given
    ]
    script, program = (each["AppSpecification"] for each in sent)
    assert program["ContainerEntrypoint"] == ["judge", "--all"]
    assert program["ContainerArguments"] == script["ContainerArguments"]
    assert [each["InputName"] for each in sent[1]["ProcessingInputs"]] == ["model", "data"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"source": None},
            "source: is needed by the job that evaluates the model; or the command of a container",
        ),
        ({"command": ["judge"]}, "command: there is a source already, which python3 runs; remove"),
        ({"image": None}, "image: is needed by the job that evaluates the model; or a framework"),
        ({"framework": {"name": "pytorch"}}, "framework: there is an image already; remove one"),
        (
            {"image": None, "framework": {"name": "pytorch", "version": "2.8.0"}},
            "framework: has its image in the pipeline's region, which is not said",
        ),
        (
            {"image": None, "framework": {"name": "torch", "version": "2"}, "report": {}},
            "framework",
        ),
    ],
)
def test_a_container_and_its_program_are_needed_once(fields: dict[str, Any], expected: str) -> None:
    assert any(expected in each for each in problems(OF_MODEL, **fields))


@given(
    st.lists(st.integers(0, 30), unique=True, max_size=12),
    st.integers(1, 4),
    st.none() | st.integers(1, 4),
)
def test_some_checkpoints_are_selected_by_a_plain_reading_of_the_rule(
    numbers: list[int], every: int, last: int | None
) -> None:
    select = {"pattern": "step-*", "every": every, **({} if last is None else {"last": last})}
    made = lowered(OF_CHECKPOINTS, select=select, max_checkpoints=3)
    listed = [{"Prefix": f"c/step-{number}/"} for number in sorted(numbers, key=str)]
    known = env(list={"found": [*listed, {"Prefix": "c/step-5.tmp/x/"}], "truncated": False})
    wanted = sorted(numbers, reverse=True)
    wanted = [number for index, number in enumerate(wanted) if index % every == 0]
    wanted = sorted(wanted[:last])
    found: Any = evaluate(step(made, "each").items, known)
    assert [each["Prefix"] for each in found] == [f"c/step-{number}/" for number in wanted]
    assert evaluate(step(made, "usable").condition, known) is (1 <= len(wanted) <= 3)


NO_JOB: dict[str, Any] = {"checkpoints": "s3://bucket/c", "recorded": "metrics.json"}


@given(
    st.lists(st.none() | st.integers(-2, 2), max_size=8),
    st.integers(1, 4),
    st.sampled_from(["max", "min"]),
    st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_the_best_that_training_recorded_are_selected_by_a_plain_reading_of_the_rule(
    numbers: list[float | None], count: int, direction: Any, by_job: bool
) -> None:
    best = {"count": count, "metric": "eval.loss", "direction": direction}
    job: dict[str, Any] = {"report": {}} if by_job else {}
    made = lowered(OF_CHECKPOINTS, select={"best": best}, **job)
    measured = [{"Prefix": f"c/{i}/", "number": each} for i, each in enumerate(numbers)]
    known = env(recorded={"items": measured})
    left = [(i, each) for i, each in enumerate(numbers) if each is not None]
    order = sorted(left, key=lambda pair: pair[1], reverse=direction == "max")
    wanted = sorted(i for i, _ in order[:count])
    found: Any = evaluate(step(made, "each").items, known)
    assert [each["Prefix"] for each in found] == [f"c/{i}/" for i in wanted]
    if not by_job:
        assert evaluate(step(made, "selected").condition, known) is bool(wanted)


def of_one_algorithm(objective: str) -> Json:
    """Return what SageMaker says of a search over one algorithm."""
    told = {"Type": objective, "MetricName": "loss"}
    return {"HyperParameterTuningJobConfig": {"HyperParameterTuningJobObjective": told}}


def of_two_algorithms(objective: str) -> Json:
    """Return what SageMaker says of a search over several: each has an objective of its own."""
    told = [{"Type": objective, "MetricName": name} for name in ("loss", "rmse")]
    definitions: list[Json] = [{"TuningObjective": each} for each in told]
    return {
        "HyperParameterTuningJobConfig": {"Strategy": "Bayesian"},
        "TrainingJobDefinitions": definitions,
    }


def test_the_best_jobs_of_a_search_are_listed_by_its_own_objective() -> None:
    made = lowered(OF_TUNING, best_jobs=2, max_concurrency=1)
    ranked = step(made, "ranked")
    outputs = step(made, "tuning").outputs
    for response, order in (
        (of_one_algorithm("Maximize"), "descending"),
        (of_one_algorithm("Minimize"), "ascending"),
        (of_two_algorithms("Maximize"), "descending"),
        (of_two_algorithms("Minimize"), "ascending"),
    ):
        known = env(tuning=taken(outputs, response, "evaluate.tuning"))
        way = ranked.then if evaluate(ranked.condition, known) else ranked.otherwise
        [listed] = way.steps
        assert listed.name == f"evaluate.{order}"
        assert {**listed.operation.request, "HyperParameterTuningJobName": "x"} == {
            "HyperParameterTuningJobName": "x",
            "StatusEquals": "Completed",
            "SortBy": "FinalObjectiveMetricValue",
            "SortOrder": order.title(),
            "MaxResults": 2,
        }
    required = step(made, "usable")
    none = Values({"tune.job": {"tuning_job_name": "t"}, "evaluate.ranked": {"found": []}}, {})
    assert evaluate(required.condition, none) is False
    assert required.error == "NoTrainingJobCompleted"
    assert evaluate(required.cause, none) == (
        "stage evaluate: no training job of t completed with the objective"
    )
    each = step(made, "each")
    assert (each.at_most, each.max_concurrency) == (2, 1)


@given(st.lists(st.none() | st.integers(-2, 2), min_size=1, max_size=6))
@settings(max_examples=20, deadline=None)
def test_of_equal_models_the_one_with_the_better_objective_is_the_best(
    metrics: list[float | None],
) -> None:
    made = lowered(OF_TUNING)
    # As the search has ranked them; NaN is null here, and has lost.
    ranked: list[Json] = [
        {"training_job": f"t-{n}", "model": f"s3://m/{n}", "metric": each}
        for n, each in enumerate(metrics)
    ]
    known = env(each={"items": ranked})
    left = [(n, each) for n, each in enumerate(metrics) if each is not None]
    assert evaluate(step(made, "finite").condition, known) is bool(left)
    if left:
        best = max(left, key=lambda pair: pair[1])[0]
        shown: Any = evaluate(made.outputs["evaluate"], known)
        assert (shown["model"], shown["best_training_job"]) == (f"s3://m/{best}", f"t-{best}")


def test_the_best_model_of_a_search_is_an_archive_that_a_deployment_takes() -> None:
    whole = pipeline(OF_TUNING)
    deploy = {
        "kind": "deployment",
        "model_data": {"ref": "evaluate.model"},
        "image": IMAGE,
        "instance_type": "ml.m5.large",
    }
    stages = {"tune": TUNE, "evaluate": {**OF_TUNING, "kind": "checkpoint_evaluation"}}
    stages["evaluate"] |= {"metric": "accuracy", "direction": "max"}
    common = {"name": "p", "workspace": "s3://bucket/runs", "role": ROLE}
    with pytest.raises(PipelineError, match="model_archive: true"):
        Pipeline.parse({**common, "stages": {**stages, "deploy": deploy}})
    Pipeline.parse({**common, "stages": {**stages, "deploy": {**deploy, "model_archive": True}}})
    assert whole.lower().outputs["evaluate"]


@pytest.mark.parametrize(
    ("subject", "fields", "expected"),
    [
        (OF_TUNING, {"model": "s3://b/m"}, "tuning_job: expected one of checkpoints, model"),
        (OF_TUNING, {"select": {"last": 2}}, "select: is for checkpoints, and best_jobs says"),
        (OF_TUNING, {"best_jobs": 101}, "best_jobs"),
        (OF_TUNING, {"data": None}, "data: is needed by the job that evaluates the tuning_job"),
        (OF_MODEL, {"best_jobs": 2}, "best_jobs: is for a tuning_job"),
        (
            {**JOB, "tuning_job": {"ref": "tune.job_name"}},
            {},
            "tuning_job: is the name of the whole search; write tuning_job: "
            "{ref: tune.tuning_job_name}",
        ),
    ],
)
def test_what_does_not_fit_the_best_jobs_of_a_search_is_refused(
    subject: dict[str, Any], fields: dict[str, Any], expected: str
) -> None:
    assert any(expected in each for each in problems(subject, **fields))


def test_what_training_recorded_is_read_beside_each_checkpoint_without_a_job() -> None:
    metrics = {"f1": {"path": "eval[0].f1"}}
    made = lowered(NO_JOB, metric="val_loss", direction="min", metrics=metrics)
    assert not any(
        isinstance(each, Call) and each.operation.name == "CreateProcessingJob"
        for each in all_steps(made.graph)
    )
    report = step(made, "each.report")
    known = Values({}, {}, "0123456789ab", {"Prefix": "c/epoch-1/"})
    assert evaluate(report.uri, known) == "s3://bucket/c/epoch-1/metrics.json"
    places = {name: output.path for name, output in report.outputs.items()}
    assert places == {"metric": ("val_loss",), "f1": ("eval", 0, "f1")}


@pytest.mark.parametrize(
    ("subject", "fields", "expected"),
    [
        (NO_JOB, {"data": "s3://b/d"}, "data: the recorded metrics decide, and no job is started"),
        (NO_JOB, {"report": {}}, "report.image: is needed: no job evaluates, whose container"),
        (NO_JOB, {"slices": {"language": {}}}, "report.image: is needed"),
        (NO_JOB, {"champion": {"endpoint": "e"}}, "champion: the recorded metrics decide"),
        (
            NO_JOB,
            {"report": {"image": IMAGE}, "extra_request": {"RoleArn": "x"}},
            "extra_request: extra_request.RoleArn is already set",
        ),
        (
            NO_JOB,
            {"max_checkpoints": 1000},
            "max_checkpoints: more than 500 need a report: {image: …}, a job that decides",
        ),
        (NO_JOB, {"recorded": "/x.json"}, "recorded"),
        (OF_MODEL, {"recorded": "metrics.json"}, "recorded: is for checkpoints"),
        (OF_JOB, {"recorded": "m.json"}, "recorded: a training_job's own metrics decide"),
        (
            OF_CHECKPOINTS,
            {"select": {"best": {"count": 0, "metric": "loss", "direction": "min"}}},
            "select.best.count",
        ),
        (OF_CHECKPOINTS, {"select": {"best": {"count": 2}}}, "select.best.metric"),
    ],
)
def test_what_does_not_fit_recorded_metrics_is_refused(
    subject: dict[str, Any], fields: dict[str, Any], expected: str
) -> None:
    assert any(expected in each for each in problems(subject, **fields))


def test_a_job_may_decide_about_what_training_recorded() -> None:
    made = lowered(NO_JOB, report={"image": IMAGE}, max_checkpoints=1000, max_concurrency=40)
    item = Values({}, {}, "0123456789ab", {"Prefix": "c/epoch 1/"})
    copy: Any = evaluate(step(made, "each.copy").operation.request, item)
    assert copy["CopySource"] == "bucket/c/epoch%201/metrics.json"
    told: Any = step(made, "request").operation.request["Body"]
    assert told["file"] == "metrics.json"
    assert told["metrics"]["accuracy"]["path"] == ["accuracy"]
    assert copy["Key"].startswith("runs/0123456789ab/evaluate/reports/")
    stepfunctions.render(made)


def test_metrics_are_read_from_their_places() -> None:
    metrics = {**LATENCY, "accuracy": {"path": "scores[0].value"}, "size": {}}
    report = step(lowered(OF_CHECKPOINTS, metrics=metrics), "each.report")
    assert {name: output.path for name, output in report.outputs.items()} == {
        "metric": ("scores", 0, "value"),
        "latency_ms": ("timing", "p95"),
        "size": ("metrics", "size"),
    }


def test_the_best_of_those_that_keep_all_bounds_is_chosen() -> None:
    made = lowered(OF_CHECKPOINTS, metrics=LATENCY, threshold={"value": 0.8})
    order = ["finite", "constraints", "gate"]
    assert names(made)[-3:] == [f"evaluate.{name}" for name in order]
    known = env(each={"items": rows((0.9, 41), (0.7, 40), (0.85, None), (0.8, 12), (0.8, 9))})
    assert evaluate(step(made, "constraints").condition, known) is True
    shown: Any = evaluate(made.outputs["evaluate"], known)
    assert shown["best_checkpoint"] == "s3://c/3/"
    assert (shown["best_metric"], shown["best_latency_ms"], shown["passed"]) == (0.8, 12, True)


def test_bounds_that_none_keeps_fail_the_run_and_are_named() -> None:
    metrics = {**LATENCY, "accuracy": {"minimum": 0.5, "maximum": 0.99}}
    required = step(lowered(OF_CHECKPOINTS, metrics=metrics), "constraints")
    known = env(each={"items": rows((0.9, 41), (0.4, 1), (1, 1))})
    assert evaluate(required.condition, known) is False
    assert required.error == "ConstraintNotMet"
    assert evaluate(required.cause, known) == (
        "stage evaluate: no checkpoint of 3 has latency_ms at most 40, accuracy at least 0.5, "
        "accuracy at most 0.99"
    )


def test_bounds_that_none_keeps_may_end_the_run_well() -> None:
    made = lowered(OF_CHECKPOINTS, metrics=LATENCY, **STOP)
    chosen = step(made, "chosen")
    assert isinstance(chosen, Choose)
    good = env(each={"items": rows((0.95, 41), (0.91, 40))})
    assert evaluate(chosen.condition, good) is True
    assert evaluate(chosen.collect, good) == {
        "checkpoint": "s3://c/1/",
        "metric": 0.91,
        "latency_ms": 40,
        "passed": True,
    }
    assert evaluate(chosen.condition, env(each={"items": rows((0.95, 41))})) is False
    absent = {**dict.fromkeys(("checkpoint", "metric", "latency_ms")), "passed": False}
    assert chosen.absent == absent
    assert "evaluate.gate" not in names(made)


@pytest.mark.parametrize(
    ("latency", "accuracy", "passed"), [(40, 0.9, True), (41, 0.9, False), (40, 0.89, False)]
)
def test_a_model_passes_only_with_all_its_bounds(
    latency: float, accuracy: float, passed: bool
) -> None:
    made = lowered(OF_MODEL, metrics=LATENCY, **STOP)
    known = env(report={"metric": accuracy, "latency_ms": latency})
    shown: Any = evaluate(made.outputs["evaluate"], known)
    assert (shown["passed"], shown["best_latency_ms"]) == (passed, latency)


def test_a_model_s_bounds_are_told_with_its_values() -> None:
    made = lowered(OF_MODEL, metrics={"latency_ms": {"minimum": 1.5, "maximum": 40}})
    known = env(report={"metric": 1, "latency_ms": 41})
    required = step(made, "constraints")
    assert evaluate(required.cause, known) == (
        "stage evaluate: latency_ms is 41 and must be at least 1.5; latency_ms is 41 and must be "
        "at most 40"
    )


def test_a_model_has_nobody_to_lose_to() -> None:
    metrics = {**LATENCY, "note": {}}
    of_model = step(lowered(OF_MODEL, metrics=metrics), "report").outputs
    many = step(lowered(OF_CHECKPOINTS, metrics=metrics), "each.report").outputs
    assert [o.not_finite for o in of_model.values()] == ["refused", "refused", "null"]
    assert [o.not_finite for o in many.values()] == ["null", "null", "null"]


def test_a_training_job_is_judged_without_a_job() -> None:
    made = lowered(OF_JOB, metric="validation:f1", metrics={"loss": {"maximum": 1}})
    calls = [each for each in all_steps(made.graph) if isinstance(each, Call)]
    assert [each.operation.name for each in calls] == ["CreateTrainingJob", "DescribeTrainingJob"]
    assert evaluate(calls[1].operation.request, env()) == {"TrainingJobName": "train-1"}
    listed = [
        {"MetricName": "loss", "Value": 0.5},
        {"MetricName": "validation:f1", "Value": 0.8},
        {"MetricName": "other", "Value": math.nan},
    ]
    known = env(describe={"metrics": listed, "model": "s3://bucket/m.tar.gz"})
    assert evaluate(step(made, "has_metric").condition, known) is True
    assert evaluate(step(made, "constraints").condition, known) is True
    assert evaluate(made.outputs["evaluate"], known) == {
        "model": "s3://bucket/m.tar.gz",
        "best_metric": 0.8,
        "best_loss": 0.5,
        "passed": True,
        "results": [{"training_job": "train-1", "metric": 0.8, "loss": 0.5}],
    }


@pytest.mark.parametrize("value", [math.nan, -math.inf, None, "0.8"])
def test_a_metric_that_is_no_number_is_missing(value: Any) -> None:
    required = step(lowered(OF_JOB), "has_metric")
    known = env(describe={"metrics": [{"MetricName": "accuracy", "Value": value}]})
    assert evaluate(required.condition, known) is False
    assert required.error == "MetricMissing"
    assert evaluate(required.cause, known) == (
        "stage evaluate: training job train-1 has no number for the metric accuracy"
    )


def test_permissions_follow_from_the_calls() -> None:
    actions = str(policies.policy(lowered(OF_JOB), ACCOUNT, [{}]))
    assert "sagemaker:DescribeTrainingJob" in actions


def test_bounds_are_met_by_the_32_bits_that_sagemaker_keeps_of_a_metric() -> None:
    made = lowered(OF_JOB, metrics={"loss": {"maximum": 0.1}}, threshold={"value": 0.8792})
    listed = [{"MetricName": "accuracy", "Value": 0.8791999816894531}]
    known = env(
        describe={"metrics": [*listed, {"MetricName": "loss", "Value": 0.10000000149011612}]}
    )
    assert evaluate(step(made, "gate").condition, known) is True
    assert evaluate(step(made, "constraints").condition, known) is True
    below = env(describe={"metrics": [{"MetricName": "accuracy", "Value": 0.87919992}]})
    assert evaluate(step(made, "gate").condition, below) is False
    assert "it must be at least 0.8792" in str(evaluate(step(made, "gate").cause, below))


NUMBERS = st.none() | st.integers(-3, 3)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=6),
    st.integers(-3, 3),
    st.integers(-3, 3),
    st.sampled_from(["max", "min"]),
)
@settings(max_examples=60, deadline=None)
def test_the_choice_is_what_the_rule_says(
    measured: list[tuple[int | None, ...]], most: int, least: int, direction: Any
) -> None:
    """Drop what is no number or out of bounds; of the best, take the first."""
    metrics = {"latency_ms": {"maximum": most}, "f1": {"minimum": least}}
    made = lowered(OF_CHECKPOINTS, metrics=metrics, direction=direction)
    items = [
        {"checkpoint": str(number), "metric": each[0], "latency_ms": each[1], "f1": each[2]}
        for number, each in enumerate(measured)
    ]
    known = env(each={"items": items})
    left = [
        (number, each[0])
        for number, each in enumerate(measured)
        if None not in each and each[1] <= most and each[2] >= least  # type: ignore[operator]  # not None
    ]
    assert evaluate(step(made, "constraints").condition, known) is bool(left)
    if left:
        best = (max if direction == "max" else min)(value for _, value in left)  # type: ignore[type-var]  # not None
        first = next(number for number, value in left if value == best)
        assert evaluate(made.outputs["evaluate"]["best_checkpoint"], known) == str(first)  # type: ignore[index,call-overload]  # a mapping


def test_the_guide_s_pipeline_judges_the_training_and_its_model(tmp_path: Path) -> None:
    [text, predicted, tournament] = shown(EVALUATION, "yaml")
    for script in ("train/train.py", "evaluate/evaluate.py", "src/score.py"):
        (tmp_path / script).parent.mkdir()
        (tmp_path / script).touch()
    (tmp_path / "judged.yaml").write_text(f"{text}\n{predicted}\n{tournament}", encoding="utf-8")
    workflow = Pipeline.load(tmp_path / "judged.yaml").lower()
    judged = {"best_metric", "passed", "results", "model"}
    shown_ones: Any = workflow.outputs
    assert set(shown_ones["converged"]) == judged
    further = {"best_latency_ms", "best_size_gib"}
    assert set(shown_ones["judge"]) == judged | further
    assert {"outcome", "improvement", "report"} <= set(shown_ones["tournament"])
    assert "predicted.each.predictions" in [each.name for each in all_steps(workflow.graph)]
    gates = {each.name for each in all_steps(workflow.graph) if isinstance(each, Choose)}
    assert gates == {
        "tournament.champion",
        "tournament.champion.served",
        "judge.passed_deploy",
        "deploy.apply",
        "deploy.changed",
        "deploy.update_busy",
        "deploy.update_unsent",
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"checkpoints": None},
            "checkpoints: is needed; or a model, a training_job, or a tuning_job",
        ),
        (
            {"model": "s3://b/m"},
            "model: expected one of checkpoints, model, training_job, tuning_job, got checkpoints",
        ),
        (
            {"checkpoints": {"ref": "train.model_artifacts"}},
            "checkpoints: is one model and no folder of checkpoints; write model: {ref: "
            "train.model_artifacts}",
        ),
        (
            {"checkpoints": "s3://b/model.tar.gz"},
            "checkpoints: is one file and no folder of checkpoints; write model: "
            "s3://b/model.tar.gz",
        ),
        ({"data": None}, "data: is needed by the job that evaluates the checkpoints"),
        ({"metrics": {"metric": {}}}, "metrics.metric: results have something else of this name"),
        (
            {"metrics": {"loss": {"minimum": 2, "maximum": 1}}},
            "metrics.loss.minimum: is 2, more than the maximum of 1",
        ),
        ({"on_miss": "stop"}, "on_miss: nothing can be missed; give metrics a minimum"),
        ({"on_miss": "stop", **STOP}, "on_miss: the threshold says it already"),
    ],
)
def test_what_checkpoints_can_t_have_is_refused(fields: dict[str, Any], expected: str) -> None:
    assert any(expected in each for each in problems(OF_CHECKPOINTS, **fields))


@pytest.mark.parametrize(
    ("subject", "fields", "expected"),
    [
        (OF_MODEL, {"max_concurrency": 2}, "max_concurrency: is for checkpoints, and there is"),
        (
            OF_MODEL,
            {"model": {"ref": "train.checkpoints"}},
            "model: is a folder of checkpoints and no single model; write checkpoints: {ref: "
            "train.checkpoints}",
        ),
        (OF_MODEL, {"model": "m"}, "model: expected an S3 URI, got 'm'"),
        (OF_MODEL, {"image": None}, "image: is needed by the job that evaluates the model"),
        (
            OF_JOB,
            {"training_job": {"ref": "train.model_artifacts"}},
            "training_job: is the name of a job, not what it writes; write training_job: {ref: "
            "train.job_name}",
        ),
        (OF_JOB, {"image": IMAGE}, "image: a training_job's own metrics decide, and no job is"),
        (OF_JOB, {"report": {}}, "report.image: is needed: no job evaluates, whose container"),
        (
            OF_JOB,
            {"report": {"image": IMAGE}, "champion": {"endpoint": "e"}},
            "champion: a training_job's own metrics decide",
        ),
        (OF_JOB, {"command": ["e"]}, "command: a training_job's own metrics decide, and no job"),
        (OF_JOB, {"checkpoint_prefix": "e"}, "checkpoint_prefix: a training_job's own metrics"),
    ],
)
def test_what_one_model_can_t_have_is_refused(
    subject: dict[str, Any], fields: dict[str, Any], expected: str
) -> None:
    assert any(expected in each for each in problems(subject, **fields))


def test_an_output_that_an_evaluation_lacks_has_a_way_out() -> None:
    tell: dict[str, Any] = {"kind": "aws_call", "service": "sns", "operation": "Publish"}
    judged = {"kind": "checkpoint_evaluation", "metric": "accuracy", "direction": "max"}
    message = {"ref": "evaluate.best_checkpoint"}
    request = {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": message}
    stages = {
        "train": TRAIN,
        "evaluate": {**judged, **OF_MODEL},
        "tell": {**tell, "request": request},
    }
    with pytest.raises(PipelineError, match="evaluates one model; refer to its output model"):
        Pipeline.parse(
            {"name": "p", "workspace": "s3://bucket/runs", "role": ROLE, "stages": stages}
        )


TUNE: dict[str, Any] = {
    **TRAIN,
    "kind": "tuning_job",
    "objective": {"metric": "f1", "direction": "max", "regex": "f1=(.*)"},
    "ranges": {"rate": {"continuous": [0.1, 0.5]}},
    "limits": {"jobs": 2},
}


def beside(train: dict[str, Any], **stages: Any) -> Pipeline:
    every = {"train": train, **stages}
    return Pipeline.parse(
        {"name": "p", "workspace": "s3://bucket/runs", "role": ROLE, "stages": every}
    )


def decided(metric: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "checkpoint_evaluation", "metric": metric, "direction": "max", **fields}


@pytest.mark.parametrize(
    ("train", "metric", "expected"),
    [
        (
            TRAIN,
            "acuracy",
            "gate.metric: stage 'train' defines no metric 'acuracy'; give it metrics: "
            "{'acuracy': <regular expression over the log>}; did you mean 'accuracy'?",
        ),
        (TUNE, "f2", "gate.metric: stage 'train' defines no metric 'f2'"),
        ({**TRAIN, "metrics": {}}, "loss", "gate.metric: stage 'train' defines no metric 'loss'"),
        (
            {
                "kind": "processing_job",
                "image": IMAGE,
                "command": ["true"],
                "cluster": {"instance_type": "ml.m5.large"},
            },
            "loss",
            "gate.training_job: stage 'train' is a processing_job; name a training_job or a",
        ),
    ],
)
def test_a_metric_that_the_training_does_not_define_is_refused(
    train: dict[str, Any], metric: str, expected: str
) -> None:
    with pytest.raises(PipelineError, match=re.escape(expected)):
        beside(train, gate=decided(metric, **OF_JOB))


def test_a_tuning_job_s_best_and_a_built_in_algorithm_are_judged() -> None:
    beside(TUNE, gate=decided("f1", metrics={"loss": {"maximum": 1}}, **OF_JOB)).lower()
    built_in = {k: v for k, v in TRAIN.items() if k not in ("source", "metrics")}
    beside(built_in, gate=decided("validation:auc", **OF_JOB)).lower()


def served(model_data: Any, *, archive: bool) -> dict[str, Any]:
    machine = {"image": IMAGE, "instance_type": "ml.m5.large"}
    return {"kind": "deployment", **machine, "model_data": model_data, "model_archive": archive}


@pytest.mark.parametrize("subject", [OF_MODEL, OF_JOB], ids=["model", "training_job"])
def test_a_judged_model_is_served_as_the_archive_that_it_is(subject: dict[str, Any]) -> None:
    judge, data = decided("accuracy", **subject), {"ref": "judge.model"}
    beside(TRAIN, judge=judge, deploy=served(data, archive=True)).lower()
    with pytest.raises(PipelineError, match="give model_archive: true"):
        beside(TRAIN, judge=judge, deploy=served(data, archive=False))
    plain = {**TRAIN, "output": {"compression": "NONE"}}
    with pytest.raises(
        PipelineError, match="model_archive: model of 'judge' is a folder and no model"
    ):
        beside(plain, judge=judge, deploy=served(data, archive=True))


@pytest.mark.parametrize(
    ("data", "archive", "is_fine"),
    [
        ("s3://b/model.tar.gz", True, True),
        ("s3://b/model.tar.gz", False, False),
        ("s3://b/model/", True, False),
        ("s3://b/model", True, True),
        ({"ref": "judge.best_checkpoint"}, False, True),
        ({"ref": "judge.best_checkpoint"}, True, False),
        ({"join": ["s3://b/", {"run": "id"}]}, True, True),
    ],
)
def test_what_is_served_has_the_form_that_is_said(data: Any, archive: bool, is_fine: bool) -> None:
    judge, deploy = decided("accuracy", **OF_CHECKPOINTS), served(data, archive=archive)
    if is_fine:
        beside(TRAIN, judge=judge, deploy=deploy).lower()
    else:
        with pytest.raises(PipelineError, match="model_archive"):
            beside(TRAIN, judge=judge, deploy=deploy)
