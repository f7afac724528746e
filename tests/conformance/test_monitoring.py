"""The monitoring that the deployment guide shows is set up and renewed alike on every backend."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from tests.conformance.test_updates import CONTAINER, ROLE
from tests.guides import DEPLOYMENT, shown

pytestmark = pytest.mark.slow

BACKENDS: tuple[On, ...] = ("direct", "step-functions", "airflow")

ANALYZER = """
import os
import pathlib

root = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"], "processing")
[rows] = (root / "input/data").rglob("*.csv")
for name in ("statistics", "constraints"):
    (root / "output/found" / f"{name}.json").write_text('{"rows": "%s"}' % rows.read_text())
"""


def watched(folder: Path) -> Pipeline:
    """Return the guide's pipeline, with programs of this machine in the place of its images."""
    [text] = [block for block in shown(DEPLOYMENT, "yaml") if block.startswith("name: watched")]
    pipeline = yaml.safe_load(text.replace("arn:aws:iam::111122223333:role/SageMaker", ROLE))
    for stage, program in (("baseline", ANALYZER), ("deploy", CONTAINER)):
        (folder / f"{stage}.py").write_text(program)
        command = [sys.executable, f"{stage}.py"]
        pipeline["stages"][stage]["local"] = {"command": command, "directory": str(folder)}
    return Pipeline.parse(pipeline)


def test_the_guide_s_schedule_is_made_and_renewed_with_each_baseline(
    airflow: LocalAirflow, tmp_path: Path
) -> None:
    pipeline = watched(tmp_path)
    with EmbeddedAws(time_scale=0.005) as aws:
        s3, sagemaker = aws.client("s3"), aws.client("sagemaker")
        s3.create_bucket(Bucket="my-bucket")
        s3.put_object(Bucket="my-bucket", Key="training-data/rows.csv", Body=b"1")
        s3.put_object(Bucket="my-bucket", Key="models/best/name", Body=b"best")
        aws.provide(roles=[ROLE])
        for on in BACKENDS:
            baselines = set()
            for refused in (None, "ResourceInUse"):
                report = run(pipeline, on=on, aws=aws, airflow=airflow)
                assert (report.state, report.error, report.cause) == ("succeeded", None, None)
                made = [c for c in report.calls if c.operation == "CreateMonitoringSchedule"]
                assert [each.error_code for each in made] == [refused]
                outputs: Any = report.outputs
                baselines.add(found := outputs["baseline"]["found"])
                kept = aws.state()["sagemaker"]["MonitoringSchedules"]
                assert kept.keys() == {"shop"}
                assert kept["shop"]["MonitoringScheduleStatus"] == "Scheduled"
                assert kept["shop"]["EndpointName"] == "shop"
                config = kept["shop"]["MonitoringScheduleConfig"]
                compared = config["MonitoringJobDefinition"]["BaselineConfig"]
                for name in ("statistics", "constraints"):
                    uri = compared[f"{name.title()}Resource"]["S3Uri"]
                    assert uri == f"{found}/{name}.json"
                    key = uri.removeprefix("s3://my-bucket/")
                    assert s3.get_object(Bucket="my-bucket", Key=key)["Body"].read()
            assert len(baselines) == 2
            sagemaker.delete_monitoring_schedule(MonitoringScheduleName="shop")
            with pytest.raises(ClientError, match="ResourceNotFound"):
                sagemaker.describe_monitoring_schedule(MonitoringScheduleName="shop")
            assert aws.state()["sagemaker"]["MonitoringSchedules"] == {}
