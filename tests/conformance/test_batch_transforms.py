"""``batch_transform`` does the same on every driver."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import BatchTransform, Source
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from tests.conformance.test_processing_jobs import IMAGE, everywhere, made

pytestmark = pytest.mark.slow

CODE = Path(__file__).with_name("src_transform") / "inference.py"
BUCKET = "processing"
DATA = {
    "rows/a.csv": b"first,1,2\nsecond,3,4\n",
    "rows/deep/b.csv": b"third,5,6\n",
    "words/a.csv": b"first,one\n",
    "stops/a.csv": b"stop,1\nstop,2\n",
}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        for key, body in DATA.items():
            s3.put_object(Bucket=BUCKET, Key=f"data/{key}", Body=body)
        files = {"offset": b"100", "code/inference.py": CODE.read_bytes()}
        for name, body in files.items():
            s3.put_object(Bucket=BUCKET, Key=f"model/{name}", Body=body)
        s3.put_object(Bucket=BUCKET, Key="model.tar.gz", Body=_packed(files))
        yield embedded


def _packed(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, body in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


def scored(folder: str = "rows", **fields: Any) -> BatchTransform:
    given: dict[str, Any] = {
        "name": "score",
        "model_data": f"s3://{BUCKET}/model",
        "image": IMAGE,
        "data": f"s3://{BUCKET}/data/{folder}",
        "content_type": "text/csv",
        "accept": "text/csv",
        "split": "line",
        "strategy": "multi_record",
        "assemble": "line",
        "input_filter": "$[1:]",
        "join_input": True,
        "output_filter": "$[0,-1]",
        "instance_type": "ml.m5.large",
    }
    return BatchTransform.model_validate({**given, **fields})


def predictions(aws: EmbeddedAws, uri: str) -> dict[str, bytes]:
    prefix = uri.removeprefix(f"s3://{BUCKET}/") + "/"
    s3 = aws.client("s3")
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    return {
        each["Key"].removeprefix(prefix): s3.get_object(Bucket=BUCKET, Key=each["Key"])[
            "Body"
        ].read()
        for each in listed
    }


def test_every_object_is_answered_beside_its_records(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    pipeline = made("scored", scored(model_data=f"s3://{BUCKET}/model.tar.gz", model_archive=True))
    lost = [
        Fault("sagemaker", name, "InternalFailure", "lost", status=500, after_effect=True)
        for name in ("CreateModel", "CreateTransformJob")
    ]
    for report in everywhere(pipeline, aws, airflow, *lost).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        shown = outputs["score"]
        assert shown["object_count"] == 2
        assert shown["job_name"].startswith("scored-score-")
        assert predictions(aws, shown["location"]) == {
            "a.csv.out": b"first,103\nsecond,107\n",
            "deep/b.csv.out": b"third,111\n",
        }
    state = aws.state()["sagemaker"]
    assert [name for name in state["Models"] if name.startswith("scored-")] == []
    assert len([name for name in state["TransformJobs"] if name.startswith("scored-")]) == 3
    again = run(pipeline, aws=aws, run_id="scored-direct")
    assert (again.state, len(aws.state()["sagemaker"]["TransformJobs"])) == ("succeeded", 3)


def test_one_file_is_answered_alone(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    stage = scored("rows/deep/b.csv", one_file=True)
    for report in everywhere(made("single", stage), aws, airflow).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        assert outputs["score"]["object_count"] == 1
        assert predictions(aws, outputs["score"]["location"]) == {"b.csv.out": b"third,111\n"}
    aws.client("s3").put_object(Bucket=BUCKET, Key="data/rows/deep/b.csv.old", Body=b"")
    report = run(made("siblings", stage), aws=aws)
    aws.client("s3").delete_object(Bucket=BUCKET, Key="data/rows/deep/b.csv.old")
    assert (report.state, report.error) == ("failed", "DataNotUsable")
    assert "rows/deep/b.csv and none whose key begins so; saw 2" in str(report.cause)


def test_a_model_that_exists_is_used_and_stays(aws: EmbeddedAws) -> None:
    first = scored(name="keep", keep_model=True, strategy="single_record")
    second = scored(model_data=None, image=None, model_name=first.outputs.model_name)
    report = run(made("kept", first, second), aws=aws)
    outputs: Any = report.outputs
    assert report.state == "succeeded"
    assert list(aws.state()["sagemaker"]["Models"]) == [outputs["score"]["model_name"]]
    found = [predictions(aws, outputs[name]["location"]) for name in ("keep", "score")]
    assert found[0] == found[1]


def test_a_model_without_code_answers_by_the_stage_s_own(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    aws.client("s3").put_object(Bucket=BUCKET, Key="bare/offset", Body=b"100")
    code = Source.at(CODE.parent, CODE.name)
    stage = scored(model_data=f"s3://{BUCKET}/bare", source=code)
    for report in everywhere(made("bare", stage), aws, airflow).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        answered = predictions(aws, outputs["score"]["location"])
        assert answered["a.csv.out"] == b"first,103\nsecond,107\n"


def test_a_model_that_can_not_answer_fails_the_run(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    for report in everywhere(made("words", scored("words")), aws, airflow).values():
        assert (report.state, report.error) == ("failed", "JobFailed")
        assert "data/words/a.csv: the model answered 500: ValueError" in str(report.cause)


def test_a_job_that_is_stopped_fails_the_run(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    stage = scored("stops", input_filter=None, join_input=False, strategy="single_record")
    for report in everywhere(made("stopped", stage), aws, airflow).values():
        assert (report.state, report.error) == ("failed", "JobFailed")


def test_a_missing_model_and_missing_data_fail_the_run_before_any_job(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    refused = made("refused", scored(model_data=f"s3://{BUCKET}/nothing"))
    for report in everywhere(refused, aws, airflow).values():
        assert report.state == "failed"
        assert "Could not find model data at s3://processing/nothing/" in str(report.cause)
    report = run(made("empty", scored("nothing")), aws=aws, on="step-functions")
    assert (report.state, report.error) == ("failed", "DataNotUsable")
    assert str(report.cause) == (
        "stage score expected 1 to 100000 objects below s3://processing/data/nothing/; saw 0"
    )


def test_a_quota_that_is_used_up_is_waited_for(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    pipeline = made("waited", scored(wait_for_capacity_h=1))
    message = (
        "The account-level service limit 'ml.m5.large for transform job usage' is 1 Instances, "
        "with current utilization of 1 Instances and a request delta of 1 Instances."
    )
    quota = Fault("sagemaker", "CreateTransformJob", "ResourceLimitExceeded", message)
    for report in everywhere(pipeline, aws, airflow, quota).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
