"""The stages after the end of a run do the same on every driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from orchestration.local.run.report import RunReport
from tests.conformance import normal
from tests.conformance.test_conformance import BACKENDS, Backend

pytestmark = pytest.mark.slow

IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/words:1"
CAUSE = {"join": [{"outcome": "state"}, "|", {"outcome": "error"}, "|", {"outcome": "cause"}]}
Reports = dict[Backend, RunReport]


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket="ends")
        s3.put_object(Bucket="ends", Key="data/a.txt", Body=b"one")
        embedded.client("sns").create_topic(Name="news")
        yield embedded


def tells(message: Any, topic: str = "news") -> dict[str, Any]:
    return {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {
            "TopicArn": f"arn:aws:sns:us-east-1:123456789012:{topic}",
            "Message": message,
        },
        "results": {"message": "MessageId"},
    }


def made(name: str, *, source: str = "data", **last: Any) -> Pipeline:
    staging = {
        "kind": "data_staging",
        "source": {"join": [f"s3://ends/{source}", {"parameter": "below"}]},
    }
    return Pipeline.parse(
        {
            "name": name,
            "region": "us-east-1",
            "workspace": "s3://ends/runs",
            "role": "arn:aws:iam::123456789012:role/Execution",
            "parameters": {"below": {"default": ""}},
            "stages": {"staging": staging},
            **last,
        }
    )


def everywhere(pipeline: Pipeline, aws: EmbeddedAws, airflow: LocalAirflow, **more: Any) -> Reports:
    reports: Reports = {}
    for backend in BACKENDS:
        name = f"{pipeline.name}-{backend}"
        reports[backend] = run(pipeline, on=backend, aws=aws, airflow=airflow, run_id=name, **more)
    first, *others = reports.values()
    for other in others:
        assert normal.changes(other.calls) == normal.changes(first.calls)
        assert (other.state, other.error) == (first.state, first.error)
        assert normal.anonymous(other.cause) == normal.anonymous(first.cause)
        assert normal.anonymous(other.outputs) == normal.anonymous(first.outputs)
    return reports


def told(report: RunReport) -> set[str]:
    """Return the messages that a run has published."""
    return {
        str(call.request["Message"])
        for call in report.calls
        if call.operation == "Publish" and not call.error_code
    }


ENDS: dict[str, Any] = {
    "on_failure": {"alarm": tells({"join": ["alarm ", CAUSE]})},
    "on_success": {
        "praise": tells({"join": ["praise ", {"ref": "staging.location"}]}),
        "counted": {
            **tells("counted"),
            "after": ["praise"],
            "when": {"equal": [{"ref": "staging.object_count"}, 1]},
        },
    },
    "always": {"note": tells({"join": ["note ", CAUSE]})},
}


def test_stages_follow_a_run_that_succeeded(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    for report in everywhere(made("well", **ENDS), aws, airflow).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        messages = told(report)
        assert f"praise {outputs['staging']['location']}" in messages
        assert "note succeeded||" in messages
        assert {text.split(" ")[0] for text in messages} == {"praise", "counted", "note"}


def test_stages_follow_a_run_that_failed(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    for report in everywhere(made("badly", source="nothing", **ENDS), aws, airflow).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        ending = f"failed|SourceNotUsable|{report.cause}"
        assert told(report) == {f"alarm {ending}", f"note {ending}"}


def test_a_stage_after_the_end_that_fails_hides_no_failure(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    broken = {"broken": tells("never", topic="missing"), "note": tells({"outcome": "error"})}
    pipeline = made("twice", source="nothing", on_failure=broken)
    for report in everywhere(pipeline, aws, airflow).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        assert told(report) == {"SourceNotUsable"}


def test_a_run_fails_where_a_stage_after_its_end_does(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    late = {
        "kind": "data_staging",
        "source": "s3://ends/nothing",
        "destination": {"kind": "s3", "uri": "s3://ends/late"},
    }
    pipeline = made("late", on_success={"late": late}, always={"note": tells({"outcome": "state"})})
    for report in everywhere(pipeline, aws, airflow).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        assert str(report.cause).startswith("the source of stage late")
        assert report.outputs is None
        assert told(report) == {"succeeded"}


def test_a_job_after_the_end_is_paid_once_for_each_attempt(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    swept = {
        "kind": "processing_job",
        "image": IMAGE,
        "command": ["sh", "-c", 'echo "$CAUSE" > /opt/ml/processing/output/words/cause.txt'],
        "environment": {"CAUSE": {"outcome": "error"}},
        "results": {"words": {}},
        "cluster": {"instance_type": "ml.m5.large"},
        "local": {
            "command": ["sh", "-c", 'echo "$CAUSE" > /opt/ml/processing/output/words/cause.txt']
        },
    }
    note = tells({"join": ["swept into ", {"ref": "swept.words"}]})
    pipeline = made("again", source="nothing", on_failure={"swept": swept, "note": note})
    first = everywhere(pipeline, aws, airflow)
    second = everywhere(pipeline, aws, airflow)
    for backend in BACKENDS:
        places = []
        for report in (first[backend], second[backend]):
            assert (report.state, report.error) == ("failed", "SourceNotUsable")
            jobs = [c for c in report.calls if c.operation == "CreateProcessingJob"]
            assert len(jobs) == 1
            [text] = told(report)
            places.append(text.removeprefix("swept into s3://ends/"))
        assert places[0] != places[1]
        for place in places:
            body = aws.client("s3").get_object(Bucket="ends", Key=f"{place}/cause.txt")["Body"]
            assert body.read() == b"SourceNotUsable\n"
