"""A model of several containers, called in sequence, answers alike on every driver."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from tests.conformance import normal

pytestmark = pytest.mark.slow

IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/conformance:1"
ROLE = "arn:aws:iam::123456789012:role/SageMakerExecution"
SUMS = """
import json

def model_fn(folder):
    return None

def input_fn(body, content_type):
    if content_type == "application/json":
        return json.loads(body)
    return [float(number) for number in body.split(",")]

def predict_fn(numbers, model):
    return sum(numbers)

def output_fn(total, accept):
    return str(total), accept
"""
SCALES = """
import pathlib

def model_fn(folder):
    return float(pathlib.Path(folder, "weight").read_text())

def input_fn(body, content_type):
    assert content_type == "text/csv", content_type
    return float(body)

def predict_fn(total, weight):
    if total < 0:
        raise ValueError("negative")
    return {"score": total * weight}
"""
LABELS = """
import json, pathlib

def model_fn(folder):
    return float(pathlib.Path(folder, "threshold").read_text())

def input_fn(body, content_type):
    assert content_type == "application/json", content_type
    return json.loads(body)

def predict_fn(data, threshold):
    return {"label": "high" if data["score"] > threshold else "low", **data}
"""
CSV = {"SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT": "text/csv"}
SEQUENCE: dict[str, Any] = {
    "model_data": "s3://models/scales",
    "image": IMAGE,
    "preprocessing": [
        {
            "image": IMAGE,
            "source": {"entry_point": "sums.py", "uri": "s3://models/code"},
            "environment": CSV,
        }
    ],
    "postprocessing": [
        {"image": IMAGE, "model_data": "s3://models/labels.tar.gz", "model_archive": True}
    ],
}
ASKED = {"request": [3, 4]}
MACHINE = {"instance_type": "ml.m5.large"}
DEPLOY = {"kind": "deployment", **SEQUENCE, **MACHINE, "smoke_test": ASKED}
SCORE = {
    "kind": "batch_transform",
    **SEQUENCE,
    **MACHINE,
    "data": "s3://models/rows",
    "content_type": "text/csv",
    "split": "line",
    "strategy": "single_record",
    "assemble": "line",
}
REGISTER = {
    "kind": "model_registration",
    "package_group": "scales",
    **SEQUENCE,
    "approval": "approved",
}
RELEASE = {
    "kind": "deployment",
    "model_package": {"ref": "register.model_package"},
    **MACHINE,
    "smoke_test": ASKED,
}
HIGH = {"label": "high", "score": 14.0}


def packed(files: dict[str, str]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return whole.getvalue()


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as started:
        s3 = started.client("s3")
        s3.create_bucket(Bucket="models")
        labels = packed({"threshold": "10", "code/inference.py": LABELS})
        for key, body in {
            "code/files/sums.py": SUMS.encode(),
            "scales/weight": b"2",
            "scales/code/inference.py": SCALES.encode(),
            "labels.tar.gz": labels,
            "rows/a.csv": b"1,2\n3,4\n",
        }.items():
            s3.put_object(Bucket="models", Key=key, Body=body)
        started.provide(roles=[ROLE])
        yield started


def pipeline(name: str, stages: dict[str, Any]) -> Pipeline:
    workspace = "s3://models/runs"
    return Pipeline.parse(
        {"name": name, "region": "us-east-1", "workspace": workspace, "stages": stages}
    )


def test_each_answer_is_the_next_request(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    made, seen = pipeline("scales", {"deploy": DEPLOY, "score": SCORE}), []
    for on in ("direct", "step-functions", "airflow"):
        report = run(made, on=on, aws=aws, airflow=airflow, run_id=f"scales-{on}")
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        assert outputs["deploy"]["answer"] == HIGH
        [written] = objects(aws, outputs["score"]["location"])
        lines = [json.loads(line) for line in written.splitlines()]
        assert lines == [{"label": "low", "score": 6.0}, HIGH]
        models = [call for call in report.calls if call.operation == "CreateModel"]
        seen.append(sorted(normal.anonymous(call.request["Containers"]) for call in models))
    assert len(seen[0]) == 2
    assert seen[1:] == seen[:1] * 2
    with pytest.raises(ClientError, match=r"server error \(500\) from container-2 with message"):
        aws.client("sagemaker-runtime").invoke_endpoint(
            EndpointName="scales-deploy", Body=b"-1,-2", ContentType="text/csv"
        )


def test_a_registered_version_has_all_containers(aws: EmbeddedAws) -> None:
    report = run(pipeline("releases", {"register": REGISTER, "release": RELEASE}), aws=aws)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert outputs["release"]["answer"] == HIGH


def test_a_packed_model_is_registered_by_its_digest(aws: EmbeddedAws) -> None:
    packed_model = {"model_data": "s3://models/labels.tar.gz", "model_archive": True}
    alone = {**packed_model, "image": IMAGE, "package_group": "packed"}
    stage = {"kind": "model_registration", **alone}
    report = run(pipeline("packed", {"register": stage}), aws=aws)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)


def test_a_container_that_does_not_start_is_named(aws: EmbeddedAws) -> None:
    aws.client("s3").put_object(Bucket="models", Key="empty/weight", Body=b"1")
    sequence = {**SEQUENCE, "postprocessing": [{"image": IMAGE, "model_data": "s3://models/empty"}]}
    stage = {**DEPLOY, **sequence}
    report = run(pipeline("broken", {"deploy": stage}), aws=aws)
    assert (report.state, report.error) == ("failed", "EndpointFailed")
    assert "The container-3 did not pass the ping health check" in str(report.cause)


def objects(aws: EmbeddedAws, uri: str) -> list[bytes]:
    s3, prefix = aws.client("s3"), uri.removeprefix("s3://models/")
    listed = s3.list_objects_v2(Bucket="models", Prefix=prefix)["Contents"]
    return [s3.get_object(Bucket="models", Key=each["Key"])["Body"].read() for each in listed]
