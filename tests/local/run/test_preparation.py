"""What a run on this machine finds in its account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.run import run
from orchestration.local.run.preparation import prepare

ROLE = "arn:aws:iam::123456789012:role/teams/registry"


def test_a_role_of_the_account_that_a_run_assumes_is_there_for_it(aws: EmbeddedAws) -> None:
    register = {
        "kind": "model_registration",
        "package_group": "arn:aws:sagemaker:us-east-1:123456789012:model-package-group/prices",
        "model_data": "s3://registry/model",
        "image": "image:1",
        "registry_role": ROLE,
    }
    pipeline = Pipeline.parse(
        {
            "name": "assuming",
            "region": "us-east-1",
            "workspace": "s3://registry/runs",
            "role": "arn:aws:iam::123456789012:role/SageMaker",
            "stages": {"register": register},
        }
    )
    for _ in range(2):
        prepare(aws, pipeline, pipeline.lower(), {}, {})
    aws.client("sts").assume_role(RoleArn=ROLE, RoleSessionName="test")


IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1"
TOKEN = {"run": "id"}
SCORING: dict[str, Any] = {
    "copy": {
        "kind": "data_staging",
        "source": {"parameter": "data"},
        "destination": {"kind": "s3", "uri": "s3://staged/all"},
    },
    "train": {
        "kind": "training_job",
        "image": IMAGE,
        "channels": {"training": "s3://channel/set"},
        "output": {"uri": {"join": ["s3://models/", TOKEN]}},
        "checkpoints": {"uri": "s3://saved/all"},
        "cluster": {"instance_type": "ml.m5.xlarge", "instance_count": 1},
    },
    "ask": {
        "kind": "aws_call",
        "service": "athena",
        "operation": "StartQueryExecution",
        "request": {
            "QueryString": "select 1",
            "ResultConfiguration": {"OutputLocation": "s3://answers/all"},
        },
    },
    "look": {
        "kind": "aws_call",
        "service": "s3",
        "operation": "HeadObject",
        "request": {"Bucket": "looked-at", "Key": "one"},
    },
    "put": {
        "kind": "aws_call",
        "service": "s3",
        "operation": "PutObject",
        "request": {"Bucket": "put-into", "Key": "one"},
    },
}


def made(aws: EmbeddedAws, stages: dict[str, Any], uploads: dict[str, Path]) -> set[str]:
    """Return the buckets that a run finds."""
    pipeline = Pipeline.parse(
        {
            "name": "buckets",
            "region": "us-east-1",
            "workspace": "s3://workspace/runs",
            "role": "arn:aws:iam::123456789012:role/SageMaker",
            "parameters": {"data": {}},
            "stages": stages,
        }
    )
    before = set(aws.state()["s3"]) - {"workspace"}
    prepare(aws, pipeline, pipeline.lower(), {"data": "s3://incoming/set"}, uploads)
    return set(aws.state()["s3"]) - before


def test_a_run_finds_the_buckets_that_it_writes_to(aws: EmbeddedAws) -> None:
    written = {"workspace", "staged", "models", "saved", "answers", "put-into"}
    assert made(aws, SCORING, {}) == written


def test_an_upload_makes_its_bucket_even_if_its_folder_is_empty(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    uploads = {"s3://filled/set": tmp_path}
    assert made(aws, {"look": SCORING["look"]}, uploads) == {"workspace", "filled"}


@pytest.mark.slow
def test_a_wrong_bucket_is_not_an_empty_one(aws: EmbeddedAws, tmp_path: Path) -> None:
    pipeline = Pipeline.parse(
        {
            "name": "slip",
            "workspace": "s3://slips/runs",
            "parameters": {"data": {}},
            "stages": {"copy": {"kind": "data_staging", "source": {"parameter": "data"}}},
        }
    )
    (tmp_path / "one.csv").write_text("1")
    ended = run(
        pipeline,
        aws=aws,
        parameters={"data": "s3://incomming/set"},
        uploads={"s3://incoming/set": tmp_path},
    )
    assert ended.error == "NoSuchBucket"
    assert "s3://incomming/set" in (ended.cause or "")
