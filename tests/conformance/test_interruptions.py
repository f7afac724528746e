"""A spot job that loses its instances goes on behind its checkpoints, and is paid for as one."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from orchestration import ManagedSpot
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.run import run
from orchestration.stages.values import Source
from tests.conformance import pipelines

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

CODE = Path(__file__).with_name("src_spot")


def test_an_interrupted_job_goes_on_behind_its_checkpoints() -> None:
    train = pipelines.training(
        "train",
        "s3://bucket/data",
        source=Source.at(CODE, "train.py"),
        spot=ManagedSpot(max_wait_s=1200),
    )
    with EmbeddedAws(time_scale=0.003) as aws:
        storage = aws.client("s3")
        storage.create_bucket(Bucket="bucket")
        storage.put_object(Bucket="bucket", Key="data/a.txt", Body=b"a")
        aws.inject(Fault.interruption("train"))
        ended = run(
            pipelines.pipeline("spot", train),
            on="direct",
            aws=aws,
            parameters=pipelines.PARAMETERS,
            uploads={},
        )
        assert ended.state == "succeeded", ended.cause
        [job] = aws.state()["sagemaker"]["TrainingJobs"].values()
        phases = [entry["Status"] for entry in job["SecondaryStatusTransitions"]]
        begun = ["Starting", "Downloading", "Training"]
        assert phases == [*begun, "Interrupted", *begun, "Uploading", "Completed"]
        bucket, _, key = job["ModelArtifacts"]["S3ModelArtifacts"][5:].partition("/")
        packed = storage.get_object(Bucket=bucket, Key=key)["Body"].read()
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            member = archive.extractfile("model.json")
            assert member is not None
            model = json.loads(member.read())
        assert model["lost"], "nothing but checkpoints comes to other instances"
        assert model["found"]
        bucket, _, prefix = job["CheckpointConfig"]["S3Uri"][5:].partition("/")
        kept = storage.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
        steps = [entry["Key"].rpartition("/")[2] for entry in kept]
        assert steps == ["step-1.json", "step-2.json", "step-3.json"]
        assert len([c for c in ended.calls if c.operation == "CreateTrainingJob"]) == 1
