"""Jobs reach buckets of their region, those of other accounts where policies admit their role."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.local.conftest import BUCKET, IMAGE, ROLE, finished_training, put, training_request, wait

OWNER = "999988887777"
THEIRS, ELSEWHERE = "their-data", "data-in-oregon"
COPY = "mkdir -p /opt/ml/processing/out; cp -r /opt/ml/processing/in/. /opt/ml/processing/out"
_numbers = itertools.count()


def policy(*actions: str, principal: str = ROLE) -> str:
    """Return a policy of the owner's bucket."""
    statement = {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": list(actions)}
    places = [f"arn:aws:s3:::{THEIRS}", f"arn:aws:s3:::{THEIRS}/*"]
    return json.dumps({"Version": "2012-10-17", "Statement": [{**statement, "Resource": places}]})


@pytest.fixture(scope="module")
def theirs(aws: EmbeddedAws) -> Any:
    """Return the owner's S3, with a bucket in this region; another bucket is in another region."""
    owner, s3 = aws.client("s3", account=OWNER), aws.client("s3")
    owner.create_bucket(Bucket=THEIRS)
    s3.create_bucket(
        Bucket=ELSEWHERE, CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
    )
    for client, bucket in ((owner, THEIRS), (s3, ELSEWHERE), (s3, BUCKET)):
        client.put_object(Bucket=bucket, Key="set/one.csv", Body=b"1")
    return owner


def process(aws: EmbeddedAws, source: str, target: str, kind: str = "S3Prefix") -> dict[str, Any]:
    """Copy a source to a target in a processing job, and return the job as it has ended."""
    name = f"other-buckets-{next(_numbers)}"
    uses = {"S3Uri": source, "LocalPath": "/opt/ml/processing/in", "S3DataType": kind}
    makes = {"S3Uri": target, "LocalPath": "/opt/ml/processing/out", "S3UploadMode": "EndOfJob"}
    cluster = {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 10}
    sagemaker = aws.client("sagemaker")
    sagemaker.create_processing_job(
        ProcessingJobName=name,
        RoleArn=ROLE,
        AppSpecification={"ImageUri": IMAGE, "ContainerEntrypoint": ["sh", "-c", COPY]},
        ProcessingInputs=[{"InputName": "in", "S3Input": {**uses, "S3InputMode": "File"}}],
        ProcessingOutputConfig={"Outputs": [{"OutputName": "out", "S3Output": makes}]},
        ProcessingResources={"ClusterConfig": cluster},
    )
    job: dict[str, Any] = wait(
        lambda: sagemaker.describe_processing_job(ProcessingJobName=name),
        lambda job: job["ProcessingJobStatus"] != "InProgress",
    )
    return job


def trained(aws: EmbeddedAws, **more: Any) -> dict[str, Any]:
    """Return a training job of a container of its own, as it has ended."""
    name = f"other-buckets-{next(_numbers)}"
    program = {"TrainingImage": IMAGE, "TrainingInputMode": "File", "ContainerEntrypoint": ["true"]}
    aws.client("sagemaker").create_training_job(
        **training_request(name, "", AlgorithmSpecification=program, **more)
    )
    return finished_training(aws, name)


def test_a_policy_that_names_the_role_lets_a_job_read_and_write(
    aws: EmbeddedAws, theirs: Any
) -> None:
    theirs.put_bucket_policy(
        Bucket=THEIRS, Policy=policy("s3:ListBucket", "s3:GetObject", "s3:PutObject")
    )
    job = process(aws, f"s3://{THEIRS}/set", f"s3://{THEIRS}/out")
    assert job["ProcessingJobStatus"] == "Completed", job.get("FailureReason")
    assert theirs.get_object(Bucket=THEIRS, Key="out/one.csv")["Body"].read() == b"1"
    channel = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{THEIRS}/set"}}
    model = trained(
        aws,
        InputDataConfig=[{"ChannelName": "data", "DataSource": channel}],
        OutputDataConfig={"S3OutputPath": f"s3://{THEIRS}/models"},
    )
    assert model["TrainingJobStatus"] == "Completed", model.get("FailureReason")


def test_a_policy_for_another_role_fails_a_job_at_its_input(aws: EmbeddedAws, theirs: Any) -> None:
    theirs.put_bucket_policy(Bucket=THEIRS, Policy=policy("s3:*", principal=f"{ROLE}-of-another"))
    job = process(aws, f"s3://{THEIRS}/set", f"s3://{BUCKET}/out")
    assert job["FailureReason"] == (
        "ClientError: Data download failed for input 'in': AccessDenied: Access Denied: "
        f"s3://{THEIRS}/set"
    )


def test_a_policy_that_only_lists_fails_a_job_at_its_objects(aws: EmbeddedAws, theirs: Any) -> None:
    theirs.put_bucket_policy(Bucket=THEIRS, Policy=policy("s3:ListBucket"))
    channel = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{THEIRS}/set"}}
    for mode in ("File", "Pipe"):
        data = {"ChannelName": "data", "DataSource": channel, "InputMode": mode}
        job = trained(aws, InputDataConfig=[data])
        assert job["FailureReason"] == (
            "ClientError: Data download failed for channel 'data': AccessDenied: Access Denied: "
            f"s3://{THEIRS}/set/one.csv"
        )


def test_a_manifest_reads_no_more_than_the_job_may(aws: EmbeddedAws, theirs: Any) -> None:
    theirs.delete_bucket_policy(Bucket=THEIRS)
    manifest = put(aws, "lists/theirs", json.dumps([{"prefix": f"s3://{THEIRS}/"}, "set/one.csv"]))
    job = process(aws, manifest, f"s3://{BUCKET}/out", "ManifestFile")
    assert "AccessDenied: Access Denied" in job["FailureReason"]


@pytest.mark.parametrize(
    ("bucket", "error"), [(THEIRS, "AccessDenied"), (ELSEWHERE, "BucketRegionError")]
)
def test_results_that_cannot_be_written_fail_a_job(
    aws: EmbeddedAws, theirs: Any, bucket: str, error: str
) -> None:
    theirs.delete_bucket_policy(Bucket=THEIRS)
    target = f"s3://{bucket}/out"
    ended = (
        process(aws, f"s3://{BUCKET}/set", target),
        trained(aws, OutputDataConfig={"S3OutputPath": target}),
    )
    for job in ended:
        begin = f"ClientError: Artifact upload failed: {error}: "
        assert job.get("FailureReason", "").startswith(begin)
    checkpointed = trained(aws, CheckpointConfig={"S3Uri": target})
    assert checkpointed["FailureReason"].startswith(f"ClientError: {error}: ")


def test_inputs_of_another_region_fail_a_processing_job(aws: EmbeddedAws, theirs: Any) -> None:
    job = process(aws, f"s3://{ELSEWHERE}/set", f"s3://{BUCKET}/out")
    assert "BucketRegionError: incorrect region" in job["FailureReason"]
