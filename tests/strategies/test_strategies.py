"""Strategies become the hyperparameters that SageMaker's own SDK sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestration import MPI, SMDDP, NoStrategy, Source, TorchDistributed, TrainingJob, parameter
from orchestration.expressions import Join
from orchestration.stages import Context
from orchestration.strategies import Strategy, problems
from orchestration.strategies.models import world

DATA = Path(__file__).parents[1] / "data" / "sdk_requests"
# Of the SDK's own doing: where it logs and runs. Where the code lies and the job's name are ours.
OTHERS = {
    "sagemaker_container_log_level",
    "sagemaker_region",
    "sagemaker_job_name",
    "sagemaker_submit_directory",
}
CASES: dict[str, Strategy] = {
    "pt_torchrun_gpu": TorchDistributed(),
    "pt_smddp": SMDDP(),
    "pt_mpi": MPI(processes_per_host=8, custom_mpi_options="--NCCL_DEBUG INFO"),
    "pt_plain_cpu": NoStrategy(),
}


def request(strategy: Strategy, cluster: dict[str, Any], **further: Any) -> dict[str, Any]:
    """The request of a training job with code of its own."""
    stage = TrainingJob(
        name="train",
        image="image",
        source=Source(entry_point="train.py", uri="s3://code/x"),
        strategy=strategy,
        cluster=cluster,  # type: ignore[arg-type]  # as a file gives it
        **further,
    )
    assert not list(stage.check())
    [step] = stage.lower(Context(pipeline="p", workspace="s3://b/p", role="r")).steps
    return dict(step.operation.request)  # type: ignore[union-attr]  # the only step is a call


@pytest.mark.parametrize("case", CASES)
def test_hyperparameters_are_those_of_the_sdk(case: str) -> None:
    theirs = json.loads((DATA / f"{case}.json").read_text(encoding="utf-8"))["request"]
    resources = theirs["ResourceConfig"]
    cluster = {
        "instance_type": resources["InstanceType"],
        "instance_count": resources["InstanceCount"],
    }
    own = {
        name: json.loads(value)
        for name, value in theirs["HyperParameters"].items()
        if not name.startswith("sagemaker_")
    }
    ours = request(CASES[case], cluster, hyperparameters=own)["HyperParameters"]
    expected = {k: v for k, v in theirs["HyperParameters"].items() if k not in OTHERS}
    assert {k: v for k, v in ours.items() if k not in OTHERS} == expected
    assert ours.keys() | OTHERS == theirs["HyperParameters"].keys()


def test_an_instance_type_from_a_parameter_is_sent_as_it_is() -> None:
    cluster = {"instance_type": parameter("instance_type")}
    sent = request(TorchDistributed(), cluster)["HyperParameters"]
    assert sent["sagemaker_instance_type"] == Join((parameter("instance_type"),))


def test_processes_on_a_cpu_cluster_are_told_to_the_toolkit() -> None:
    cluster = {"instance_type": "ml.c5.xlarge"}
    sent = request(TorchDistributed(processes_per_host=2), cluster)["HyperParameters"]
    assert sent["sagemaker_mpi_num_of_processes_per_host"] == "2"


@pytest.mark.parametrize(
    ("strategy", "instance_type", "count", "message"),
    [
        (SMDDP(), "ml.p5.48xlarge", 2, "SMDDP does not run on ml.p5.48xlarge; it runs on"),
        (SMDDP(), "ml.trn1.32xlarge", 2, "SMDDP does not run on"),
        (SMDDP(), "ml.p4d.24xlarge", 1, "SMDDP needs at least 2 instances"),
        (TorchDistributed(processes_per_host=2), "ml.g5.2xlarge", 1, "one process per accelerator"),
        (TorchDistributed(processes_per_host=2), "ml.trn1.2xlarge", 1, "one process per accel"),
        (MPI(), "ml.trn1.32xlarge", 2, "use torch_distributed on Trainium"),
    ],
)
def test_a_strategy_that_can_not_work_there_is_refused(
    strategy: Strategy, instance_type: str, count: int, message: str
) -> None:
    [problem] = problems(strategy, instance_type, count)
    assert message in problem


@pytest.mark.parametrize(
    ("strategy", "instance_type", "count"),
    [
        (SMDDP(), "ml.p4d.24xlarge", 2),
        (SMDDP(), "ml.p4de.24xlarge", parameter("count")),
        (SMDDP(), parameter("instance_type"), 1),
        (TorchDistributed(), "ml.trn1.32xlarge", 4),
        (TorchDistributed(processes_per_host=4), "ml.c5.xlarge", 1),
        (MPI(processes_per_host=8), "ml.p3.16xlarge", 2),
        (NoStrategy(), "ml.p5.48xlarge", 2),
    ],
)
def test_what_can_work_is_not_refused(strategy: Strategy, instance_type: Any, count: Any) -> None:
    assert problems(strategy, instance_type, count) == []


@pytest.mark.parametrize(
    ("strategy", "devices", "processes"),
    [
        (TorchDistributed(), 8, 16),
        (TorchDistributed(processes_per_host=3), None, 6),
        (TorchDistributed(), None, None),
        (SMDDP(), 8, 16),
        (MPI(processes_per_host=4), 8, 8),
        (NoStrategy(), 8, 2),
    ],
)
def test_world_size(strategy: Strategy, devices: int | None, processes: int | None) -> None:
    assert world(strategy, 2, devices) == processes


def test_strategies_are_frozen_and_know_their_fields() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        MPI().processes_per_host = 2  # type: ignore[misc]  # what is tested
    with pytest.raises(ValidationError, match="Extra inputs"):
        MPI.model_validate({"processes": 2})
