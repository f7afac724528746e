"""Embedded accounts for the tests: one for most of them, since starting one takes a second."""

from __future__ import annotations

import io
import tarfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import pytest

from orchestration.local import EmbeddedAws
from orchestration.local.s3 import concurrency
from tests.patience import PATIENCE_S

ROLE = "arn:aws:iam::123456789012:role/pipeline"
IMAGE = "orchestration.local/pytorch:2"
BUCKET = "embedded-bucket"
SUBNET = "subnet-0123456789abcdef0"
GROUP = "sg-0123456789abcdef0"
Seen = TypeVar("Seen")


def install_for_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install in this process, until the test ends, what keeps objects readable in a server's."""
    for kind, name, _ in concurrency.seams():
        monkeypatch.setattr(kind, name, getattr(kind, name))
    concurrency.install()


def prepare(aws: EmbeddedAws) -> None:
    """Create the bucket, the role and the network that the tests' requests name."""
    aws.client("s3").create_bucket(Bucket=BUCKET)
    aws.provide(roles=[ROLE], subnets=[SUBNET], security_groups=[GROUP])


@pytest.fixture(scope="session")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.005, devices_per_host=2) as embedded:
        prepare(embedded)
        yield embedded


def tar_gz(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            text = textwrap.dedent(content).encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return buffer.getvalue()


def put(aws: EmbeddedAws, key: str, content: str | bytes) -> str:
    aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=content)
    return f"s3://{BUCKET}/{key}"


def keys(aws: EmbeddedAws, prefix: str) -> list[str]:
    listed = aws.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return [entry["Key"] for entry in listed.get("Contents", [])]


def read(aws: EmbeddedAws, key: str) -> bytes:
    return bytes(aws.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read())


def wait(
    describe: Callable[[], Seen],
    done: Callable[[Seen], bool],
    *,
    timeout_s: float = PATIENCE_S,
) -> Seen:
    end = time.monotonic() + timeout_s
    while not done(found := describe()):
        assert time.monotonic() < end, f"still waiting after {timeout_s} s: {found}"
        time.sleep(0.05)
    return found


def finished_training(aws: EmbeddedAws, name: str) -> dict[str, Any]:
    return wait(
        lambda: aws.client("sagemaker").describe_training_job(TrainingJobName=name),
        lambda job: job["TrainingJobStatus"] in ("Completed", "Failed", "Stopped"),
    )


def training_request(name: str, script_uri: str, **more: Any) -> dict[str, Any]:
    hyperparameters = {
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": script_uri,
        **more.pop("HyperParameters", {}),
    }
    return {
        "TrainingJobName": name,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "RoleArn": ROLE,
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {
            "InstanceType": "ml.m5.large",
            "InstanceCount": 1,
            "VolumeSizeInGB": 10,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "HyperParameters": hyperparameters,
        **more,
    }
