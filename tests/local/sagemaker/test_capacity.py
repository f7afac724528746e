"""Machines that are not to be had: a job that waits and fails, and quotas by instance type."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws, Fault
from tests.local.conftest import IMAGE, ROLE, finished_training, training_request, wait

SCARCE = "ml.p5.48xlarge"


def request(name: str, **resources: Any) -> dict[str, Any]:
    made = training_request(name, "s3://none")
    made["AlgorithmSpecification"]["ContainerEntrypoint"] = ["true"]
    return made | {"ResourceConfig": {"VolumeSizeInGB": 10, **resources}}


def on(instance_type: str) -> dict[str, Any]:
    return {"InstanceType": instance_type, "InstanceCount": 1}


@pytest.fixture
def scarce(aws: EmbeddedAws) -> EmbeddedAws:
    aws.inject(Fault.capacity(instance_type=SCARCE, after_s=100))
    return aws


def test_a_job_waits_for_its_machines_and_fails(scarce: EmbeddedAws) -> None:
    sagemaker = scarce.client("sagemaker")
    sagemaker.create_training_job(**request("plenty", **on("ml.m5.large")))
    assert finished_training(scarce, "plenty")["TrainingJobStatus"] == "Completed"
    sagemaker.create_training_job(**request("waits", **on(SCARCE)))
    waiting = sagemaker.describe_training_job(TrainingJobName="waits")
    assert (waiting["TrainingJobStatus"], waiting["SecondaryStatus"]) == ("InProgress", "Starting")
    ended = finished_training(scarce, "waits")
    assert ended["FailureReason"].startswith("CapacityError: Unable to provision requested ML")
    assert ended["BillableTimeInSeconds"] == 0
    assert "TrainingStartTime" not in ended


def test_a_job_that_waits_can_be_stopped(aws: EmbeddedAws) -> None:
    aws.inject(Fault.capacity(instance_type=SCARCE, after_s=100_000))
    sagemaker = aws.client("sagemaker")
    sagemaker.create_training_job(**request("waits-long", **on(SCARCE)))
    sagemaker.stop_training_job(TrainingJobName="waits-long")
    ended = finished_training(aws, "waits-long")
    assert (ended["TrainingJobStatus"], ended.get("FailureReason")) == ("Stopped", None)


def test_a_quota_is_one_of_an_instance_type_wherever_a_request_names_it(aws: EmbeddedAws) -> None:
    aws.inject(Fault.quota("ml.g5.xlarge", times=2))
    sagemaker = aws.client("sagemaker")
    group = {"InstanceGroupName": "a", **on("ml.g5.xlarge")}
    refused = (on("ml.g5.xlarge"), {"InstanceGroups": [group]})
    for number, resources in enumerate(refused):
        with pytest.raises(ClientError, match=r"'ml\.g5\.xlarge for training job") as told:
            sagemaker.create_training_job(**request(f"refused-{number}", **resources))
        assert told.value.response["Error"]["Code"] == "ResourceLimitExceeded"
    sagemaker.create_training_job(**request("allowed", **on("ml.m5.large")))
    wait(
        lambda: sagemaker.describe_training_job(TrainingJobName="allowed"),
        lambda job: job["TrainingJobStatus"] == "Completed",
    )
    assert not [name for name in aws.state()["sagemaker"]["TrainingJobs"] if "refused" in name]


def test_an_endpoint_without_machines_has_failed(aws: EmbeddedAws) -> None:
    aws.inject(Fault.capacity("no-machines"))
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model(
        ModelName="no-machines", PrimaryContainer={"Image": IMAGE}, ExecutionRoleArn=ROLE
    )
    variant = {"VariantName": "all", "ModelName": "no-machines", "InitialInstanceCount": 1}
    sagemaker.create_endpoint_config(
        EndpointConfigName="no-machines",
        ProductionVariants=[{**variant, "InstanceType": SCARCE}],
    )
    sagemaker.create_endpoint(EndpointName="no-machines", EndpointConfigName="no-machines")
    ended = wait(
        lambda: sagemaker.describe_endpoint(EndpointName="no-machines"),
        lambda endpoint: endpoint["EndpointStatus"] != "Creating",
    )
    assert ended["EndpointStatus"] == "Failed"
    assert ended["FailureReason"].startswith("CapacityError: Unable to provision requested ML")
