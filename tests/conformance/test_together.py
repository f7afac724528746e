"""Stages that go through a list together do the same on every driver, element by element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import RunReport, run
from tests.conformance.test_afterwards import IMAGE, everywhere, tells, told
from tests.conformance.test_conformance import BACKENDS
from tests.pipeline.test_nesting import written

pytestmark = pytest.mark.slow

COUNTING = ["sh", "-c", "echo 1 > /opt/ml/processing/output/words/count.txt"]
MARKET: dict[str, Any] = {
    "name": "market",
    "workspace": "s3://elsewhere/market",
    "parameters": {"data": {}, "market": {}},
    "stages": {
        # A loop of its own (over objects), a job that reads it, and a stage that few elements have.
        "fetch": {"kind": "data_staging", "source": {"parameter": "data"}},
        "count": {
            "kind": "processing_job",
            "image": IMAGE,
            "command": COUNTING,
            "local": {"command": COUNTING},
            "inputs": {"data": {"uri": {"ref": "fetch.location"}}},
            "results": {"words": {}},
            "cluster": {"instance_type": "ml.m5.large"},
        },
        "tell": {
            **tells({"join": [{"parameter": "market"}, " ", {"ref": "count.words"}]}),
            "when": {"not_equal": [{"parameter": "market"}, "it"]},
        },
    },
}
OUTER: dict[str, Any] = {
    "name": "markets",
    "region": "us-east-1",
    "workspace": "s3://together/runs",
    "role": "arn:aws:iam::123456789012:role/Execution",
    "parameters": {"markets": {"type": "array", "default": ["de", "it"]}},
    "stages": {
        "each": {
            "kind": "pipeline",
            "file": "market.yaml",
            "for_each": {"items": {"parameter": "markets"}, "max_concurrency": 2, "at_most": 2},
            "parameters": {
                "data": {"join": ["s3://together/data/", {"each": "item"}]},
                "market": {"each": "item"},
            },
        },
        "done": {
            **tells({"join": ["done ", {"each": "item"}]}),
            "for_each": {"items": {"ref": "each_count.words"}, "at_most": 2},
            "after": ["each"],
        },
    },
}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket="together")
        for market in ("de", "it", "fr"):
            s3.put_object(Bucket="together", Key=f"data/{market}/a.txt", Body=market.encode())
        embedded.client("sns").create_topic(Name="news")
        yield embedded


def test_a_nested_pipeline_runs_once_for_each_element(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    pipeline = Pipeline.load(written(tmp_path, market=MARKET, outer=OUTER))
    for report in everywhere(pipeline, aws, airflow).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        words = outputs["each_count"]["words"]
        assert len(set(words)) == 2
        assert {stage.name: stage.state for stage in report.stages} == dict.fromkeys(
            ("each_fetch", "each_count", "each_tell", "done"), "succeeded"
        )
        assert told(report) == {f"de {words[0]}", *(f"done {place}" for place in words)}
        assert outputs["each_tell"]["message"][1] is None
    jobs = aws.state()["sagemaker"]["ProcessingJobs"]
    assert len(jobs) == 2 * len(BACKENDS)


def test_an_element_that_fails_fails_the_run_and_the_next_attempt_pays_for_no_job_again(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    outer = {**OUTER, "name": "again"}
    pipeline = Pipeline.load(written(tmp_path, market=MARKET, outer=outer))
    given: dict[str, Any] = {"markets": ["fr", "nowhere"]}
    for report in everywhere(pipeline, aws, airflow, parameters=given).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        assert "data/nowhere" in str(report.cause)
    aws.client("s3").put_object(Bucket="together", Key="data/nowhere/a.txt", Body=b"here")
    for on in BACKENDS:
        run_id = f"again-{on}"
        report = run(pipeline, on=on, aws=aws, airflow=airflow, parameters=given, run_id=run_id)
        assert (report.state, report.cause) == ("succeeded", None)
    aws.client("s3").delete_object(Bucket="together", Key="data/nowhere/a.txt")
    jobs = Counter(name for name in aws.state()["sagemaker"]["ProcessingJobs"])
    assert sum(name.startswith("again-") for name in jobs) == 2 * len(BACKENDS)


def states(report: RunReport) -> dict[str, str]:
    return {stage.name: stage.state for stage in report.stages}


def test_a_stage_of_some_elements_that_fails_is_told_as_failed_and_the_others_as_they_were(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    never: dict[str, Any] = {
        "kind": "fail",
        "after": ["tell"],
        "when": {"equal": [{"parameter": "market"}, "it"]},
        "error": "NoSuchMarket",
        "cause": "it",
    }
    market = {**MARKET, "stages": {**MARKET["stages"], "never": never}}
    outer = {**OUTER, "name": "some"}
    pipeline = Pipeline.load(written(tmp_path, market=market, outer=outer))
    given: dict[str, Any] = {"markets": ["it"]}
    for report in everywhere(pipeline, aws, airflow, parameters=given).values():
        assert (report.state, report.error) == ("failed", "NoSuchMarket")
        assert states(report) == {
            "each_fetch": "succeeded",
            "each_count": "succeeded",
            "each_tell": "skipped",
            "each_never": "failed",
            "done": "not reached",
        }


def test_stages_without_jobs_that_go_together_are_told_apart_too(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    missing = {"TopicArn": "arn:aws:sns:us-east-1:123456789012:nothing", "Message": "m"}
    market = {
        **MARKET,
        "parameters": {"market": {}},
        "stages": {
            "first": tells({"parameter": "market"}),
            "tell": {**MARKET["stages"]["tell"], **tells("it"), "after": ["first"]},
            "last": {**tells(""), "after": ["tell"], "request": missing},
        },
    }
    stage = OUTER["stages"]["each"]
    each = {**stage, "parameters": {"market": stage["parameters"]["market"]}}
    outer = {**OUTER, "name": "calls", "stages": {"each": each}}
    pipeline = Pipeline.load(written(tmp_path, market=market, outer=outer))
    given: dict[str, Any] = {"markets": ["it"]}
    for report in everywhere(pipeline, aws, airflow, parameters=given).values():
        assert (report.state, report.error) == ("failed", "NotFound")
        assert states(report) == {
            "each_first": "succeeded",
            "each_tell": "skipped",
            "each_last": "failed",
        }


def test_stages_that_went_together_stay_what_they_were_where_a_later_one_fails(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    outer = {**OUTER, "name": "later", "stages": {**OUTER["stages"]}}
    outer["stages"]["done"] = {
        **tells("done"),
        "after": ["each"],
        "request": {"TopicArn": "arn:aws:sns:us-east-1:123456789012:nothing", "Message": "m"},
    }
    pipeline = Pipeline.load(written(tmp_path, market=MARKET, outer=outer))
    given: dict[str, Any] = {"markets": ["it"]}
    for report in everywhere(pipeline, aws, airflow, parameters=given).values():
        assert (report.state, report.error) == ("failed", "NotFound")
        assert states(report) == {
            "each_fetch": "succeeded",
            "each_count": "succeeded",
            "each_tell": "skipped",
            "done": "failed",
        }


def test_the_first_stage_that_goes_together_is_told_as_failed_if_it_fails(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    pipeline = Pipeline.load(written(tmp_path, market=MARKET, outer={**OUTER, "name": "first"}))
    given: dict[str, Any] = {"markets": ["nowhere"]}
    for report in everywhere(pipeline, aws, airflow, parameters=given).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        assert states(report) == {
            "each_fetch": "failed",
            "each_count": "not reached",
            "each_tell": "not reached",
            "done": "not reached",
        }
