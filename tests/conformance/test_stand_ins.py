"""Images with a program of their own run by the stand-in that a stage names, on every driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import Cluster, Framework, ProcessingJob, S3Channel, StandIn, TrainingJob
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from tests.conformance.test_processing_jobs import BY_STEPS, IMAGE, everywhere, made

pytestmark = pytest.mark.slow

FOLDER = str(Path(__file__).with_name("src_stand_in"))


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket="processing")
        s3.put_object(Bucket="processing", Key="raw/0.csv", Body=b"1,2\n")
        yield embedded


def boosted(rounds: int, *command: str) -> TrainingJob:
    """A built-in algorithm, in the image of its framework."""
    return TrainingJob(
        name="boost",
        framework=Framework(name="xgboost", version="1.7-1"),
        hyperparameters={"rounds": rounds, "eta": 0.1, "verbose": True},
        channels={"train": S3Channel(uri="s3://processing/raw")},
        cluster=Cluster(instance_type="ml.m5.large"),
        local=StandIn(command=command, directory=FOLDER) if command else None,
    )


def test_an_algorithm_and_a_container_are_run_by_their_stand_ins(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    train = boosted(3, "python3", "train.py")
    look = ProcessingJob.model_validate(
        {
            "name": "look",
            "image": IMAGE,
            "arguments": ["/opt/ml/processing/output/facts"],
            "inputs": {"model": train.outputs.model_artifacts},
            "results": {"facts": {}},
            "report": {"result": "facts", "numbers": {"lines": "lines"}, "texts": {"told": "told"}},
            "cluster": {"instance_type": "ml.m5.large"},
            "local": {"command": ["python3", "look.py"], "directory": FOLDER},
        }
    )
    lost = Fault(
        "sagemaker", "CreateTrainingJob", "InternalFailure", "lost", status=500, after_effect=True
    )
    for report in everywhere(made("algorithm", train, look), aws, airflow, lost).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        # As the SageMaker Python SDK sends them to images without the toolkit: Python's str().
        assert outputs["look"]["told"] == '{"eta": "0.1", "rounds": "3", "verbose": "True"}'
        assert outputs["look"]["lines"] == 1
    jobs = aws.state()["sagemaker"]["TrainingJobs"].values()
    assert len(jobs) == len({job["TrainingJobName"] for job in jobs})
    for job in jobs:
        assert "ContainerEntrypoint" not in job["AlgorithmSpecification"]


def test_a_stand_in_that_fails_fails_the_run_with_its_own_words(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    pipeline = made("failing", boosted(0, "python3", "train.py"))
    for report in everywhere(pipeline, aws, airflow, backends=BY_STEPS).values():
        assert (report.state, report.error) == ("failed", "JobFailed")
        assert "rounds must be at least 1" in str(report.cause)


def test_without_one_the_run_fails_and_says_what_to_name(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    pipeline = made("unknown", boosted(3))
    for report in everywhere(pipeline, aws, airflow, backends=BY_STEPS).values():
        assert (report.state, report.error) == ("failed", "JobFailed")
        assert "sagemaker-xgboost:1.7-1 has a program of its own" in str(report.cause)
        assert "`local: {command: [python3, stand_in.py]" in str(report.cause)
