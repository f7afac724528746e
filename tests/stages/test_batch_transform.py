"""``batch_transform``: its requests, and what is refused before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Operation, Require, all_steps

IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/x:1"
SCORE: dict[str, Any] = {
    "kind": "batch_transform",
    "model_data": "s3://bucket/model",
    "image": IMAGE,
    "data": {"parameter": "data"},
    "content_type": "text/csv",
    "split": "line",
    "instance_type": "ml.m5.large",
}


def pipeline(**stages: Any) -> Pipeline:
    return Pipeline.parse(
        {
            "name": "p",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {"data": {"default": "s3://bucket/rows"}},
            "stages": stages,
        }
    )


def changed(**fields: Any) -> dict[str, Any]:
    whole = {**SCORE, **fields}
    return {name: value for name, value in whole.items() if value is not None}


def operations(**fields: Any) -> dict[str, Operation]:
    steps = all_steps(pipeline(score=changed(**fields)).lower().graph)
    return {step.name: step.operation for step in steps if isinstance(step, Call)}


def problems(**fields: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(score=changed(**fields))
    return [str(problem) for problem in error.value.problems]


def test_a_model_is_made_used_and_deleted() -> None:
    made = operations()
    names = [operation.name for operation in made.values()]
    assert names == [
        *("ListObjectsV2", "CreateModel", "CreateTransformJob", "ListObjectsV2", "DeleteModel")
    ]
    source: Any = made["score.model"].request["PrimaryContainer"]
    assert source["ModelDataSource"]["S3DataSource"]["S3DataType"] == "S3Prefix"


def test_the_job_takes_every_field() -> None:
    sent = operations(
        strategy="multi_record",
        assemble="line",
        accept="text/csv",
        compression="gzip",
        input_filter="$[1:]",
        join_input=True,
        output_filter="$[0,-1]",
        max_payload_mb=10,
        max_concurrency=4,
        output_uri="s3://bucket/out",
        output_kms_key="alias/out",
        volume_kms_key="alias/disks",
        instance_count=3,
        extra_request={"CreateTransformJob": {"ModelClientConfig": {"InvocationsMaxRetries": 1}}},
    )["score.job"].request
    given: Any = sent["TransformInput"]
    assert (given["SplitType"], given["CompressionType"]) == ("Line", "Gzip")
    assert sent["TransformOutput"] == {
        "S3OutputPath": "s3://bucket/out",
        "Accept": "text/csv",
        "AssembleWith": "Line",
        "KmsKeyId": "alias/out",
    }
    assert sent["DataProcessing"] == {
        "InputFilter": "$[1:]",
        "OutputFilter": "$[0,-1]",
        "JoinSource": "Input",
    }
    assert (sent["BatchStrategy"], sent["MaxPayloadInMB"]) == ("MultiRecord", 10)
    assert sent["ModelClientConfig"] == {"InvocationsMaxRetries": 1}


def test_a_model_that_exists_is_neither_made_nor_deleted() -> None:
    made = operations(model_data=None, image=None, model_name="kept")
    assert list(made) == ["score.list", "score.job", "score.written"]
    assert made["score.job"].request["ModelName"] == "kept"


def test_only_a_model_that_stays_is_an_output() -> None:
    tell = {"kind": "aws_call", "service": "sns", "operation": "Publish"}
    request = {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": {"ref": "score.model_name"}}
    told = {**tell, "request": request}
    with pytest.raises(PipelineError, match="its model is deleted at the end"):
        pipeline(score=SCORE, tell=told)
    outputs: Any = pipeline(score=changed(keep_model=True), tell=told).lower().outputs
    assert set(outputs["score"]) == {"job_name", "location", "object_count", "model_name"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"image": None}, "image: is needed; or the model_name of a model that exists"),
        ({"model_name": "kept"}, "model_data: belongs to a model of the run's own; leave out"),
        ({"data": "rows"}, "data: expected an S3 URI, got 'rows'"),
        (
            {"split": "none", "strategy": "multi_record"},
            "strategy: needs records; give split: line, record_io or tf_record",
        ),
        (
            {"max_concurrency": 20},
            "max_concurrency: 20 requests of up to 6 MB are 120 MB at a time; the most is 100",
        ),
        (
            {"input_filter": "features"},
            "input_filter: expected a JSONPath, got 'features': it begins with $",
        ),
        (
            {"content_type": "image/png", "join_input": True},
            "content_type: expected one of text/csv, application/json, application/jsonlines "
            "beside a filter, got image/png",
        ),
        (
            {"extra_request": {"CreateModel": {"Containers": []}}},
            "extra_request.CreateModel.Containers: the stage sets PrimaryContainer, and a model",
        ),
        (
            {"extra_request": {"CreateTransformJob": {"ModelName": "other"}}},
            "extra_request: extra_request.CreateTransformJob.ModelName is already set",
        ),
    ],
)
def test_mistakes_are_found_when_it_is_loaded(fields: Any, expected: str) -> None:
    found = problems(**fields)
    assert any(problem.startswith(f"stages.score.{expected}") for problem in found), found


def test_a_job_waits_for_machines_where_that_is_asked_for() -> None:
    def job(**fields: Any) -> Call:
        steps = all_steps(pipeline(score=changed(**fields)).lower().graph)
        return next(s for s in steps if isinstance(s, Call) and s.name == "score.job")

    assert job().fallback is None
    waits = job(wait_for_capacity_h=2, instance_count=3).fallback
    assert waits is not None
    assert (waits.label, waits.wait_s) == ("3 x ml.m5.large", 7200)
    assert waits.refused(
        "ResourceLimitExceeded",
        "The account-level service limit 'ml.m5.large for transform job usage' is 4 Instances, "
        "with current utilization of 4 Instances and a request delta of 3 Instances.",
    )


def verdict(name: str, own: bool, **results: dict[str, Any]) -> tuple[bool, str]:
    fields = {} if own else {"output_uri": "s3://bucket/out"}
    graph = pipeline(score=changed(**fields)).lower().graph
    [step] = [step for step in all_steps(graph) if step.name == f"score.{name}"]
    assert isinstance(step, Require)
    values = {f"score.{call}": outputs for call, outputs in results.items()}
    known = Values(values, {"data": "s3://bucket/rows"}, run_token="0123456789ab")
    return bool(evaluate(step.condition, known)), str(evaluate(step.cause, known))


@pytest.mark.parametrize(
    ("files", "more", "usable"), [(0, False, False), (3, False, True), (100_000, True, False)]
)
def test_more_objects_than_are_counted_are_refused_before_the_job(
    files: int, more: bool, usable: bool
) -> None:
    holds, cause = verdict("usable", True, list={"files": files, "more": more})
    assert holds is usable
    assert cause.endswith(f"expected 1 to 100000 objects below s3://bucket/rows/; saw {files}")


@pytest.mark.parametrize(
    ("own", "files", "more", "complete"),
    [
        (True, 3, False, True),
        (True, 2, False, False),
        (True, 3, True, False),
        (False, 4, False, True),
        # As many as are counted, and those of others behind them.
        (False, 3, True, True),
        (False, 2, True, False),
    ],
)
def test_as_many_predictions_as_objects_must_be_there(
    own: bool, files: int, more: bool, complete: bool
) -> None:
    results = {"list": {"files": 3, "more": False}, "written": {"files": files, "more": more}}
    assert verdict("verified", own, **results)[0] is complete
