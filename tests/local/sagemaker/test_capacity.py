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
    aws.inject(Fault.capacity(instance_type=SCARCE, after_s=1000))
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


def endpoint(aws: EmbeddedAws, name: str, **machines: Any) -> dict[str, Any]:
    """Create an endpoint and return what it has become."""
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model(ModelName=name, PrimaryContainer={"Image": IMAGE}, ExecutionRoleArn=ROLE)
    variant = {"VariantName": "all", "ModelName": name, "InitialInstanceCount": 2, **machines}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    return wait(
        lambda: dict(sagemaker.describe_endpoint(EndpointName=name)),
        lambda each: each["EndpointStatus"] != "Creating",
    )


def pools(*types: str) -> list[dict[str, Any]]:
    """Return pools of instance types by priority, the last of the list first."""
    listed = enumerate(types, start=1)
    return [{"InstanceType": kind, "Priority": number} for number, kind in listed][::-1]


def test_an_endpoint_without_machines_has_failed(aws: EmbeddedAws) -> None:
    aws.inject(Fault.capacity("no-machines"))
    ended = endpoint(aws, "no-machines", InstanceType=SCARCE)
    assert ended["EndpointStatus"] == "Failed"
    assert ended["FailureReason"].startswith("CapacityError: Unable to provision requested ML")


def test_an_endpoint_takes_the_next_of_its_instance_types(aws: EmbeddedAws) -> None:
    # No model is served here, and so the endpoint fails: by the container, after the machines.
    aws.inject(Fault.capacity("falls-back", instance_type=SCARCE))
    ended = endpoint(aws, "falls-back", InstancePools=pools(SCARCE, "ml.p4d.24xlarge"))
    assert "did not pass the ping health check" in ended["FailureReason"]
    for kind in ("ml.g5.xlarge", "ml.g5.2xlarge"):
        aws.inject(Fault.capacity("none-left", instance_type=kind))
    ended = endpoint(aws, "none-left", InstancePools=pools("ml.g5.xlarge", "ml.g5.2xlarge"))
    assert ended["FailureReason"].startswith("CapacityError: Unable to provision requested ML")


def test_machines_are_looked_for_no_longer_than_the_configuration_says(aws: EmbeddedAws) -> None:
    aws.inject(Fault.capacity("too-late", instance_type=SCARCE, after_s=400))
    ended = endpoint(
        aws,
        "too-late",
        InstancePools=pools(SCARCE, "ml.p4d.24xlarge"),
        VariantInstanceProvisionTimeoutInSeconds=300,
    )
    assert ended["FailureReason"].startswith("CapacityError: Unable to provision requested ML")
