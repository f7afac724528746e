"""Conditions skip the same stages on every backend, and leave the same outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run

pytestmark = pytest.mark.slow

FULL = {"equal": [{"parameter": "mode"}, "full"]}


def query(sql: Any, **further: Any) -> dict[str, Any]:
    """A stage with a job."""
    return {
        "kind": "aws_call",
        "service": "athena",
        "operation": "StartQueryExecution",
        "request": {
            "QueryString": sql,
            "ResultConfiguration": {"OutputLocation": "s3://bucket/results"},
        },
        "results": {"id": "QueryExecutionId"},
        "poll": {
            "operation": "GetQueryExecution",
            "request": {"QueryExecutionId": {"ref": "self.id"}},
            "status": "QueryExecution.Status.State",
            "success": ["SUCCEEDED"],
            "failure": ["FAILED", "CANCELLED"],
            "outputs": {"sql": "QueryExecution.Query"},
        },
        **further,
    }


def message(text: Any, **further: Any) -> dict[str, Any]:
    """A stage without a job."""
    return {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": {"parameter": "topic"}, "Message": text},
        "results": {"id": "MessageId"},
        **further,
    }


STAGES: dict[str, Any] = {
    "full": query("SELECT 'full'", when=FULL),
    "quick": query("SELECT 'quick'", when={"not": FULL}),
    # Skipped with the stage that it reads, and with its own condition.
    "check": message({"ref": "full.sql"}, when={"parameter": "checked"}),
    # Waits, and goes on all the same.
    "told": message("over", after=["check"]),
    "best": message(
        {"join": ["best: ", {"first_of": [{"ref": "full.sql"}, {"ref": "quick.sql"}]}]}
    ),
    "last": message({"first_of": [{"ref": "check.id"}, "nothing was checked"]}),
    # Compares what another stage gave.
    "again": query("SELECT 'again'", when={"not_equal": [{"ref": "told.id"}, "nothing"]}),
}


def pipeline(stages: dict[str, Any]) -> Pipeline:
    named = {}
    for name, stage in stages.items():
        poll = stage.get("poll")
        if poll is not None:
            own = {"QueryExecutionId": {"ref": f"{name}.id"}}
            stage = {**stage, "poll": {**poll, "request": own}}
        named[name] = stage
    return Pipeline.parse(
        {
            "name": "conditions",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {
                "topic": {},
                "mode": {"default": "quick"},
                "checked": {"type": "boolean", "default": True},
            },
            "stages": named,
        }
    )


@pytest.fixture(scope="module")
def airflow() -> Iterator[LocalAirflow]:
    with LocalAirflow() as started:
        yield started


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as started:
        yield started


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
@pytest.mark.parametrize(
    ("mode", "checked", "ran"),
    [
        ("full", True, {"full", "check", "told", "best", "last", "again"}),
        ("full", False, {"full", "told", "best", "last", "again"}),
        ("quick", True, {"quick", "told", "best", "last", "again"}),
    ],
)
def test_a_stage_runs_where_its_condition_holds(
    mode: str, checked: bool, ran: set[str], on: On, airflow: LocalAirflow, aws: EmbeddedAws
) -> None:
    topic = aws.client("sns").create_topic(Name="news")["TopicArn"]
    parameters = {"topic": topic, "mode": mode, "checked": checked}
    report = run(pipeline(STAGES), on=on, aws=aws, airflow=airflow, parameters=parameters)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert {name for name, values in outputs.items() if values["id"] is not None} == ran
    assert {values.get("sql") for name, values in outputs.items() if name not in ran} <= {None}
    assert {stage.name for stage in report.stages if stage.state == "succeeded"} == ran
    assert {s.state for s in report.stages if s.name not in ran} == {"skipped"}
    sent = [call for call in report.calls if call.operation in ("StartQueryExecution", "Publish")]
    assert len(sent) == len(ran)
    messages = [c.request["Message"] for c in sent if c.operation == "Publish"]
    assert f"best: SELECT '{mode}'" in messages
    assert ("nothing was checked" in messages) == ("check" not in ran)
