"""Buckets that a pipeline names: there, and in the region of its jobs."""

from __future__ import annotations

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import TRAINING, Examine, pipeline


def test_buckets_that_are_there_are_no_finding(found: Examine) -> None:
    assert found(pipeline(), "buckets") == []


def test_a_missing_bucket_fails_the_run(found: Examine) -> None:
    [finding] = found(pipeline(TRAINING, ("s3://incoming/set", "s3://nowhere/set")), "buckets")
    assert (finding.severity, finding.where) == ("fails", "stages.train.channels.training.uri")
    assert finding.what == "bucket nowhere does not exist"
    assert finding.when == "train.job calls sagemaker:CreateTrainingJob"


def test_a_missing_bucket_of_a_parameter_is_told_as_the_parameter(found: Examine) -> None:
    [finding] = found(pipeline(), "buckets", bucket="nobodys")
    assert finding.where == "parameters.bucket"


def test_a_bucket_of_another_region_fails_the_run(aws: EmbeddedAws, found: Examine) -> None:
    aws.client("s3").create_bucket(
        Bucket="abroad", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    [finding] = found(pipeline(TRAINING, ("s3://incoming/set", "s3://abroad/set")), "buckets")
    assert finding.severity == "fails"
    assert finding.what == "bucket abroad is in eu-central-1, and runs are in us-east-1"
