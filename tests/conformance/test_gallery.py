"""Every example of the gallery runs as its README says, and ends alike on every driver."""

from __future__ import annotations

import io
import json
import math
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from orchestration.graph import ParameterValue
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On
from tests.conformance import gallery, normal
from tests.conformance.gallery import DRIVERS, Example

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

_VERSION = re.compile(r'(?<=/)\d+(?=")|(?<="version": )\d+')
Outputs = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        yield embedded


@pytest.fixture(autouse=True)
def _no_endpoint_stays(aws: EmbeddedAws) -> Iterator[None]:
    """Delete the endpoints that an example leaves, each of which is a process."""
    yield
    sagemaker = aws.client("sagemaker")
    for endpoint in sagemaker.list_endpoints()["Endpoints"]:
        sagemaker.delete_endpoint(EndpointName=endpoint["EndpointName"])


def everywhere(example: Example, aws: EmbeddedAws, airflow: LocalAirflow) -> Outputs:
    """Run an example on every driver; return the outputs, which are the same."""
    shown = {on: succeeds(example, on, aws, airflow) for on in DRIVERS}
    assert len({_alike(outputs, on) for on, outputs in shown.items()}) == 1
    return shown[DRIVERS[0]]


def succeeds(
    example: Example,
    on: On,
    aws: EmbeddedAws,
    airflow: LocalAirflow | None = None,
    **changed: ParameterValue,
) -> Outputs:
    report = example.run(aws, on, airflow, **changed)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    return cast(Outputs, outputs)


def _alike(outputs: Any, on: On) -> str:
    """Return outputs as text, without names of buckets and versions of model packages."""
    return _VERSION.sub("<version>", normal.anonymous(outputs).replace(on, ""))


def content(aws: EmbeddedAws, uri: str) -> bytes:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return cast(bytes, aws.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())


def test_a_model_is_trained_on_new_data_and_deployed_if_it_is_good(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    example = gallery.from_readme("retraining", tmp_path)
    good = succeeds(example, "step-functions", aws)
    assert 0.75 < good["evaluate"]["best_metric"] < 0.99
    [probability] = good["deploy"]["answer"]
    assert 0 < probability < 1
    assert _alike(succeeds(example, "direct", aws), "direct") == _alike(good, "step-functions")
    # The data is as the last good run saw it.
    again = succeeds(example, "step-functions", aws)
    assert (again["staging"]["unchanged"], again["train"]["job_name"]) == (True, None)
    strict = succeeds(example, "airflow", aws, airflow, at_least=0.99)
    assert strict["evaluate"]["best_metric"] == good["evaluate"]["best_metric"]
    assert strict["deploy"]["answer"] is None


def test_each_market_has_a_model(aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path) -> None:
    outputs = everywhere(gallery.from_readme("markets", tmp_path), aws, airflow)
    assert len({*outputs["train"]["model_artifacts"]}) == 2
    assert len({*outputs["register"]["package"]}) == 2


def test_the_best_model_of_a_search_is_measured_and_deployed(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    outputs = everywhere(gallery.from_readme("tuning", tmp_path), aws, airflow)
    assert outputs["tune"]["job_name"].startswith(f"{outputs['tune']['tuning_job_name']}-002-")
    assert 0 < outputs["tune"]["objective"] < outputs["evaluate"]["best_metric"] < 35
    morning, night = outputs["deploy"]["answer"]
    assert morning > 250 > night


def test_a_person_lets_a_model_into_production(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    outputs = everywhere(gallery.from_readme("release", tmp_path), aws, airflow)
    assert outputs["decide"]["status"] == "Approved"
    assert outputs["production"]["model_package"] == outputs["register"]["model_package"]
    assert outputs["sign_off"]["comment"] == "tried it"
    assert outputs["production"]["answer"] == {"price": 264000}


def test_a_function_picks_the_model_that_scores(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    example, script = gallery.from_script("batch_scoring")
    script.make_function(aws)
    outputs = everywhere(example, aws, airflow)
    assert outputs["pick"]["name"] == "2026-11"
    assert content(aws, f"{outputs['score']['location']}/de.csv.out") == b"c-001,3.50\nc-002,1.00\n"


def test_slack_hears_of_a_failure(aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path) -> None:
    example = gallery.from_readme("slack_alerts", tmp_path)
    sns, sqs = aws.client("sns"), aws.client("sqs")
    topic = sns.create_topic(Name="alerts")["TopicArn"]
    assert topic == example.parameters["topic"]
    queue = sqs.create_queue(QueueName="channel")["QueueUrl"]
    endpoint = topic.replace("sns", "sqs").replace("alerts", "channel")
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=endpoint)
    for on in DRIVERS:
        report = example.run(aws, on, airflow)
        assert (report.state, report.error) == ("failed", "BelowThreshold")
        [message] = sqs.receive_message(QueueUrl=queue)["Messages"]
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        shown = json.loads(json.loads(message["Body"])["Message"])
        assert (shown["version"], shown["source"]) == ("1.0", "custom")
        assert shown["content"]["title"] == ":x: prices: BelowThreshold"


@pytest.mark.thorough
def test_boosted_trees_are_measured_and_deployed(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    outputs = everywhere(gallery.from_readme("xgboost", tmp_path), aws, airflow)
    assert 0 < outputs["evaluate"]["best_metric"] < 120
    [rent] = outputs["deploy"]["answer"]
    assert 700 < rent < 1200


@pytest.mark.thorough
def test_the_best_checkpoint_of_a_classifier_of_texts_is_deployed(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    outputs = everywhere(gallery.from_readme("text_classifier", tmp_path), aws, airflow)
    judged = [row["checkpoint"].rstrip("/")[-1] for row in outputs["evaluate"]["results"]]
    assert judged == ["2", "3"]
    assert [answer["label"] for answer in outputs["deploy"]["answer"]] == ["delivery", "payment"]


@pytest.mark.thorough
def test_a_language_model_is_fine_tuned_on_two_machines(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    # On one driver only: each of its processes imports PyTorch and transformers.
    report = gallery.from_readme("fine_tuning", tmp_path).run(aws, "airflow", airflow)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    train, evaluate, _ = report.stages
    assert evaluate.metrics["best_metric"] == pytest.approx(
        math.exp(train.metrics["eval:loss"]), rel=0.2
    )
    guessing = math.log(320)  # words in the vocabulary
    assert train.metrics["eval:loss"] < guessing - 1
    outputs: Any = report.outputs
    assert outputs["deploy"]["answer"]["text"]
    archive = io.BytesIO(content(aws, outputs["train"]["model_artifacts"]))
    with tarfile.open(fileobj=archive) as packed:
        names = {Path(name).name for name in packed.getnames()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
