"""Whatever goes wrong, every driver does the same: pay once, leave nothing, go no further."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration import MPI, SMDDP, Cluster, Pipeline, parameter, run_id
from orchestration.backends import stepfunctions
from orchestration.backends.airflow import render as render_dag
from orchestration.backends.airflow import to_json
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from tests.conformance import normal, pipelines
from tests.conformance.test_conformance import (
    BACKENDS,
    Backend,
    Outcome,
    agree,
    data,
    in_order,
    jobs,
)
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

CREATIONS = {
    "fsx": ("CreateFileSystem", "CreateDataRepositoryAssociation", "DeleteFileSystem"),
    "sagemaker": (
        "CreateTrainingJob",
        "CreateProcessingJob",
        "CreateModel",
        "CreateEndpointConfig",
        "CreateEndpoint",
        "UpdateEndpoint",
    ),
}
POLLS = (
    ("fsx", "DescribeFileSystems"),
    ("fsx", "DescribeDataRepositoryAssociations"),
    ("sagemaker", "DescribeTrainingJob"),
    ("sagemaker", "DescribeProcessingJob"),
    ("sagemaker", "DescribeEndpoint"),
)
Suffer = Callable[..., dict[Backend, Outcome]]


def lost(service: str, operation: str) -> Fault:
    """A call that takes effect, and whose response never comes."""
    code = "InternalServerError" if service == "fsx" else "InternalFailure"
    return Fault(service, operation, code, "connection lost", status=500, after_effect=True)


def throttled(service: str, operation: str, times: int = 2) -> Fault:
    return Fault(service, operation, "ThrottlingException", "Rate exceeded", times=times)


def all_lost() -> list[Fault]:
    return [lost(service, operation) for service in CREATIONS for operation in CREATIONS[service]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data set, and a model."""
    made = data(tmp_path)
    (made / "model/code").mkdir(parents=True)
    (made / "model/model.json").write_text(json.dumps({"score": 0.7}))
    shutil.copy(pipelines.SOURCE / "inference.py", made / "model/code")
    return made


@pytest.fixture
def everywhere(folder: Path, airflow: LocalAirflow) -> Suffer:
    def suffer(pipeline: Pipeline, *runs: list[Fault]) -> dict[Backend, Outcome]:
        outcomes = {b: endure(pipeline, b, folder, airflow, runs) for b in BACKENDS}
        for outcome in outcomes.values():
            for report in outcome.reports:
                in_order(pipeline, list(report.calls))
            paid_once(outcome)
            assert outcome.state["fsx"]["FileSystems"] == {}
        return outcomes

    return suffer


def endure(
    pipeline: Pipeline,
    backend: Backend,
    folder: Path,
    airflow: LocalAirflow,
    runs: tuple[list[Fault], ...],
) -> Outcome:
    """Run a pipeline once for each list of faults, in one account."""
    with EmbeddedAws(time_scale=0.005) as aws:
        reports = []
        for faults in runs:
            for fault in faults:
                aws.inject(fault)
            reports.append(start(pipeline, backend, aws, folder, airflow))
        return Outcome(reports, [c for r in reports for c in r.calls], aws.state())


def start(
    pipeline: Pipeline,
    backend: Backend,
    aws: EmbeddedAws,
    folder: Path,
    airflow: LocalAirflow | None = None,
) -> Any:
    given = pipelines.PARAMETERS
    uploads = {given["data"]: folder}
    return run(pipeline, on=backend, parameters=given, aws=aws, uploads=uploads, airflow=airflow)


def paid_once(outcome: Outcome) -> None:
    """No run has asked for a job or an endpoint's update under two names."""
    for report in outcome.reports:
        sent = {
            (c.operation, normal.anonymous(c.request), json.dumps(c.request, sort_keys=True))
            for c in report.calls
            if c.operation.startswith(("Create", "Update", "Delete"))
        }
        assert max(Counter(part[:2] for part in sent).values(), default=0) <= 1
    assert len(outcome.state["sagemaker"]["TrainingJobs"]) <= len(outcome.reports)


def failed(operation: str, outcome: Outcome) -> list[str]:
    return [c.error_code for c in outcome.calls if c.operation == operation and c.error_code]


@pytest.mark.thorough
def test_lost_responses_and_throttled_polls_cost_nothing(everywhere: Suffer) -> None:
    polls = [throttled(*poll) for poll in POLLS]
    outcomes = everywhere(pipelines.file_system(), [*all_lost(), *polls])
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert failed("CreateTrainingJob", outcome) == ["InternalFailure", "ResourceInUse"]
        assert len(outcome.state["sagemaker"]["TrainingJobs"]) == 1
        assert len(outcome.state["sagemaker"]["ProcessingJobs"]) == 1
        names = {stage.name: len(stage.job_names) for stage in outcome.last.stages}
        assert names == {"staging": 0, "train": 1, "evaluate": 1}


@pytest.mark.thorough
def test_an_endpoint_survives_lost_responses_and_tells_of_a_roll_back(everywhere: Suffer) -> None:
    config = "endpoint configuration"
    outcomes = everywhere(
        # The same again would make and update nothing.
        pipelines.deployed(environment={"RUN": run_id()}),
        [
            Fault.unseen("CreateEndpointConfig", "model"),
            Fault.unseen("CreateEndpoint", config, times=2),
            *all_lost(),
            throttled("sagemaker", "DescribeEndpoint"),
        ],
        [Fault.unseen("UpdateEndpoint", config, times=2), *all_lost()],
        [Fault.job("deployed", operation="CreateEndpoint"), throttled("sagemaker", "CreateModel")],
    )
    for outcome in outcomes.values():
        states = [(report.state, report.error) for report in outcome.reports]
        expected = ("failed", "EndpointRolledBack")
        assert states == [("succeeded", None), ("succeeded", None), expected], outcome.last.cause
        assert len(outcome.state["sagemaker"]["Endpoints"]) == 1
        assert failed("CreateEndpointConfig", outcome).count("ValidationException") == 3
        assert failed("CreateEndpoint", outcome).count("ValidationException") == 3
        assert failed("UpdateEndpoint", outcome).count("ValidationException") == 3
        assert not [c for c in outcome.last.calls if c.operation == "InvokeEndpoint"]
    agree(outcomes)


def test_a_job_without_capacity_leaves_no_file_system_in_spite_of_outages(
    everywhere: Suffer,
) -> None:
    outages = [
        throttled("fsx", "DescribeDataRepositoryAssociations", 12),
        throttled("sagemaker", "DescribeTrainingJob"),
        throttled("fsx", "DeleteFileSystem", 7),
    ]
    outcomes = everywhere(pipelines.file_system(), [Fault.capacity("train"), *outages])
    agree(outcomes)
    for outcome in outcomes.values():
        assert outcome.last.error == "JobFailed"
        assert "CapacityError" in str(outcome.last.cause)
        assert not jobs(outcome, "CreateProcessingJob")
        # The stage whose file system it read has done its work.
        stages = {stage.name: stage.state for stage in outcome.last.stages}
        assert stages == {"staging": "succeeded", "train": "failed", "evaluate": "not reached"}


@pytest.mark.thorough
def test_a_refused_job_fails_the_run_and_leaves_no_file_system(everywhere: Suffer) -> None:
    refused = Fault("sagemaker", "CreateTrainingJob", "ResourceLimitExceeded", "limit is 0")
    unanswered = replace(lost("fsx", "CreateFileSystem"), times=6)
    outcomes = everywhere(pipelines.file_system(), [refused, unanswered])
    for outcome in outcomes.values():
        assert outcome.last.state == "failed"
        assert "ResourceLimitExceeded" in str(outcome.last.error)
        assert "limit is 0" in str(outcome.last.cause)
        assert not jobs(outcome, "CreateProcessingJob")
    assert len({str(normal.changes(outcome.calls)) for outcome in outcomes.values()}) == 1


def test_a_file_system_of_someone_else_is_read_and_kept(
    folder: Path, airflow: LocalAirflow
) -> None:
    outcomes = {}
    for backend in BACKENDS:
        with EmbeddedAws(time_scale=0.005) as aws:
            system = kept_file_system(aws, folder)
            report = start(pipelines.attached(system), backend, aws, folder, airflow)
            outcomes[backend] = Outcome([report], list(report.calls), aws.state())
        assert report.state == "succeeded", report.cause
        assert list(outcomes[backend].state["fsx"]["FileSystems"]) == [system]
    agree(outcomes)


def kept_file_system(aws: EmbeddedAws, folder: Path) -> str:
    """A file system with data at ``/kept``, as an administrator made it long ago."""
    s3, fsx = aws.client("s3"), aws.client("fsx")
    s3.create_bucket(Bucket="archive")
    aws.provide(subnets=["subnet-0123abcd"])
    s3.put_object(Bucket="archive", Key="set/train/one.csv", Body=b"one")
    made = fsx.create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=["subnet-0123abcd"],
        FileSystemTypeVersion="2.15",
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )
    system = str(made["FileSystem"]["FileSystemId"])
    _until(lambda: fsx.describe_file_systems()["FileSystems"][0]["Lifecycle"] == "AVAILABLE")
    fsx.create_data_repository_association(
        FileSystemId=system,
        FileSystemPath="/kept",
        DataRepositoryPath="s3://archive/set/",
        BatchImportMetaDataOnCreate=True,
    )
    # An association is available before what it links can be read.
    imports = fsx.describe_data_repository_tasks
    _until(lambda: [t["Lifecycle"] for t in imports()["DataRepositoryTasks"]] == ["SUCCEEDED"])
    return system


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_two_runs_at_once_do_not_mix(folder: Path) -> None:
    made = [scored("one", "0.4"), scored("two", "0.9")]
    with EmbeddedAws(time_scale=0.005) as aws, ThreadPoolExecutor() as pool:
        reports = list(pool.map(lambda p: start(p, "step-functions", aws, folder), made))
        state = aws.state()["sagemaker"]
    for report, score in zip(reports, (0.4, 0.9), strict=True):
        assert report.state == "succeeded", report.cause
        assert report.outputs["deploy"]["answer"]["score"] == score
        stages = {stage.name: stage.job_names for stage in report.stages}
        for stage in ("train", "evaluate"):
            assert [n.rpartition("-")[0] for n in stages[stage]] == [f"{report.pipeline}-{stage}"]
    assert sorted(state["Endpoints"]) == ["one-deploy", "two-deploy"]


def scored(name: str, score: str) -> Pipeline:
    train = pipelines.training(
        "train", "s3://incoming/set/train", hyperparameters={"scores": score}
    )
    evaluate = pipelines.evaluation("evaluate", train)
    deploy = pipelines.deployment("deploy", evaluate.outputs.best_checkpoint)
    return pipelines.pipeline(name, train, evaluate, deploy)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            MPI(processes_per_host=8),
            {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "8"},
        ),
        (
            SMDDP(custom_mpi_options="-verbose"),
            {
                "sagemaker_distributed_dataparallel_enabled": "true",
                "sagemaker_instance_type": '"ml.p4d.24xlarge"',
                "sagemaker_distributed_dataparallel_custom_mpi_options": '"-verbose"',
            },
        ),
    ],
    ids=["mpi", "smddp"],
)
def test_strategies_over_mpirun_make_the_same_request(
    strategy: MPI | SMDDP, expected: dict[str, str]
) -> None:
    cluster = Cluster(instance_type="ml.p4d.24xlarge", instance_count=2)
    train = pipelines.training("train", parameter("data"), strategy=strategy, cluster=cluster)
    workflow = pipelines.pipeline("strategies", train).lower()
    machine = json.loads(json.dumps(stepfunctions.render(workflow)))
    dag = json.loads(to_json(render_dag(workflow)))
    states = machine["States"]["train-job"]["Arguments"]
    airflow = dag["tasks"]["train"]["arguments"]["config"]
    assert states["ResourceConfig"] == airflow["ResourceConfig"]
    for request in (states, airflow):
        sent = request["HyperParameters"]
        assert {name: sent[name] for name in expected} == expected
    assert set(states["HyperParameters"]) == set(airflow["HyperParameters"])
