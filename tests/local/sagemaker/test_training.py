"""Training jobs really run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws, Fault
from tests.local.conftest import (
    BUCKET,
    finished_training,
    keys,
    put,
    read,
    tar_gz,
    training_request,
    wait,
)

DISTRIBUTED = """
    import json, os, pathlib, time
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    total = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(total)
    rank, world = dist.get_rank(), dist.get_world_size()
    base = pathlib.Path(os.environ["CHECKPOINTS"])
    seen = sorted(p.name for p in base.iterdir())
    data = sorted(p.name for p in pathlib.Path(os.environ["SM_CHANNEL_TRAIN"]).iterdir())
    if rank == 0:
        (base / "step-1.json").write_text(json.dumps({"total": total.item()}))
        while not pathlib.Path(os.environ["SEEN"]).exists():
            time.sleep(0.02)
        pathlib.Path(os.environ["SM_MODEL_DIR"], "model.json").write_text(json.dumps({
            "world": world, "total": total.item(), "seen": seen, "data": data,
            "gpus": os.environ["SM_NUM_GPUS"], "colour": os.environ["COLOUR"],
            "hosts": json.loads(os.environ["SM_HOSTS"])}))
        print("validation_loss: 0.5"); print("validation_loss: 0.25")
    dist.barrier()
    dist.destroy_process_group()
"""


def test_two_hosts_train_together_and_leave_their_artifacts(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    script = put(aws, "code/distributed.tar.gz", tar_gz({"train.py": DISTRIBUTED}))
    for name in ("a.txt", "b.txt", "c.txt"):
        put(aws, f"data/train/{name}", name)
    put(aws, "checkpoints/two-hosts/step-0.json", "{}")
    request = training_request(
        "two-hosts",
        script,
        HyperParameters={"sagemaker_torch_distributed_enabled": "true"},
        ResourceConfig={
            "InstanceType": "ml.p5.48xlarge",
            "InstanceCount": 2,
            "VolumeSizeInGB": 10,
        },
        InputDataConfig=[_channel("train", "data/train", "ShardedByS3Key")],
        CheckpointConfig={
            "S3Uri": f"s3://{BUCKET}/checkpoints/two-hosts",
            "LocalPath": "/opt/ml/checkpoints",
        },
        Environment={
            "CHECKPOINTS": "/opt/ml/checkpoints",
            "COLOUR": "red",
            "SEEN": f"{tmp_path}/seen",
        },
        RetryStrategy={"MaximumRetryAttempts": 2},
        Tags=[{"Key": "team", "Value": "vision"}],
    )
    request["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": "loss", "Regex": r"validation_loss: ([0-9.]+)"}
    ]
    client = aws.client("sagemaker")
    arn = client.create_training_job(**request)["TrainingJobArn"]
    in_s3 = wait(
        lambda: {"keys": keys(aws, "checkpoints/two-hosts"), **_status(aws, "two-hosts")},
        lambda now: len(now["keys"]) > 1 or now["status"] != "InProgress",
    )
    assert in_s3["status"] == "InProgress", "checkpoints reach S3 while the job runs"
    (tmp_path / "seen").touch()
    job = finished_training(aws, "two-hosts")
    assert job["TrainingJobStatus"] == "Completed", aws.logs("two-hosts")
    result = _model(aws, job)
    assert (result["world"], result["total"], result["gpus"]) == (4, 10.0, "2")
    assert result["seen"] == ["step-0.json"]
    assert result["data"] == ["a.txt", "c.txt"]
    assert len(result["hosts"]) == 2
    assert result["colour"] == "red"
    assert job["FinalMetricDataList"][0]["Value"] == 0.25
    assert job["Environment"] == request["Environment"]
    assert job["RetryStrategy"] == {"MaximumRetryAttempts": 2}
    assert [entry["Status"] for entry in job["SecondaryStatusTransitions"]] == [
        "Starting",
        "Downloading",
        "Training",
        "Uploading",
        "Completed",
    ]
    assert client.list_tags(ResourceArn=arn)["Tags"] == request["Tags"]


def test_a_script_that_fails_tells_why(aws: EmbeddedAws) -> None:
    script = put(aws, "code/bad.tar.gz", tar_gz({"train.py": "raise ValueError('no such loss')"}))
    aws.client("sagemaker").create_training_job(**training_request("bad", script))
    job = finished_training(aws, "bad")
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("AlgorithmError: ExecuteUserScriptError")
    assert "no such loss" in job["FailureReason"]


def test_a_stopped_job_keeps_what_it_wrote(aws: EmbeddedAws) -> None:
    script = put(
        aws,
        "code/slow.tar.gz",
        tar_gz(
            {
                "train.py": """
                    import os, pathlib, time
                    pathlib.Path(os.environ["SM_MODEL_DIR"], "w").write_text("half")
                    print("ready", flush=True)
                    time.sleep(60)
                """
            }
        ),
    )
    client = aws.client("sagemaker")
    client.create_training_job(**training_request("slow", script))
    wait(lambda: {"logs": aws.logs("slow")}, lambda now: "ready" in now["logs"])
    client.stop_training_job(TrainingJobName="slow")
    job = finished_training(aws, "slow")
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert keys(aws, "output/slow/") == ["output/slow/output/model.tar.gz"]


def test_a_job_that_runs_for_too_long_says_which_limit_ended_it(aws: EmbeddedAws) -> None:
    script = put(aws, "code/long.tar.gz", tar_gz({"train.py": "import time; time.sleep(600)"}))
    request = training_request("long", script, StoppingCondition={"MaxRuntimeInSeconds": 1})
    aws.client("sagemaker").create_training_job(**request)
    job = finished_training(aws, "long")
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert "longer than its MaxRuntimeInSeconds of 1 s" in job["FailureReason"]
    assert job["SecondaryStatusTransitions"][-1]["StatusMessage"] == job["FailureReason"]


def test_a_job_without_data_fails_as_on_sagemaker(aws: EmbeddedAws) -> None:
    put(aws, "empty/", "")
    request = training_request("no-data", "s3://x/y", InputDataConfig=[_channel("train", "empty/")])
    aws.client("sagemaker").create_training_job(**request)
    job = finished_training(aws, "no-data")
    assert "No S3 objects found under S3 URL" in job["FailureReason"]


def test_a_key_that_is_a_file_and_a_folder_fails_the_job(aws: EmbeddedAws) -> None:
    put(aws, "clash/a", "file")
    put(aws, "clash/a/b", "file in a folder")
    request = training_request("clash", "s3://x/y", InputDataConfig=[_channel("train", "clash")])
    aws.client("sagemaker").create_training_job(**request)
    reason = finished_training(aws, "clash")["FailureReason"]
    assert reason.startswith("ClientError: Data download failed")
    assert "no object may be both a file and the folder of other objects" in reason


def test_a_key_with_two_slashes_fails_the_job(aws: EmbeddedAws) -> None:
    put(aws, "slashes/a//b", "file")
    channel = _channel("train", "slashes")
    request = training_request("slashes", "s3://x/y", InputDataConfig=[channel])
    aws.client("sagemaker").create_training_job(**request)
    reason = finished_training(aws, "slashes")["FailureReason"]
    assert "has an illegal char sub-sequence '//' in it" in reason


def test_an_injected_fault_fails_a_job_without_running_it(aws: EmbeddedAws) -> None:
    aws.inject(Fault.capacity("unlucky"))
    aws.client("sagemaker").create_training_job(**training_request("unlucky-1", "s3://x/y"))
    job = finished_training(aws, "unlucky-1")
    assert job["FailureReason"].startswith("CapacityError: ")


def test_what_would_be_done_otherwise_than_on_sagemaker_is_refused(aws: EmbeddedAws) -> None:
    request = training_request("algorithm", "s3://x/y")
    request["AlgorithmSpecification"] = {"AlgorithmName": "mine", "TrainingInputMode": "File"}
    with pytest.raises(
        ClientError, match="the code of AlgorithmName is unknown, and the embedded AWS runs"
    ):
        aws.client("sagemaker").create_training_job(**request)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"TrainingJobName": "bad"}, "ResourceInUse", "already exists"),
        ({"TrainingJobName": "a_b"}, "ValidationException", "Value 'a_b' at 'trainingJobName'"),
        ({"EnableManagedSpotTraining": True}, "ValidationException", "MaxWaitTimeInSeconds"),
        ({"Nonsense": 1}, "ValidationException", "Nonsense"),
    ],
)
def test_requests_are_refused_as_on_sagemaker(
    aws: EmbeddedAws, change: dict[str, Any], code: str, message: str
) -> None:
    request = {**training_request("bad", "s3://x/y"), **change}
    with pytest.raises(ClientError) as raised:
        _raw(aws, "CreateTrainingJob", request)
    assert raised.value.response["Error"]["Code"] == code
    assert message in raised.value.response["Error"]["Message"]


def _raw(aws: EmbeddedAws, operation: str, request: dict[str, Any]) -> Any:
    """Send a request without botocore's own check."""
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "sagemaker",
        endpoint_url=aws.endpoint_url,
        region_name=aws.region,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(parameter_validation=False),
    )
    known = client.meta.service_model.operation_model(operation).input_shape.members
    extra = {key: value for key, value in request.items() if key not in known}

    def add(params: dict[str, Any], **_: Any) -> None:
        params["body"] = json.dumps({**json.loads(params["body"]), **extra}).encode()

    client.meta.events.register(f"before-call.sagemaker.{operation}", add)
    return client.create_training_job(**{k: v for k, v in request.items() if k in known})


def _channel(name: str, prefix: str, distribution: str = "FullyReplicated") -> dict[str, Any]:
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": f"s3://{BUCKET}/{prefix}",
        "S3DataDistributionType": distribution,
    }
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def _status(aws: EmbeddedAws, name: str) -> dict[str, Any]:
    job = aws.client("sagemaker").describe_training_job(TrainingJobName=name)
    return {"status": job["TrainingJobStatus"], "reason": job.get("FailureReason")}


def _model(aws: EmbeddedAws, job: dict[str, Any]) -> Any:
    import io
    import tarfile

    uri = job["ModelArtifacts"]["S3ModelArtifacts"]
    content = read(aws, uri.removeprefix(f"s3://{BUCKET}/"))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        file = archive.extractfile("model.json")
        assert file is not None
        return json.load(file)
