"""Folders of code in S3: where requests expect them, once, and never another than locked."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from orchestration import Pipeline, Source
from orchestration.deploy import sources, upload
from orchestration.errors import DeployError
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.stages import vendoring
from orchestration.stages.packing import archive, digest
from tests.deploy import pipelines
from tests.deploy.pipelines import PARAMETERS


@pytest.fixture
def s3() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=PARAMETERS["bucket"])
        yield client


@pytest.fixture
def code(tmp_path: Path) -> Path:
    return pipelines.source_folder(tmp_path / "code")


def keys(s3: Any) -> list[str]:
    listed = s3.list_objects_v2(Bucket=PARAMETERS["bucket"]).get("Contents", [])
    return [item["Key"] for item in listed]


def test_the_archive_and_the_files_lie_where_requests_expect_them(s3: Any, code: Path) -> None:
    pipeline = pipelines.digits(code)
    sent = upload(pipeline, PARAMETERS, s3)
    place = pipeline.context().source(Source.at(code, "train.py"))
    expected = evaluate(place, Values({}, PARAMETERS))
    assert expected == f"s3://workspace/digits/source/{digest(code)}"
    assert [item.uri for item in sent] == [
        f"{expected}/files/lib/naïve name.py",
        f"{expected}/files/train.py",
        f"{expected}/sourcedir.tar.gz",
    ]


def test_what_is_sent_unpacks_to_the_folder(s3: Any, code: Path) -> None:
    *_, packed = upload(pipelines.digits(code), PARAMETERS, s3)
    key = packed.uri.removeprefix("s3://workspace/")
    body = s3.get_object(Bucket="workspace", Key=key)["Body"].read()
    assert len(body) == packed.size
    with tarfile.open(fileobj=io.BytesIO(body)) as opened:
        assert sorted(opened.getnames()) == ["lib/naïve name.py", "train.py"]


def test_what_lies_there_is_not_sent_again(s3: Any, code: Path) -> None:
    assert len(upload(pipelines.digits(code), PARAMETERS, s3)) == 3
    assert upload(pipelines.digits(code), PARAMETERS, s3) == []


def test_an_upload_that_broke_off_is_done_again(s3: Any, code: Path) -> None:
    *_, packed = upload(pipelines.digits(code), PARAMETERS, s3)
    s3.delete_object(Bucket="workspace", Key=packed.uri.removeprefix("s3://workspace/"))
    assert len(upload(pipelines.digits(code), PARAMETERS, s3)) == 3


def test_a_folder_that_two_stages_use_is_sent_once(s3: Any, code: Path) -> None:
    [folder] = sources.folders(pipelines.digits(code), PARAMETERS)
    assert folder.used_by == ("train.source", "evaluate.source")


def test_another_folder_than_was_locked_is_refused(s3: Any, code: Path) -> None:
    pipeline = pipelines.digits(code)
    (code / "train.py").write_text("print('changed')\n")
    with pytest.raises(DeployError, match="orchestrate lock"):
        upload(pipeline, PARAMETERS, s3)
    assert keys(s3) == []


def test_a_folder_that_is_not_here_may_lie_there_already(s3: Any, code: Path) -> None:
    pipeline = pipelines.digits(code)
    with pytest.raises(DeployError, match=r"train\.source, evaluate\.source"):
        upload(_without_folder(pipeline), PARAMETERS, s3)
    upload(pipeline, PARAMETERS, s3)
    assert upload(_without_folder(pipeline), PARAMETERS, s3) == []


def _without_folder(pipeline: Pipeline) -> Pipeline:
    data = pipeline.model_dump()
    for stage in data["stages"]:
        if stage["name"] in ("train", "evaluate"):
            stage["source"]["directory"] = None
    return Pipeline.parse(data)


def test_a_bucket_that_is_not_there_is_named(s3: Any, code: Path) -> None:
    with pytest.raises(DeployError, match="bucket elsewhere"):
        upload(pipelines.digits(code), {**PARAMETERS, "bucket": "elsewhere"}, s3)


def test_the_workspace_needs_its_parameters(s3: Any, code: Path) -> None:
    with pytest.raises(DeployError, match="'bucket' has no value"):
        upload(pipelines.digits(code), {}, s3)


def test_a_workspace_without_a_bucket_is_refused_with_what_to_change(s3: Any, code: Path) -> None:
    with pytest.raises(DeployError, match=r"must be s3://bucket/prefix, .*; change bucket=''"):
        upload(pipelines.digits(code), {**PARAMETERS, "bucket": ""}, s3)


def test_code_that_a_stage_names_by_uri_is_left_alone(s3: Any, code: Path) -> None:
    pipeline = pipelines.copying()
    assert upload(pipeline, PARAMETERS, s3) == []


def test_equal_folders_are_equal_archives(code: Path, tmp_path: Path) -> None:
    other = pipelines.source_folder(tmp_path / "other")
    assert archive(code) == archive(other)


def test_the_runtime_is_sent_beside_the_files_and_in_the_archive(
    s3: Any, tmp_path: Path, code: Path
) -> None:
    source = Source.at(code, "train.py", runtime=True)
    sent = upload(_with_source(pipelines.digits(code), source), PARAMETERS, s3)
    prefix = f"s3://workspace/digits/source/{source.sha256}/"
    names = {item.uri.removeprefix(prefix) for item in sent}
    assert {"files/train.py", "files/orchestration_runtime/__init__.py"} < names
    packed = s3.get_object(Bucket="workspace", Key=f"{prefix[15:]}sourcedir.tar.gz")["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(packed)) as opened:
        assert {f"files/{name}" for name in opened.getnames()} == names - {"sourcedir.tar.gz"}


def test_another_runtime_than_was_locked_is_refused(
    s3: Any, tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = _with_source(pipelines.digits(code), Source.at(code, "train.py", runtime=True))
    monkeypatch.setattr(vendoring, "_RUNTIME", tmp_path)
    with pytest.raises(DeployError, match=r"or the runtime .* is not what the pipeline was locked"):
        upload(pipeline, PARAMETERS, s3)
    assert keys(s3) == []


def _with_source(pipeline: Pipeline, source: Source) -> Pipeline:
    data = pipeline.model_dump()
    for stage in data["stages"]:
        if stage["name"] in ("train", "evaluate"):
            stage["source"] = source.model_dump()
    return Pipeline.parse(data)
