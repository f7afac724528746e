"""Sources in buckets of other accounts, which are read only where the bucket's policy allows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from orchestration import DataStaging, Pipeline, S3Destination, join, parameter
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import RunReport, run
from orchestration.local.run.executions import role
from tests.conformance import normal, pipelines
from tests.conformance.test_conformance import BACKENDS, Backend

pytestmark = pytest.mark.slow

OWNER, STRANGER = "999988887777", "111122223333"
NEAR, FAR = "theirs", "theirs-in-oregon"
"""Buckets of the owner; the second one is in another region than the run."""
OBJECTS = {"set/one.csv": b"1", "set/deep/two words.csv": b"2"}
READERS = ("role/machine", "role/DataSync", "role/BatchOperations")
WAYS: dict[str, dict[str, Any]] = {
    "objects": {},
    "datasync": {"datasync_role": pipelines.DATASYNC_ROLE},
    "batch": {
        "batch_role": pipelines.BATCH_ROLE,
        "manifest": join("s3://", parameter("bucket"), "/lists/manifest.csv"),
    },
}


def copied(way: str, owner: str = OWNER) -> Pipeline:
    destination = S3Destination.model_validate(
        {"copy_by": way, "source_account": owner, **WAYS[way]}
    )
    staging = DataStaging(name="staging", source=parameter("data"), destination=destination)
    return pipelines.pipeline(f"from-elsewhere-by-{way}", staging)


def policy(bucket: str, account: str, *, read: bool = True) -> str:
    """What `orchestrate deploy` prints that the bucket's policy needs."""
    actions = {
        f"arn:aws:s3:::{bucket}": ["s3:GetBucketLocation", "s3:ListBucket"],
        f"arn:aws:s3:::{bucket}/set*": ["s3:GetObject*"] if read else ["s3:GetObjectTagging"],
    }
    statements = [
        {
            "Effect": "Allow",
            "Principal": {"AWS": [f"arn:aws:iam::{account}:{reader}" for reader in READERS]},
            "Action": allowed,
            "Resource": resource,
        }
        for resource, allowed in actions.items()
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def prepared(aws: EmbeddedAws) -> Any:
    """Fill the buckets of the owner, and this account's; return the owner's S3."""
    theirs = aws.client("s3", account=OWNER)
    theirs.create_bucket(Bucket=NEAR)
    theirs.create_bucket(Bucket=FAR, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    for bucket in (NEAR, FAR):
        for key, body in OBJECTS.items():
            theirs.put_object(Bucket=bucket, Key=key, Body=body)
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="workspace")
    rows = "".join(f"{NEAR},{key.replace(' ', '%20')}\n" for key in OBJECTS)
    s3.put_object(Bucket="workspace", Key="lists/manifest.csv", Body=rows)
    role(aws, "DataSync", "datasync.amazonaws.com")
    return theirs


def performed(backend: Backend, airflow: LocalAirflow) -> Mapping[str, RunReport]:
    reports: dict[str, RunReport] = {}
    with EmbeddedAws(time_scale=0.003) as aws:
        theirs = prepared(aws)

        def start(name: str, pipeline: Pipeline, bucket: str = NEAR) -> None:
            values = {**pipelines.PARAMETERS, "data": f"s3://{bucket}/set"}
            reports[name] = run(
                pipeline,
                on=backend,
                parameters=values,
                aws=aws,
                airflow=airflow,
                run_id=name.replace(" ", "-"),
            )

        def let(account: str, *, read: bool = True) -> None:
            for bucket in (NEAR, FAR):
                theirs.put_bucket_policy(Bucket=bucket, Policy=policy(bucket, account, read=read))

        for way in WAYS:
            let(STRANGER)
            start(f"{way} refused", copied(way))
            let("123456789012")
            start(f"{way} allowed", copied(way))
        start("far", copied("datasync"), FAR)
        start("owned by another", copied("objects", STRANGER))
        let("123456789012", read=False)
        for way in WAYS:
            start(f"{way} listed only", copied(way))
        staged = aws.state()["s3"]["workspace"]
        counts = {
            way: sum(f"from-elsewhere-by-{way}/" in key and "/staging/" in key for key in staged)
            for way in WAYS
        }
        # Those of the run in the other region are a DataSync's, too.
        assert counts == {"objects": 2, "datasync": 4, "batch": 2}
    return reports


def test_a_bucket_of_another_account_is_read_where_its_policy_allows_it(
    airflow: LocalAirflow,
) -> None:
    everywhere = {backend: performed(backend, airflow) for backend in BACKENDS}
    first = everywhere[BACKENDS[0]]
    for reports in everywhere.values():
        for name, report in reports.items():
            well = name.endswith(" allowed") or name == "far"
            assert (name, report.state) == (name, "succeeded" if well else "failed"), report.cause
            assert normal.changes(report.calls) == normal.changes(first[name].calls), name
        for name in ("objects refused", "owned by another", "objects listed only"):
            assert "Access Denied" in str(reports[name].cause)
        assert "AccessDenied" in str(reports["batch listed only"].cause)
