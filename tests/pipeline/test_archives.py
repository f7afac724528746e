"""Code as an archive that is there already: pinned, sent as it is, and for training only."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from moto import mock_aws

from orchestration import Pipeline, PipelineError
from orchestration.deploy import upload
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call
from orchestration.pipeline.files import lock
from orchestration.pipeline.pinning.lock_file import lock_path
from orchestration.stages.packing import archive

IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1"
ROLE = "arn:aws:iam::111122223333:role/training"


def described(source: dict[str, Any]) -> dict[str, Any]:
    stage = {
        "kind": "training_job",
        "image": IMAGE,
        "source": source,
        "cluster": {"instance_type": "ml.m5.xlarge"},
    }
    return {"name": "p", "workspace": "s3://bucket/p", "role": ROLE, "stages": {"train": stage}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A pipeline whose code is an archive beside it."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("one = 1")
    (tmp_path / "code.tar.gz").write_bytes(archive(code))
    file = tmp_path / "p.yaml"
    source = {"archive": "code.tar.gz", "entry_point": "train.py"}
    file.write_text(yaml.safe_dump(described(source)))
    return file


def submitted(pipeline: Pipeline) -> Any:
    [step] = pipeline.lower().graph.steps
    assert isinstance(step, Call)
    request: Any = evaluate(step.operation.request, Values({}, {}))
    return json.loads(request["HyperParameters"]["sagemaker_submit_directory"])


def test_an_archive_goes_to_s3_as_it_is_under_its_own_digest(path: Path) -> None:
    content = (path.parent / "code.tar.gz").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    pipeline = Pipeline.load(path)
    assert submitted(pipeline) == f"s3://bucket/p/source/{digest}/sourcedir.tar.gz"
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="bucket")
        [sent] = upload(pipeline, {}, s3)
        assert sent.uri == submitted(pipeline)
        body = s3.get_object(Bucket="bucket", Key=sent.uri.removeprefix("s3://bucket/"))["Body"]
        assert body.read() == content


def test_a_lock_file_stands_for_an_archive_that_is_not_here(path: Path) -> None:
    lock_path(path).write_text(json.dumps(lock(path)))
    before = submitted(Pipeline.load(path))
    (path.parent / "code.tar.gz").unlink()
    assert submitted(Pipeline.load(path)) == before
    lock_path(path).unlink()
    with pytest.raises(PipelineError, match=r"train\.source\.archive: there is no file"):
        Pipeline.load(path)


def test_what_an_archive_does_not_hold_can_not_be_started(path: Path) -> None:
    path.write_text(path.read_text().replace("entry_point: train.py", "entry_point: trian.py"))
    with pytest.raises(PipelineError, match=r"code\.tar\.gz holds no 'trian\.py'; did you mean"):
        Pipeline.load(path)


def test_a_file_that_is_no_archive_is_told(path: Path) -> None:
    (path.parent / "code.tar.gz").write_text("no archive")
    with pytest.raises(PipelineError, match=r"can't be read as a \.tar\.gz") as error:
        Pipeline.load(path)
    assert error.value.problems[0].path == "stages.train.source.archive"


def test_an_archive_in_s3_is_used_where_it_lies() -> None:
    source = {"uri": "s3://elsewhere/code.tar.gz", "entry_point": "train.py"}
    assert submitted(Pipeline.parse(described(source))) == "s3://elsewhere/code.tar.gz"


def test_a_processing_job_can_not_unpack_one() -> None:
    data = described({"uri": "s3://code/x", "entry_point": "train.py"})
    data["stages"]["train"]["checkpoints"] = {}
    data["stages"]["evaluate"] = {
        "kind": "checkpoint_evaluation",
        "checkpoints": {"ref": "train.checkpoints"},
        "data": "s3://data/holdout",
        "image": IMAGE,
        "source": {"uri": "s3://elsewhere/code.tar.gz", "entry_point": "evaluate.py"},
        "instance_type": "ml.m5.xlarge",
        "metric": "accuracy",
        "direction": "max",
    }
    with pytest.raises(PipelineError, match=r"evaluate\.source: is an archive"):
        Pipeline.parse(data)
