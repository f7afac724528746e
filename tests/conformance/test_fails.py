"""``fail`` ends a run with the same words on every backend, and lets it pass else."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run

pytestmark = pytest.mark.slow

SEND: dict[str, Any] = {"kind": "aws_call", "service": "sqs", "operation": "SendMessage"}
REQUEST: dict[str, Any] = {"QueueUrl": {"parameter": "queue"}, "MessageBody": "later"}
PIPELINE = Pipeline.parse(
    {
        "name": "guarded",
        "region": "us-east-1",
        "workspace": "s3://bucket/runs",
        "parameters": {"queue": {}, "rows": {"type": "number"}, "unit": {}},
        "stages": {
            "few": {
                "kind": "fail",
                "when": {"less": [{"parameter": "rows"}, 10]},
                "error": "TooFewRows",
                "cause": {"join": ["only ", {"parameter": "rows"}, " ", {"parameter": "unit"}]},
            },
            "later": {**SEND, "after": ["few"], "request": REQUEST},
        },
    }
)
RARELY: dict[str, Any] = {"when": {"less": [{"parameter": "rows"}, 1]}}
JOB: dict[str, Any] = {
    "kind": "processing_job",
    "image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/count:1",
    "results": {"words": {}},
    "cluster": {"instance_type": "ml.m5.large"},
}
SKIPPING = Pipeline.parse(
    {
        "name": "skipping",
        "region": "us-east-1",
        "workspace": "s3://bucket/runs",
        "role": "arn:aws:iam::123456789012:role/Execution",
        "parameters": {"queue": {}, "rows": {"type": "number"}},
        "stages": {
            "call": {**SEND, "request": REQUEST, **RARELY},
            "calls": {**SEND, "request": REQUEST, "for_each": {"items": ["a", "b"]}, **RARELY},
            "job": {**JOB, **RARELY},
            "reads": {**JOB, "inputs": {"words": {"uri": {"ref": "job.words"}}}},
            "few": {
                "kind": "fail",
                "after": ["call", "calls", "job"],
                "when": {"less": [{"parameter": "rows"}, 10]},
                "error": "TooFewRows",
                "cause": "too few rows",
            },
            "last": {**JOB, "after": ["few"], **RARELY},
        },
    }
)
BESIDE = Pipeline.parse(
    {
        "name": "beside",
        "region": "us-east-1",
        "workspace": "s3://bucket/runs",
        "parameters": {"queue": {}, "rows": {"type": "number"}},
        "stages": {
            "first": {**SEND, "request": REQUEST},
            "few": {
                "kind": "fail",
                "after": ["first"],
                "when": {"less": [{"parameter": "rows"}, 10]},
                "error": "TooFewRows",
                "cause": "too few rows",
            },
            "beside": {**SEND, "request": REQUEST},
            "last": {**SEND, "after": ["few", "beside"], "request": REQUEST},
        },
    }
)
UNIT = "rows {% 'of' %} {{ text }}"


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
@pytest.mark.parametrize("rows", [3, 30])
def test_a_run_fails_with_the_words_of_the_stage(rows: int, on: On, airflow: LocalAirflow) -> None:
    with EmbeddedAws(time_scale=0.01) as aws:
        queue = aws.client("sqs").create_queue(QueueName="later")["QueueUrl"]
        given = {"queue": queue, "rows": rows, "unit": UNIT}
        report = run(PIPELINE, on=on, aws=aws, airflow=airflow, parameters=given)
        sent = aws.client("sqs").receive_message(QueueUrl=queue).get("Messages", [])
    if rows < 10:
        assert (report.state, report.error) == ("failed", "TooFewRows")
        assert report.cause == f"only 3 {UNIT}"
    else:
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    assert len(sent) == (rows >= 10)


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_only_the_stage_that_failed_is_told_as_failed(on: On, airflow: LocalAirflow) -> None:
    with EmbeddedAws(time_scale=0.01) as aws:
        queue = aws.client("sqs").create_queue(QueueName="later")["QueueUrl"]
        given = {"queue": queue, "rows": 3}
        report = run(BESIDE, on=on, aws=aws, airflow=airflow, parameters=given)
    assert {stage.name: stage.state for stage in report.stages} == {
        "first": "succeeded",
        "few": "failed",
        "beside": "succeeded",
        "last": "not reached",
    }


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_a_stage_that_was_skipped_is_told_as_skipped_though_the_run_failed(
    on: On, airflow: LocalAirflow
) -> None:
    with EmbeddedAws(time_scale=0.01) as aws:
        queue = aws.client("sqs").create_queue(QueueName="later")["QueueUrl"]
        given = {"queue": queue, "rows": 3}
        report = run(SKIPPING, on=on, aws=aws, airflow=airflow, parameters=given)
    assert {stage.name: stage.state for stage in report.stages} == {
        **dict.fromkeys(("call", "calls", "job", "reads"), "skipped"),
        "few": "failed",
        "last": "not reached",
    }
