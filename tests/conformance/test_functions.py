"""Functions of Lambda do the same on every backend, and really run."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run

pytestmark = pytest.mark.slow

BACKENDS = ("direct", "step-functions", "airflow")
CODE = """
import os

def handler(event, context):
    if event.get("fail"):
        raise KeyError(event["fail"])
    if event.get("leave"):
        os._exit(3)
    words = event["words"]
    return {
        "count": len(words),
        "best": {"words": [{"text": words[0]}, {"text": words[-1]}]},
        "said": os.environ["GREETING"] + ", " + words[0],
        "nothing": None,
        "rows": [{"word": word, "size": len(word)} for word in words],
    }
"""


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as started:
        statement = {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        role = started.client("iam").create_role(
            RoleName="functions", AssumeRolePolicyDocument=document
        )
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as files:
            files.writestr("words.py", CODE)
        started.client("lambda").create_function(
            FunctionName="words",
            Runtime="python3.11",
            Handler="words.handler",
            Role=role["Role"]["Arn"],
            Code={"ZipFile": archive.getvalue()},
            Environment={"Variables": {"GREETING": "Grüße"}},
        )
        yield started


def invoking(event: Any, **fields: Any) -> Pipeline:
    count = {
        "kind": "aws_call",
        "service": "lambda",
        "operation": "Invoke",
        "request": {"FunctionName": "words", "Payload": event},
        **fields,
    }
    again = {
        **count,
        "request": {"FunctionName": "words", "Payload": {"words": [{"ref": "count.said"}]}},
        "results": {"said": "Payload.said"},
    }
    stages = {"count": count, **({"again": again} if "results" in fields else {})}
    return Pipeline.parse(
        {
            "name": "functions",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {"word": {"default": "{{ ds }} {% 'ü' $x %}"}},
            "stages": stages,
        }
    )


def ended(pipeline: Pipeline, on: On, aws: EmbeddedAws, airflow: LocalAirflow) -> RunReport:
    return run(pipeline, on=on, aws=aws, airflow=airflow)


def sent(report: RunReport) -> list[Any]:
    return [json.loads(c.request["Payload"]) for c in report.calls if c.operation == "Invoke"]


@pytest.mark.parametrize("on", BACKENDS)
def test_places_in_the_payload_are_outputs(on: On, aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    results = {
        "said": "Payload.said",
        "count": "Payload.count",
        "last": "Payload.best.words[1].text",
        "version": "ExecutedVersion",
    }
    event = {"words": [{"parameter": "word"}, "b"], "fail": "", "deep": {"n": [1, None, True]}}
    report = ended(invoking(event, results=results), on, aws, airflow)
    assert (report.state, report.cause) == ("succeeded", None)
    literal = "{{ ds }} {% 'ü' $x %}"
    said = f"Grüße, {literal}"
    assert report.outputs is not None
    assert report.outputs["count"] == {"said": said, "count": 2, "last": "b", "version": "$LATEST"}
    assert report.outputs["again"] == {"said": f"Grüße, {said}"}
    assert sent(report) == [{**event, "words": [literal, "b"]}, {"words": [said]}]


@pytest.mark.parametrize("on", BACKENDS)
def test_a_function_that_fails_fails_the_run_in_its_own_words(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    report = ended(invoking({"fail": "no ü 'x'"}), on, aws, airflow)
    assert (report.state, report.error) == ("failed", "FunctionFailed")
    assert report.cause == "stage count: function words failed: KeyError: \"no ü 'x'\""
    assert sent(report) == [{"fail": "no ü 'x'"}]


@pytest.mark.parametrize("on", BACKENDS[:2])
def test_a_runtime_that_exits_is_a_failure_too(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    report = ended(invoking({"leave": True}), on, aws, airflow)
    assert (report.state, report.error) == ("failed", "FunctionFailed")
    assert str(report.cause).startswith(
        "stage count: function words failed: Runtime.ExitError: RequestId: "
    )


@pytest.mark.parametrize(
    ("on", "place"),
    [
        *((on, "Payload.best.words.text") for on in BACKENDS),
        *((on, place) for on in BACKENDS[:2] for place in ("Payload.nothing", "Payload.said[0]")),
    ],
)
def test_a_result_that_is_missing_fails_the_run(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow, place: str
) -> None:
    event = {"words": ["a"]}
    results = {"said": "Payload.said", "other": place}
    report = ended(invoking(event, results=results), on, aws, airflow)
    cause = f"stage count: function words returned no {place}"
    assert (report.state, report.error, report.cause) == ("failed", "MissingOutput", cause)


@pytest.mark.parametrize("on", BACKENDS[:2])
def test_a_function_that_nobody_waits_for_is_only_started(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    request = {"FunctionName": "words", "InvocationType": "Event", "Payload": {"words": ["a"]}}
    report = ended(invoking({}, request=request), on, aws, airflow)
    assert (report.state, report.cause) == ("succeeded", None)
    assert sent(report) == [{"words": ["a"]}]


@pytest.mark.parametrize("on", BACKENDS)
def test_a_list_that_a_function_returns_is_gone_through(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    results = {"rows": "Payload.rows", "said": "Payload.said"}
    count = invoking({"words": ["one", "three"]}, results=results).stages[0]
    again = {
        "kind": "aws_call",
        "service": "lambda",
        "operation": "Invoke",
        "for_each": {
            "items": {"ref": "count.rows"},
            "fields": {"word": "string", "size": "number"},
            "key": "word",
        },
        "request": {
            "FunctionName": "words",
            "Payload": {"words": [{"each": "word"}], "size": {"each": "size"}},
        },
        "results": {"said": "Payload.said"},
    }
    document = {
        "name": "rows",
        "region": "us-east-1",
        "workspace": "s3://bucket/runs",
        "stages": {"count": count, "again": again},
    }
    report = ended(Pipeline.parse(document), on, aws, airflow)
    assert (report.state, report.cause) == ("succeeded", None)
    outputs: Any = report.outputs
    assert outputs["again"]["said"] == ["Grüße, one", "Grüße, three"]
    elements = [event for event in sent(report) if "size" in event]
    assert sorted(elements, key=lambda event: event["size"]) == [
        {"words": ["one"], "size": 3},
        {"words": ["three"], "size": 5},
    ]
