"""The stages of a nested pipeline do the same on every driver, beside and after the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from orchestration.local.run.executions import role
from tests.conformance.test_afterwards import IMAGE, everywhere, tells, told
from tests.conformance.test_conformance import BACKENDS
from tests.guides import EMBEDDING, NESTED_PIPELINES, shown
from tests.pipeline.test_nesting import written

pytestmark = pytest.mark.slow

COUNTING = ["sh", "-c", "echo 1 > /opt/ml/processing/output/words/count.txt"]
PREPARE: dict[str, Any] = {
    "name": "prepare",
    "workspace": "s3://elsewhere/prepare",
    "parameters": {"source": {}, "copies": {"type": "number", "default": 1}},
    "stages": {
        "count": {
            "kind": "processing_job",
            "image": IMAGE,
            "command": COUNTING,
            "local": {"command": COUNTING},
            "environment": {"COPIES": {"join": [{"parameter": "copies"}]}},
            "results": {"words": {}},
            "cluster": {"instance_type": "ml.m5.large"},
        },
        "fetch": {
            "kind": "data_staging",
            "source": {"parameter": "source"},
            "after": ["count"],
            "when": {"equal": [{"parameter": "copies"}, 1]},
        },
    },
}
ALARM: dict[str, Any] = {
    "name": "alarm",
    "workspace": "s3://elsewhere/alarm",
    "parameters": {"text": {}},
    "stages": {"tell": tells({"join": ["alarm ", {"parameter": "text"}]})},
}
OUTER: dict[str, Any] = {
    "name": "nests",
    "region": "us-east-1",
    "workspace": "s3://nests/runs",
    "role": "arn:aws:iam::123456789012:role/Execution",
    "parameters": {"data": {"default": "s3://nests/data"}},
    "stages": {
        "prep": {
            "kind": "pipeline",
            "file": "prepare.yaml",
            "parameters": {"source": {"parameter": "data"}},
        },
        "done": {**tells({"join": ["copied to ", {"ref": "prep_fetch.location"}]})},
    },
    "on_failure": {
        "alarm": {
            "kind": "pipeline",
            "file": "alarm.yaml",
            "parameters": {"text": {"outcome": "cause"}},
        }
    },
}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        embedded.client("s3").create_bucket(Bucket="nests")
        embedded.client("sns").create_topic(Name="news")
        yield embedded


def test_a_nested_stage_fails_the_run_and_the_next_attempt_pays_for_no_job_again(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    documents = {"prepare": PREPARE, "alarm": ALARM, "outer": OUTER}
    pipeline = Pipeline.load(written(tmp_path, **documents))
    for report in everywhere(pipeline, aws, airflow).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        assert "stage prep_fetch" in str(report.cause)
        assert told(report) == {f"alarm {report.cause}"}
    aws.client("s3").put_object(Bucket="nests", Key="data/a.txt", Body=b"one")
    for backend in BACKENDS:
        report = run(pipeline, on=backend, aws=aws, airflow=airflow, run_id=f"nests-{backend}")
        assert (report.state, report.error) == ("succeeded", None), report.cause
        outputs: Any = report.outputs
        assert set(outputs) == {"prep_count", "prep_fetch", "done"}
        assert outputs["prep_fetch"]["object_count"] == 1
        assert told(report) == {f"copied to {outputs['prep_fetch']['location']}"}
        # The workspace is that of the pipeline around, the job's name begins with its name.
        assert outputs["prep_count"]["words"].startswith("s3://nests/runs/")
    jobs = aws.state()["sagemaker"]["ProcessingJobs"]
    assert len(jobs) == len(BACKENDS)
    assert all(name.startswith("nests-prep-count-") for name in jobs)


def test_the_guide_s_pipeline_starts_one_execution_for_each_element(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    (market,), guide = shown(EMBEDDING, "yaml"), shown(NESTED_PIPELINES, "yaml")
    made = aws.client("stepfunctions").create_state_machine(
        name="market",
        definition=json.dumps(stepfunctions.render(Pipeline.parse(yaml.safe_load(market)).lower())),
        roleArn=role(aws, "Market", "states.amazonaws.com"),
    )
    machine = made["stateMachineArn"]
    pipeline = Pipeline.parse({**yaml.safe_load(guide[-1]), "region": "us-east-1"})
    given = {
        "topic": "arn:aws:sns:us-east-1:123456789012:news",
        "states": machine.removesuffix(":stateMachine:market"),
    }
    for number, backend in enumerate(BACKENDS, start=1):
        report = run(pipeline, on=backend, aws=aws, airflow=airflow, parameters=given)
        assert (report.state, report.cause) == ("succeeded", None)
        outputs: Any = report.outputs
        said = [json.loads(text)["announce"]["message"] for text in outputs["each"]["output"]]
        assert len(set(said)) == 2
        started = aws.client("stepfunctions").list_executions(stateMachineArn=machine)
        assert len(started["executions"]) == 2 * number
    wrong = {**given, "topic": f"{given['topic']}-missing"}
    report = run(pipeline, on="direct", aws=aws, airflow=airflow, parameters=wrong)
    assert (report.state, report.error) == ("failed", "JobFailed")
    assert "ended as FAILED" in str(report.cause)
