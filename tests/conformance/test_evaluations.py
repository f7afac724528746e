"""``checkpoint_evaluation`` chooses, passes and refuses alike on every driver."""

from __future__ import annotations

import io
import json
import math
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestration import CheckpointEvaluation, Pipeline, ProcessingJob, Source, TrainingJob
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from orchestration.stages.evaluation import sizes
from orchestration.stages.evaluation.comparing import CheckpointSelection, EvaluationReport
from tests.conformance.histories import history, largest
from tests.conformance.test_conformance import BACKENDS, Backend
from tests.conformance.test_processing_jobs import BY_STEPS, Reports, everywhere

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("src_evaluation")
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/judge:1"
BUCKET = "evaluations"
LATENCY: dict[str, Any] = {"latency_ms": {"path": "timing.p95", "maximum": 40}}
CHECKPOINTS = {
    "good": ((0.95, math.inf), (math.nan, 10.0), (0.9, 30.0), (0.9, 20.0)),
    "slow": ((0.95, 55.0),),
}
MODELS: dict[str, Any] = {
    "good": {"metrics": {"accuracy": 0.9}, "timing": {"p95": 40}},
    "nan": {"metrics": {"accuracy": 0.9}, "timing": {"p95": math.nan}},
    "lacking": {"metrics": {"loss": 0.9}, "timing": {"p95": 40}},
}


def _report(accuracy: float, latency: float) -> bytes:
    return json.dumps({"metrics": {"accuracy": accuracy}, "timing": {"p95": latency}}).encode()


def _archive(report: Any) -> bytes:
    written, data = io.BytesIO(), json.dumps(report).encode()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        member = tarfile.TarInfo("evaluation.json")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return written.getvalue()


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_object(Bucket=BUCKET, Key="holdout/data", Body=b"x")
        for name, measured in CHECKPOINTS.items():
            for number, each in enumerate(measured):
                key = f"{name}/epoch-{number}/evaluation.json"
                s3.put_object(Bucket=BUCKET, Key=key, Body=_report(*each))
        for name, report in MODELS.items():
            s3.put_object(Bucket=BUCKET, Key=f"{name}/model.tar.gz", Body=_archive(report))
        yield embedded


def judged(**fields: Any) -> CheckpointEvaluation:
    job = {
        "data": f"s3://{BUCKET}/holdout",
        "image": IMAGE,
        "source": Source.at(SOURCE, "evaluate.py"),
        "instance_type": "ml.m5.large",
    }
    chosen = {} if "training_job" in fields else job
    decides = {"name": "judge", "metric": "accuracy", "direction": "max", "metrics": LATENCY}
    return CheckpointEvaluation.model_validate({**decides, **chosen, **fields})


def of_model(name: str, **fields: Any) -> CheckpointEvaluation:
    return judged(model=f"s3://{BUCKET}/{name}/model.tar.gz", **fields)


def of_checkpoints(name: str, **fields: Any) -> CheckpointEvaluation:
    return judged(checkpoints=f"s3://{BUCKET}/{name}", checkpoint_prefix="epoch-", **fields)


def following(uri: Any, **fields: Any) -> ProcessingJob:
    """A job that needs what was chosen."""
    return ProcessingJob.model_validate(
        {
            "name": "use",
            "image": IMAGE,
            "command": ("true",),
            "inputs": {"chosen": uri},
            "cluster": {"instance_type": "ml.m5.large"},
            **fields,
        }
    )


def made(name: str, *stages: Any) -> Pipeline:
    workspace = f"s3://{BUCKET}/runs"
    return Pipeline(name=name, region="us-east-1", workspace=workspace, stages=stages)


def outputs(reports: Reports) -> Any:
    """Return what the run shows of the evaluation, equal on every driver."""
    every: list[Any] = [report.outputs for report in reports.values()]
    first, *others = every
    assert [each["judge"] for each in others] == [first["judge"]] * len(others)
    return first["judge"]


def failed(
    name: str,
    error: str,
    *stages: Any,
    aws: EmbeddedAws,
    airflow: LocalAirflow,
    backends: Sequence[Backend] = BY_STEPS,
) -> str:
    reports = everywhere(made(name, *stages), aws, airflow, backends=backends)
    assert {(each.state, each.error) for each in reports.values()} == {("failed", error)}
    return str(reports["direct"].cause)


def test_the_first_of_the_best_that_keep_their_bounds_is_chosen(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    evaluate = of_checkpoints("good", threshold={"value": 0.9, "on_miss": "stop"})
    pipeline = made("best", evaluate)
    shown = outputs(everywhere(pipeline, aws, airflow))
    place = f"s3://{BUCKET}/good/epoch-"
    results = shown.pop("results")
    assert shown == {
        "best_checkpoint": f"{place}2/",
        "best_metric": 0.9,
        "best_latency_ms": 30,
        "passed": True,
    }
    assert results[1] == {"checkpoint": f"{place}1/", "metric": None, "latency_ms": 10}
    assert results[0] == {"checkpoint": f"{place}0/", "metric": 0.95, "latency_ms": None}
    paid = len(aws.state()["sagemaker"]["ProcessingJobs"])
    again = run(pipeline, aws=aws, run_id="best-direct")
    assert (again.state, len(aws.state()["sagemaker"]["ProcessingJobs"])) == ("succeeded", paid)


def test_where_no_checkpoint_keeps_its_bounds_the_run_fails_or_ends_well(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    cause = failed("bounds", "ConstraintNotMet", of_checkpoints("slow"), aws=aws, airflow=airflow)
    assert cause == "stage judge: no checkpoint of 1 has latency_ms at most 40"
    evaluate = of_checkpoints("slow", on_miss="stop")
    pipeline = made("ends", evaluate, following(evaluate.outputs.best_checkpoint))
    reports = everywhere(pipeline, aws, airflow)
    assert {each.state for each in reports.values()} == {"succeeded"}
    shown = outputs(reports)
    assert (shown["best_checkpoint"], shown["best_metric"]) == (None, None)
    assert (shown["best_latency_ms"], shown["passed"]) == (None, False)


def test_a_final_model_is_judged_once(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    evaluate = of_model("good", threshold={"value": 0.9})
    pipeline = made("final", evaluate)
    uri = f"s3://{BUCKET}/good/model.tar.gz"
    assert outputs(everywhere(pipeline, aws, airflow)) == {
        "model": uri,
        "best_metric": 0.9,
        "best_latency_ms": 40,
        "passed": True,
        "results": [{"model": uri, "metric": 0.9, "latency_ms": 40}],
    }
    paid = len(aws.state()["sagemaker"]["ProcessingJobs"])
    again = run(pipeline, aws=aws, run_id="final-direct")
    assert (again.state, len(aws.state()["sagemaker"]["ProcessingJobs"])) == ("succeeded", paid)


@pytest.mark.parametrize(
    ("name", "fields", "error", "cause"),
    [
        ("good", {"threshold": {"value": 0.91}}, "BelowThreshold", "it must be at least 0.91"),
        (
            *("good", {"metrics": {"latency_ms": {"path": "timing.p95", "maximum": 39}}}),
            *("ConstraintNotMet", "stage judge: latency_ms is 40 and must be at most 39"),
        ),
        ("nan", {}, "MetricNotFinite", "has NaN or infinity at timing.p95"),
        ("lacking", {}, "MetricMissing", "has no metrics.accuracy"),
    ],
)
def test_a_final_model_that_is_not_good_enough_fails_the_run(
    name: str,
    fields: dict[str, Any],
    error: str,
    cause: str,
    aws: EmbeddedAws,
    airflow: LocalAirflow,
) -> None:
    evaluate = of_model(name, **fields)
    told = failed(error.lower(), error, evaluate, aws=aws, airflow=airflow)
    assert cause in told


def test_what_training_recorded_selects_and_decides_without_a_job(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    s3 = aws.client("s3")
    measured = ((0.2, 0.5), (math.nan, 0.9), (0.3, 0.9), (0.1, 0.7), (0.2, 0.8))
    for number, (loss, accuracy) in enumerate(measured):
        scores = [{"of": "train", "is": 1}, 7, {"of": "val", "is": loss}, {"of": "val", "is": 9}]
        body = json.dumps({"scores": scores, "accuracy": accuracy, "epoch": number})
        s3.put_object(Bucket=BUCKET, Key=f"own/epoch-{number}/metrics.json", Body=body.encode())
    before = len(aws.state()["sagemaker"]["ProcessingJobs"])
    place = f"s3://{BUCKET}/own/epoch-"
    loss_at = "scores[?of=='val'] | [0].is"
    best = {"count": 2, "metric": loss_at, "direction": "min"}
    evaluate = CheckpointEvaluation.model_validate(
        {
            "name": "judge",
            "checkpoints": f"s3://{BUCKET}/own",
            "recorded": "metrics.json",
            "select": {"best": best},
            "metric": "accuracy",
            "direction": "max",
            "metrics": {"loss": {"path": loss_at}},
        }
    )
    assert outputs(everywhere(made("recorded", evaluate), aws, airflow)) == {
        "best_checkpoint": f"{place}3/",
        "best_metric": 0.7,
        "best_loss": 0.1,
        "passed": True,
        "results": [
            {"checkpoint": f"{place}0/", "metric": 0.5, "loss": 0.2},
            {"checkpoint": f"{place}3/", "metric": 0.7, "loss": 0.1},
        ],
    }
    assert len(aws.state()["sagemaker"]["ProcessingJobs"]) == before
    fitting = evaluate.model_copy(
        update={
            "select": None,
            "failures_allowed": 1,
            "report": EvaluationReport(image=IMAGE),
        }
    )
    s3.put_object(Bucket=BUCKET, Key="own/epoch-5/weights", Body=b"x")
    reports = everywhere(made("paged", fitting), aws, airflow)
    for report in reports.values():
        every: Any = report.outputs
        page = every["judge"].pop("report").removeprefix(f"s3://{BUCKET}/")
        assert every["judge"].pop("report_link").endswith(f"&prefix={page}")
        body = s3.get_object(Bucket=BUCKET, Key=page)["Body"].read()
        assert b"it wrote no metrics.json" in body
    shown = outputs(reports)
    assert (shown["best_checkpoint"], shown["best_metric"]) == (f"{place}1/", 0.9)
    s3.delete_object(Bucket=BUCKET, Key="own/epoch-5/weights")
    diverged = evaluate.model_copy(update={"checkpoint_prefix": "epoch-1"})
    cause = failed("diverged", "MetricNotFinite", diverged, aws=aws, airflow=airflow)
    assert cause == (
        f"stage judge: {loss_at} is NaN or infinite in the metrics.json of every checkpoint"
    )
    unknown = {**best, "metric": "scores[?of=='test'] | [0].is"}
    missing = evaluate.model_copy(
        update={"select": CheckpointSelection.model_validate({"best": unknown})}
    )
    cause = failed("unknown", "MetricMissing", missing, aws=aws, airflow=airflow)
    assert "has no scores[?of=='test'] | [0].is; let the script write it" in cause


def test_results_weigh_what_is_said_of_them_before_a_run(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    s3, count = aws.client("s3"), 30
    names = [f"metric_{number:02}" for number in range(20)]
    for number in range(count):
        measured = {name: math.sqrt(number + 2) / 1000 for name in ("accuracy", *names)}
        key = f"weighed/epoch-{number:04}/metrics.json"
        s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(measured).encode())
    stage = CheckpointEvaluation.model_validate(
        {
            "name": "judge",
            "checkpoints": f"s3://{BUCKET}/weighed",
            "recorded": "metrics.json",
            "metric": "accuracy",
            "direction": "max",
            "metrics": {name: {} for name in names},
        }
    )
    report = run(made("weighed", stage), on="step-functions", aws=aws, airflow=airflow)
    assert report.cause is None
    row, said = largest(history(aws, "weighed")) / count, sizes.row_bytes(stage)
    # Shown by pytest -rP.
    print(f"{row:.0f} bytes for each result, {said} expected")  # noqa: T201
    assert 0.7 * said < row < said


def trained(log: str) -> TrainingJob:
    return TrainingJob.model_validate(
        {
            "name": "train",
            "image": IMAGE,
            "local": {"command": ("echo", log)},
            "cluster": {"instance_type": "ml.m5.large"},
            "metrics": {"accuracy": "accuracy=([0-9.a-z]+)", "loss": "loss=([0-9.a-z]+)"},
        }
    )


def by_its_log(log: str, **fields: Any) -> tuple[TrainingJob, CheckpointEvaluation]:
    train = trained(log)
    judge = judged(training_job=train.outputs.job_name, metrics={"loss": {}}, **fields)
    return train, judge


def test_what_a_training_job_printed_last_decides_without_a_job(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    before = len(aws.state()["sagemaker"]["ProcessingJobs"])
    log = "accuracy=0.5 loss=2\naccuracy=0.9 loss=1.5"
    stages = by_its_log(log, threshold={"value": 0.9, "on_miss": "stop"})
    reports = everywhere(made("printed", *stages), aws, airflow)
    for report in reports.values():
        every: Any = report.outputs
        shown = every["judge"]
        # SageMaker keeps 32 bits of 0.9, which are enough for a threshold of 0.9.
        assert shown["best_metric"] == 0.8999999761581421
        assert (shown["best_loss"], shown["passed"]) == (1.5, True)
        assert shown["model"] == every["train"]["model_artifacts"]
    assert len(aws.state()["sagemaker"]["ProcessingJobs"]) == before


@pytest.mark.parametrize(
    ("log", "error", "cause"),
    [
        ("accuracy=0.8 loss=1", "BelowThreshold", "accuracy of stage judge is 0.800000011920929"),
        ("accuracy=0.9", "MetricMissing", "has no number for the metric loss"),
        ("accuracy=nan loss=1", "MetricMissing", "has no number for the metric accuracy"),
    ],
)
def test_a_training_job_that_printed_too_little_fails_the_run(
    log: str, error: str, cause: str, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    stages = by_its_log(log, threshold={"value": 0.9})
    name = f"printed-{error.lower()}-{cause[-4:]}"
    backends: Sequence[Backend] = BACKENDS if "metric loss" in cause else BY_STEPS
    told = failed(name, error, *stages, aws=aws, airflow=airflow, backends=backends)
    assert cause in told
