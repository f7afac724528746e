"""Processing jobs really run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws, Fault
from tests.local.conftest import BUCKET, IMAGE, ROLE, put, read, tar_gz, wait

COUNT = """
import json, os, pathlib, sys
out = pathlib.Path(sys.argv[2]); out.mkdir(exist_ok=True)
words = sum(len(p.read_text().split()) for p in pathlib.Path(sys.argv[1]).rglob("*.txt"))
model = sorted(p.name for p in pathlib.Path(os.environ["MODEL"]).iterdir())
out.joinpath("report.json").write_text(json.dumps({"words": words, "model": model}))
base = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"])
base.joinpath("output", "message").write_text("counted")
print("region", os.environ["AWS_REGION"])
"""


def _request(aws: EmbeddedAws, name: str, script: str, **more: Any) -> dict[str, Any]:
    code = put(aws, f"processing/{name}/code/run.py", script)
    data = put(aws, f"processing/{name}/data/deep/a.txt", "one two three")
    model = put(aws, f"processing/{name}/model.tar.gz", tar_gz({"weights": "w"}))
    places = {
        "code": (code, "/opt/ml/processing/input/code"),
        "data": (data.removesuffix("deep/a.txt"), "/opt/ml/processing/input/data"),
        "model": (model, "/opt/ml/processing/model"),
    }
    return {
        "ProcessingJobName": name,
        "RoleArn": ROLE,
        "AppSpecification": {
            "ImageUri": IMAGE,
            "ContainerEntrypoint": ["python3", "/opt/ml/processing/input/code/run.py"],
            "ContainerArguments": ["/opt/ml/processing/input/data", "/opt/ml/processing/report"],
        },
        "Environment": {"MODEL": "/opt/ml/processing/model"},
        "ProcessingInputs": [
            {
                "InputName": key,
                "S3Input": {
                    "S3Uri": uri,
                    "LocalPath": path,
                    "S3DataType": "S3Prefix",
                    "S3InputMode": "File",
                },
            }
            for key, (uri, path) in places.items()
        ],
        "ProcessingOutputConfig": {
            "Outputs": [
                {
                    "OutputName": "report",
                    "S3Output": {
                        "S3Uri": f"s3://{BUCKET}/reports/{name}",
                        "LocalPath": "/opt/ml/processing/report",
                        "S3UploadMode": "EndOfJob",
                    },
                }
            ]
        },
        "ProcessingResources": {
            "ClusterConfig": {
                "InstanceCount": 1,
                "InstanceType": "ml.m5.large",
                "VolumeSizeInGB": 10,
            }
        },
        **more,
    }


def _finished(aws: EmbeddedAws, name: str) -> dict[str, Any]:
    return wait(
        lambda: aws.client("sagemaker").describe_processing_job(ProcessingJobName=name),
        lambda job: job["ProcessingJobStatus"] in ("Completed", "Failed", "Stopped"),
    )


def test_inputs_come_and_outputs_go_through_s3(aws: EmbeddedAws) -> None:
    client = aws.client("sagemaker")
    request = _request(aws, "count", COUNT)
    client.create_processing_job(**request)
    job = _finished(aws, "count")
    assert job["ProcessingJobStatus"] == "Completed", aws.logs("count")
    report = json.loads(read(aws, "reports/count/report.json"))
    assert report == {"words": 3, "model": ["model.tar.gz"]}
    assert job["ExitMessage"] == "counted"
    assert job["ProcessingInputs"] == request["ProcessingInputs"]
    assert "region us-east-1" in aws.logs("count")


def test_a_job_that_exits_badly_fails_and_its_name_is_taken(aws: EmbeddedAws) -> None:
    request = _request(aws, "exits-3", "raise SystemExit(3)")
    aws.client("sagemaker").create_processing_job(**request)
    job = _finished(aws, "exits-3")
    assert job["ProcessingJobStatus"] == "Failed"
    assert job["FailureReason"].endswith("exit code: 3")
    with pytest.raises(ClientError, match="ResourceInUse"):
        aws.client("sagemaker").create_processing_job(**request)


def test_what_a_script_reports_is_in_the_reason(aws: EmbeddedAws) -> None:
    script = (
        "from orchestration.runtime import reported_failures\n"
        "with reported_failures():\n"
        "    raise ValueError('no rows')\n"
    )
    aws.client("sagemaker").create_processing_job(**_request(aws, "reports", script))
    job = _finished(aws, "reports")
    assert job["ExitMessage"].startswith("ValueError: no rows (")
    assert job["FailureReason"] == f"AlgorithmError: {job['ExitMessage']}, exit code: 1"


def test_a_processing_job_can_be_stopped(aws: EmbeddedAws) -> None:
    script = "import time; print('ready', flush=True); time.sleep(60)"
    aws.client("sagemaker").create_processing_job(**_request(aws, "sleeps", script))
    wait(lambda: {"logs": aws.logs("sleeps")}, lambda now: "ready" in now["logs"])
    aws.client("sagemaker").stop_processing_job(ProcessingJobName="sleeps")
    assert _finished(aws, "sleeps")["ProcessingJobStatus"] == "Stopped"


def test_an_injected_reason_is_the_failure_reason(aws: EmbeddedAws) -> None:
    aws.inject(Fault.job("doomed", reason="InternalServerError: try again"))
    aws.client("sagemaker").create_processing_job(**_request(aws, "doomed", ""))
    assert _finished(aws, "doomed")["FailureReason"] == "InternalServerError: try again"


def test_a_job_that_runs_for_too_long_says_which_limit_ended_it(aws: EmbeddedAws) -> None:
    request = _request(aws, "too-long", "import time; time.sleep(600)")
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": 1}
    aws.client("sagemaker").create_processing_job(**request)
    job = _finished(aws, "too-long")
    assert job["ProcessingJobStatus"] == "Stopped"
    assert "longer than its MaxRuntimeInSeconds of 1 s" in job["FailureReason"]
