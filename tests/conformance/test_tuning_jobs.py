"""``tuning_job`` does the same on every driver."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import CheckpointEvaluation, Pipeline, Source, TuningJob
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from orchestration.local.run.executions import role
from orchestration.local.run.preparation import prepare
from tests.conformance.sites import site_on, wait
from tests.conformance.test_processing_jobs import BY_STEPS, IMAGE, everywhere, made

pytestmark = pytest.mark.slow

FOLDER = str(Path(__file__).with_name("src_tuning"))
JUDGE = str(Path(__file__).with_name("src_evaluation"))
BUCKET = "processing"


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        embedded.client("s3").create_bucket(Bucket=BUCKET)
        yield embedded


def tuned(mode: str = "train", **fields: Any) -> TuningJob:
    given: dict[str, Any] = {
        "name": "tune",
        "image": IMAGE,
        "hyperparameters": {"mode": mode},
        "cluster": {"instance_type": "ml.m5.large"},
        "checkpoints": {},
        "objective": {"metric": "score", "direction": "max", "regex": "score=([0-9.]+)"},
        "ranges": {"rate": {"categorical": [0.1, 0.5, 0.8]}},
        "search": "grid",
        "limits": {"parallel": 2},
        "local": {"command": ["python3", "train.py"], "directory": FOLDER},
    }
    return TuningJob.model_validate({**given, **fields})


SEARCH = tuned("serve").model_dump(mode="json", exclude_unset=True, exclude={"name"})
JOB = {"image": IMAGE, "data": f"s3://{BUCKET}/numbers", "instance_type": "ml.m5.large"}
USED: dict[str, Any] = {
    "tune": {"kind": "tuning_job", **SEARCH, "ranges": {"rate": {"categorical": [0.1, 0.5]}}},
    "judge": {
        "kind": "checkpoint_evaluation",
        "training_job": {"ref": "tune.job_name"},
        "metric": "score",
        "direction": "max",
    },
    "evaluate": {
        "kind": "checkpoint_evaluation",
        "after": ["judge"],
        "when": {"at_least": [{"ref": "tune.objective"}, 0.9]},
        "checkpoints": {"ref": "tune.checkpoints"},
        "source": Source.at(JUDGE, "evaluate.py"),
        "metric": "accuracy",
        "direction": "max",
        **JOB,
    },
    "decide": {
        "kind": "checkpoint_evaluation",
        "tuning_job": {"ref": "tune.tuning_job_name"},
        "best_jobs": 1,
        "report": {},
        "source": Source.at(JUDGE, "evaluate.py"),
        "metric": "accuracy",
        "direction": "min",
        **JOB,
    },
    "each": {
        "kind": "tuning_job",
        **SEARCH,
        "for_each": {"items": [1, 2]},
        "hyperparameters": {"mode": "serve", "times": {"each": "item"}},
        "ranges": {"rate": {"categorical": [0.5]}},
    },
    "score": {
        "kind": "batch_transform",
        "for_each": {"items": {"ref": "each.model_artifacts"}},
        "model_data": {"each": "item"},
        "model_archive": True,
        "content_type": "text/csv",
        "accept": "text/csv",
        **JOB,
    },
}


def body(aws: EmbeddedAws, uri: str) -> bytes:
    key = uri.removeprefix(f"s3://{BUCKET}/")
    return bytes(aws.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read())


def hyperparameters(aws: EmbeddedAws, model: str) -> Any:
    with tarfile.open(fileobj=io.BytesIO(body(aws, model))) as tar:
        member = tar.extractfile("model.json")
        assert member is not None
        return json.load(member)


def test_the_best_of_three_jobs_gives_the_outputs_and_is_paid_for_once(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    search = tuned()
    job: dict[str, Any] = {**JOB, "source": Source.at(JUDGE, "evaluate.py")}
    judge = CheckpointEvaluation(
        name="judge",
        tuning_job=search.outputs.tuning_job_name,
        best_jobs=2,
        metric="accuracy",
        direction="max",
        **job,
    )
    pipeline = made("tuned", search, judge)
    aws.client("s3").put_object(Bucket=BUCKET, Key="numbers/a.csv", Body=b"10\n20\n")
    # The job is created, and the response is lost: the second request finds it.
    lost = Fault(
        "sagemaker",
        "CreateHyperParameterTuningJob",
        "InternalFailure",
        "lost",
        status=500,
        after_effect=True,
    )
    for report in everywhere(pipeline, aws, airflow, lost).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        shown = outputs["tune"]
        assert (shown["best_rate"], shown["objective"]) == ("0.5", 1)
        assert shown["job_name"].startswith(f"{shown['tuning_job_name']}-002-")
        told = hyperparameters(aws, shown["model_artifacts"])
        assert (told["rate"], told["_tuning_objective_metric"]) == ("0.5", "score")
        # By the objective, the rates are in the order 0.5, 0.8, 0.1.
        results = outputs["judge"].pop("results")
        assert [each["metric"] for each in results] == [0.25, 0.4]
        assert results[0]["training_job"] == shown["job_name"]
        assert outputs["judge"] == {
            "model": results[1]["model"],
            "best_training_job": results[1]["training_job"],
            "best_metric": 0.4,
            "passed": True,
        }
        assert hyperparameters(aws, results[1]["model"])["rate"] == "0.8"
    assert (of(aws, "HyperParameterTuningJobs"), of(aws, "TrainingJobs")) == (3, 9)
    again = run(pipeline, aws=aws, run_id="tuned-direct")
    assert again.state == "succeeded"
    assert of(aws, "TrainingJobs") == 9


def of(aws: EmbeddedAws, kind: str) -> int:
    """Count the jobs of the pipeline, beside which other tests may have theirs."""
    return len([name for name in aws.state()["sagemaker"][kind] if name.startswith("tuned-")])


def test_a_later_stage_reads_the_best_job_s_outputs(aws: EmbeddedAws) -> None:
    first = tuned(name="first", ranges={"rate": {"categorical": [0.4]}})
    second = tuned(
        name="second",
        hyperparameters={"mode": "train", "from": first.outputs.checkpoints},
        ranges={"rate": {"continuous": [0.2, 0.4]}},
        search="random",
        limits={"jobs": 2},
        warm_start={"parents": [first.outputs.tuning_job_name]},
    )
    report = run(made("chained", first, second), aws=aws, on="step-functions")
    assert (report.state, report.cause) == ("succeeded", None)
    outputs: Any = report.outputs
    told = hyperparameters(aws, outputs["second"]["model_artifacts"])
    assert told["from"].endswith(f"/first/checkpoints/{outputs['first']['job_name']}")
    assert 0.2 <= float(outputs["second"]["best_rate"]) <= 0.4


def test_stages_take_the_best_job_as_they_take_a_training_job(aws: EmbeddedAws) -> None:
    aws.client("s3").put_object(Bucket=BUCKET, Key="numbers/a.csv", Body=b"10\n20\n")
    whole = {"name": "used", "region": "us-east-1", "workspace": "s3://processing/runs"}
    report = run(Pipeline.parse({**whole, "stages": USED}), aws=aws, on="step-functions")
    assert (report.state, report.cause) == ("succeeded", None)
    assert [stage.state for stage in report.stages] == ["succeeded"] * len(USED)
    shown: Any = report.outputs
    best = shown["tune"]
    assert report.stages[0].job_names == (best["tuning_job_name"],)
    assert report.stages[0].metrics == {"score": 1, "objective": 1}
    place = f"/tune/checkpoints/{best['job_name']}/epoch-1/"
    assert shown["evaluate"]["best_checkpoint"].endswith(place)
    assert shown["evaluate"]["best_metric"] == shown["judge"]["best_metric"] == 1
    assert shown["judge"]["model"] == shown["decide"]["model"] == best["model_artifacts"]
    assert shown["decide"]["best_training_job"] == best["job_name"]
    assert (shown["decide"]["best_metric"], shown["decide"]["outcome"]) == (0.25, "promoted")
    scored = [body(aws, f"{uri}/a.csv.out") for uri in shown["score"]["location"]]
    assert scored == [b"5\n10\n", b"10\n20\n"]


def test_what_the_best_job_printed_has_a_page_about_it(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    search = tuned(ranges={"rate": {"categorical": [0.1]}})
    judge = CheckpointEvaluation.model_validate(
        {
            "name": "judge",
            "training_job": search.outputs.job_name,
            "metric": "quality",
            "direction": "max",
            # Of 32 bits, as SageMaker keeps it, 0.6 is a little more.
            "metrics": {"quality": {"path": "score", "maximum": 0.6}},
            "report": {"image": IMAGE},
        }
    )
    for report in everywhere(made("printed", search, judge), aws, airflow).values():
        assert (report.state, report.cause) == ("succeeded", None)
        outputs: Any = report.outputs
        shown = outputs["judge"]
        assert shown["outcome"] == "promoted"
        assert shown["model"] == outputs["tune"]["model_artifacts"]
        assert b"quality" in body(aws, shown["report"])
        data = json.loads(body(aws, shown["report"].replace(".html", ".json")))
        assert data["evaluations"][0]["metrics"]["quality"] == shown["best_metric"]


def test_a_search_all_of_whose_jobs_fail_fails_the_run(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    for report in everywhere(made("fails", tuned("fail")), aws, airflow).values():
        assert (report.state, report.error) == ("failed", "JobFailed")
        assert "All training jobs failed." in str(report.cause)
        counts = "0 training jobs completed, 3 failed, 0 failed inside SageMaker, 0 stopped"
        assert str(report.cause).endswith(f"; {counts}")


def test_another_search_follows_one_that_failed_where_the_stage_asks_for_it(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    stage = tuned(ranges={"rate": {"categorical": [0.5]}}, retry={"attempts": 2})
    # Long names are cut, with room for the number.
    pipeline = made("retried-in-the-second-search", stage)
    fails = Fault.job("retried-in", operation="CreateHyperParameterTuningJob")
    for report in everywhere(pipeline, aws, airflow, fails, backends=BY_STEPS).values():
        assert (report.state, report.cause) == ("succeeded", None)
        outputs: Any = report.outputs
        name = outputs["tune"]["tuning_job_name"]
        assert len(name) <= 32
        assert name.endswith("-2")


def test_a_metric_that_no_job_gives_fails_the_run(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    pipeline = made("silent", tuned("silent", ranges={"rate": {"categorical": [0.1]}}))
    for report in everywhere(pipeline, aws, airflow, backends=BY_STEPS).values():
        assert (report.state, report.error) == ("failed", "JobFailed")
        assert "No objective metrics found after running 1 training jobs" in str(report.cause)


def test_a_tuning_job_that_is_stopped_fails_the_run(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    pipeline = made("stopped", tuned("stop", ranges={"rate": {"categorical": [0.1, 0.5]}}))
    for report in everywhere(pipeline, aws, airflow).values():
        assert (report.state, report.error) == ("failed", "JobFailed")
        counts = "0 training jobs completed, 0 failed, 0 failed inside SageMaker, 2 stopped"
        assert str(report.cause).endswith(f" ended as Stopped: {counts}")
    jobs = aws.state()["sagemaker"]["TrainingJobs"]
    stopped = [job for name, job in jobs.items() if name.startswith("stopped-tune-")]
    assert {job["TrainingJobStatus"] for job in stopped} == {"Stopped"}


def test_an_aborted_execution_leaves_neither_the_search_nor_its_jobs(aws: EmbeddedAws) -> None:
    pipeline = made("aborted", tuned("wait"))
    parameters = {"role": role(aws, "SageMakerExecution", "sagemaker.amazonaws.com")}
    prepare(aws, pipeline, pipeline.lower(), parameters, {})
    site = site_on(aws, pipeline, parameters)

    def statuses(kind: str) -> list[str]:
        jobs = aws.state()["sagemaker"][f"{kind}Jobs"]
        return [j[f"{kind}JobStatus"] for name, j in jobs.items() if name.startswith("aborted-")]

    execution = site.start()
    wait(lambda: statuses("Training") == ["InProgress"] * 2)
    site.stop(execution)
    wait(lambda: statuses("HyperParameterTuning") == ["Stopped"])
    assert statuses("Training") == ["Stopped"] * 2


def test_a_refused_request_fails_the_run(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    pipeline = made("refused", tuned(warm_start={"parents": ["never-was"]}))
    for report in everywhere(pipeline, aws, airflow, backends=BY_STEPS).values():
        assert report.state == "failed"
        assert "never-was" in str(report.cause)
    assert not [n for n in aws.state()["sagemaker"]["TrainingJobs"] if n.startswith("refused")]
