"""Tuning jobs really run their training jobs, with values that the search chooses."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from orchestration.local import EmbeddedAws, Fault
from orchestration.local.account.stand_ins import StandIn
from orchestration.local.sagemaker.tuning.children import training_request
from orchestration.local.sagemaker.tuning.choosing import chosen
from tests.local.breaking.tuning import SPAN, finished, tuning_request
from tests.local.conftest import BUCKET, put, tar_gz
from tests.patience import PATIENCE_S

SCALES = {
    "Auto": (-1.0, 5.0),
    "Linear": (-1.0, 5.0),
    "Logarithmic": (1e-6, 10.0),
    "ReverseLogarithmic": (0.0, 0.999),
}
TAGS = [
    {"Key": "orchestration:pipeline", "Value": "sweep"},
    {"Key": "orchestration:stage", "Value": "tune"},
]
PRINT = """
import json, os, pathlib
base = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"])
told = json.loads((base / "input/config/hyperparameters.json").read_text())
print(f"loss=9 and then loss={told['loss']}")
"""


@pytest.fixture(scope="module")
def sweep(aws: EmbeddedAws) -> Iterator[EmbeddedAws]:
    stand_in = StandIn("sweep", "tune", (sys.executable, "-c", PRINT), None)
    aws.provide(stand_ins=[stand_in])
    yield aws
    aws.clear_faults()


def losses(*values: str, jobs: int | None = None, parallel: int = 1, **config: Any) -> Any:
    """Return the configuration of a grid search over losses."""
    limits = {"MaxParallelTrainingJobs": parallel}
    return {
        "Strategy": "Grid",
        "ResourceLimits": limits if jobs is None else {**limits, "MaxNumberOfTrainingJobs": jobs},
        "ParameterRanges": {
            "CategoricalParameterRanges": [{"Name": "loss", "Values": list(values)}]
        },
        **config,
    }


def started(aws: EmbeddedAws, name: str, config: dict[str, Any], **more: Any) -> Any:
    """Start a tuning job of training jobs that print their loss; return the client."""
    specification = {
        "TrainingInputMode": "File",
        "TrainingImage": "losses:1",
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
    }
    definition = {"AlgorithmSpecification": specification, **more.pop("definition", {})}
    sagemaker = aws.client("sagemaker")
    request = tuning_request(name, config=config, definition=definition, Tags=TAGS, **more)
    sagemaker.create_hyper_parameter_tuning_job(**request)
    return sagemaker


def children(aws: EmbeddedAws, name: str, **more: Any) -> list[dict[str, Any]]:
    listed = aws.client("sagemaker").list_training_jobs_for_hyper_parameter_tuning_job(
        HyperParameterTuningJobName=name, **more
    )
    return list(listed["TrainingJobSummaries"])


@pytest.mark.parametrize("scale", SCALES)
@given(seed=st.integers(0, 2**31 - 1))
def test_drawn_values_lie_in_their_ranges(scale: str, seed: int) -> None:
    low, high = SCALES[scale]
    span = {"MinValue": str(low), "MaxValue": str(high), "ScalingType": scale}
    config = {
        "Strategy": "Random",
        "RandomSeed": seed,
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 5},
        "ParameterRanges": {
            "ContinuousParameterRanges": [{"Name": "c", **span}],
            "IntegerParameterRanges": [{"Name": "i", "MinValue": "-3", "MaxValue": "4"}],
            "CategoricalParameterRanges": [{"Name": "w", "Values": ["a", "b"]}],
        },
    }
    draws = list(chosen(config, "name"))
    assert len(draws) == 5
    assert draws == list(chosen(config, "other"))
    for values in draws:
        assert low <= float(values["c"]) <= high
        assert values["i"] in {str(n) for n in range(-3, 5)}
        assert values["w"] in {"a", "b"}


def test_a_grid_is_every_combination_once() -> None:
    listed = [{"Name": "a", "Values": ["1", "2"]}, {"Name": "b", "Values": ["x", "y", "z"]}]
    config = {"Strategy": "Grid", "ParameterRanges": {"CategoricalParameterRanges": listed}}
    values = [tuple(each.values()) for each in chosen(config, "name")]
    assert values == [(a, b) for a in "12" for b in "xyz"]


def test_the_smallest_last_match_of_the_log_is_the_best(sweep: EmbeddedAws) -> None:
    sagemaker = started(
        sweep,
        "smallest",
        losses("3", "1", "2", parallel=3),
        definition={
            "CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/checkpoints"},
            "HyperParameterTuningResourceConfig": {
                "InstanceConfigs": [
                    {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
                    {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 10},
                ]
            },
        },
    )
    job = finished(sweep, "smallest")
    assert job["HyperParameterTuningJobStatus"] == "Completed"
    assert job["TrainingJobStatusCounters"]["Completed"] == 3
    assert job["ObjectiveStatusCounters"] == {"Succeeded": 3, "Pending": 0, "Failed": 0}
    best = job["BestTrainingJob"]
    assert best["TunedHyperParameters"] == {"loss": "1"}
    assert best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] == 1
    training = sagemaker.describe_training_job(TrainingJobName=best["TrainingJobName"])
    assert training["TuningJobArn"] == job["HyperParameterTuningJobArn"]
    assert training["CheckpointConfig"]["S3Uri"].endswith(f"/{best['TrainingJobName']}")
    assert training["ResourceConfig"]["InstanceType"] == "ml.m5.large"
    assert sagemaker.list_tags(ResourceArn=training["TrainingJobArn"])["Tags"] == TAGS
    ordered = children(sweep, "smallest", SortBy="FinalObjectiveMetricValue")
    assert [each["TunedHyperParameters"]["loss"] for each in ordered] == ["1", "2", "3"]
    [summary] = sagemaker.list_hyper_parameter_tuning_jobs(NameContains="smallest")[
        "HyperParameterTuningJobSummaries"
    ]
    assert (summary["Strategy"], summary["HyperParameterTuningJobStatus"]) == ("Grid", "Completed")


def test_a_search_ends_when_its_objective_is_good_enough(sweep: EmbeddedAws) -> None:
    enough = {"TargetObjectiveMetricValue": 2.5}
    started(sweep, "enough", losses("3", "2", "1", TuningJobCompletionCriteria=enough))
    job = finished(sweep, "enough")
    assert job["HyperParameterTuningJobStatus"] == "Completed"
    assert job["BestTrainingJob"]["TunedHyperParameters"] == {"loss": "2"}
    assert len(children(sweep, "enough")) <= 3


def test_a_search_gives_up_after_five_failures(sweep: EmbeddedAws) -> None:
    sweep.inject(Fault.job("hopeless-", operation="CreateTrainingJob", times=9))
    started(sweep, "hopeless", losses(*"1234567"))
    job = finished(sweep, "hopeless")
    assert job["HyperParameterTuningJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("All training jobs failed.")
    assert 5 <= job["TrainingJobStatusCounters"]["NonRetryableError"] < 7
    assert "BestTrainingJob" not in job
    assert children(sweep, "hopeless", SortBy="FinalObjectiveMetricValue") == []


def test_a_failed_training_job_does_not_end_the_search(sweep: EmbeddedAws) -> None:
    reason = "InternalServerError: We encountered an internal error."
    sweep.inject(Fault.job("partly-001", reason=reason, operation="CreateTrainingJob"))
    started(sweep, "partly", losses("1", "2"))
    job = finished(sweep, "partly")
    assert job["HyperParameterTuningJobStatus"] == "Completed"
    assert job["BestTrainingJob"]["TunedHyperParameters"] == {"loss": "2"}
    assert job["TrainingJobStatusCounters"]["RetryableError"] == 1


def test_no_more_jobs_run_at_a_time_than_allowed_and_a_stop_ends_them(sweep: EmbeddedAws) -> None:
    sweep.inject(Fault.capacity("waiting-", after_s=1e6, times=9))
    # The tuning job's own name ends where its training jobs' names go on.
    sagemaker = started(sweep, "waiting", losses(*"1234", parallel=2))
    end = time.monotonic() + PATIENCE_S
    while len(children(sweep, "waiting")) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.3)
    assert len(children(sweep, "waiting")) == 2
    named = {"HyperParameterTuningJobName": "waiting"}
    sagemaker.stop_hyper_parameter_tuning_job(**named)
    assert finished(sweep, "waiting")["HyperParameterTuningJobStatus"] == "Stopped"
    statuses = {each["TrainingJobStatus"] for each in children(sweep, "waiting")}
    assert statuses == {"Stopped"}
    with pytest.raises(ClientError, match="the tuning job is in status Stopped"):
        sagemaker.stop_hyper_parameter_tuning_job(**named)


def test_a_training_job_that_is_refused_ends_the_search_and_those_that_run(
    sweep: EmbeddedAws,
) -> None:
    sweep.inject(Fault.capacity("taken-", after_s=1e6, times=9))
    # Its name belongs to another job already.
    taken = training_request(tuning_request("taken"), "", 2, {"rate": "1"})
    del taken["TuningJobArn"]
    sweep.client("sagemaker").create_training_job(**taken)
    started(sweep, "taken", losses(*"123", parallel=3))
    job = finished(sweep, "taken")
    assert job["HyperParameterTuningJobStatus"] == "Failed"
    assert "Training job names must be unique" in job["FailureReason"]
    assert [each["TrainingJobStatus"] for each in children(sweep, "taken")] == ["Stopped"]
    sweep.client("sagemaker").stop_training_job(TrainingJobName=taken["TrainingJobName"])


def test_a_script_receives_the_values_and_the_log_says_what_is_simulated(
    aws: EmbeddedAws,
) -> None:
    script = """
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float)
    parser.add_argument("--_tuning_objective_metric")
    print(f"loss={parser.parse_known_args()[0].rate}")
    """
    uri = put(aws, "tuning/sourcedir.tar.gz", tar_gz({"train.py": script}))
    config = {
        "Strategy": "Bayesian",
        "ParameterRanges": {"ContinuousParameterRanges": [SPAN]},
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1},
        "TrainingJobEarlyStoppingType": "Auto",
    }
    request = tuning_request("scripted", config=config)
    definition = request["TrainingJobDefinition"]
    definition["StaticHyperParameters"]["sagemaker_submit_directory"] = uri
    definition["AlgorithmSpecification"] = {
        **definition["AlgorithmSpecification"],
        "MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.e-]+)"}],
    }
    aws.client("sagemaker").create_hyper_parameter_tuning_job(**request)
    best = finished(aws, "scripted")["BestTrainingJob"]
    value = best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
    assert value == pytest.approx(float(best["TunedHyperParameters"]["rate"]))
    log = aws.logs("scripted")
    assert "Bayesian search is simulated by random draws" in log
    assert "early stopping is not simulated" in log


def test_what_is_not_simulated_is_refused(aws: EmbeddedAws) -> None:
    request = tuning_request("automatic", Autotune={"Mode": "Enabled"})
    with pytest.raises(ClientError, match="does not simulate Autotune"):
        aws.client("sagemaker").create_hyper_parameter_tuning_job(**request)
