"""Deployed triggers start runs on the embedded AWS: with the event's values, and paid once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline
from orchestration.deploy import step_functions
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from tests.guides import TRIGGERS, shown
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow

TOPIC = "arn:aws:sns:us-east-1:123456789012:news"
TRAINING = """
name: trained
region: us-east-1
workspace: s3://my-bucket/trained
parameters: {data: {}}
trigger: {s3: {bucket: my-data, prefix: sets/}, parameters: {data: {event: object_uri}}}
stages:
  train:
    kind: training_job
    image: image
    entrypoint: [sleep, "1"]
    environment: {DATA: {parameter: data}}
    cluster: {instance_type: ml.c5.xlarge}
"""


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        embedded.client("sns").create_topic(Name="news")
        embedded.provide(roles=[ROLE])
        s3 = embedded.client("s3")
        for bucket in ("my-bucket", "my-data"):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket="my-data", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        yield embedded


def deployed(aws: EmbeddedAws, folder: Path, text: str, **parameters: str) -> str:
    path = folder / "pipeline.yaml"
    path.write_text(text)
    done = step_functions(
        Pipeline.load(path), session=aws, parameters=parameters, sleep=lambda _: None
    )
    # Several pipelines of this account have the same stages, as one has that was renamed.
    assert [each for each in done.warnings if "with the same stages" not in each] == []
    return done.state_machine_arn


def ended(aws: EmbeddedAws, machine: str, count: int) -> list[Any]:
    """Return the executions of a machine, once so many of them are over."""
    states = aws.client("stepfunctions")

    def over() -> list[Any]:
        listed = states.list_executions(stateMachineArn=machine)["executions"]
        return [
            states.describe_execution(executionArn=each["executionArn"])
            for each in listed
            if each["status"] != "RUNNING"
        ]

    return wait(over, lambda found: len(found) >= count)


def test_the_guides_pipeline_runs_after_each_new_object(aws: EmbeddedAws, tmp_path: Path) -> None:
    text = shown(TRIGGERS, "yaml")[0]
    machine = deployed(aws, tmp_path, text, topic=TOPIC)
    for key in ("new/a.csv", "new/a.txt", "new/ä b.csv"):
        aws.client("s3").put_object(Bucket="my-data", Key=key, Body=b"1")
    runs = ended(aws, machine, 2)
    assert [run["status"] for run in runs] == ["SUCCEEDED", "SUCCEEDED"]
    told = sorted(call.request["Message"] for call in aws.calls(service="sns"))
    assert told == ["s3://my-data/new/a.csv", "s3://my-data/new/ä b.csv"]


def test_an_event_that_comes_twice_is_one_run_and_paid_once(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    machine = deployed(aws, tmp_path, TRAINING, role=ROLE)
    aws.client("s3").put_object(Bucket="my-data", Key="sets/a", Body=b"1")
    [first] = ended(aws, machine, 1)
    assert first["status"] == "SUCCEEDED", first
    # EventBridge sends the same input once more.
    aws.client("stepfunctions").start_execution(stateMachineArn=machine, input=first["input"])
    runs = ended(aws, machine, 2)
    assert [run["output"] for run in runs] == [first["output"]] * 2
    jobs = aws.state()["sagemaker"]["TrainingJobs"]
    [job] = [jobs[name] for name in jobs if name.startswith("trained-")]
    assert job["Environment"]["DATA"] == "s3://my-data/sets/a"


def test_a_pipeline_runs_after_another_one_has_succeeded(aws: EmbeddedAws, tmp_path: Path) -> None:
    stages = shown(TRIGGERS, "yaml")[0].partition("stages:")[2]
    start = f"region: us-east-1\nworkspace: s3://my-bucket/x\nrole: {ROLE}\n"
    text = start + "parameters: {data: {}, topic: {}}\nstages:" + stages
    first = deployed(aws, tmp_path, f"name: features\n{text}", topic=TOPIC, data="f")
    trigger = "trigger: {pipeline: features, parameters: {data: {event: run}}}\n"
    second = deployed(aws, tmp_path, f"name: follower\n{trigger}{text}", topic=TOPIC)
    states = aws.client("stepfunctions")
    for topic in (f"{TOPIC}-too", TOPIC):
        states.start_execution(
            stateMachineArn=first,
            name=f"to-{topic.rpartition(':')[2]}",
            input=json.dumps({"data": "f", "topic": topic}),
        )
    [run] = ended(aws, second, 1)
    assert run["status"] == "SUCCEEDED"
    assert json.loads(run["input"])["data"] == "to-news"
    assert len(ended(aws, first, 2)) == 2


def test_time_starts_a_deployed_schedule(aws: EmbeddedAws, tmp_path: Path) -> None:
    text = shown(TRIGGERS, "yaml")[0].replace("name: incoming", "name: timed")
    start, _, rest = text.partition("trigger:")
    text = start + "schedule: {cron: 0 6 * * *}\n\nstages:" + rest.partition("stages:")[2]
    machine = deployed(aws, tmp_path, text, topic=TOPIC, data="at six")
    [started] = [each for each in aws.pass_time(hours=24) if each.startswith("timed ")]
    [run] = ended(aws, machine, 1)
    time = started.removeprefix("timed at ")
    assert json.loads(run["input"])["orchestration:run"] == f"timed/{time}"
    assert time.endswith("T06:00:00Z")


def test_scheduled_runs_know_their_time(
    aws: EmbeddedAws, airflow: LocalAirflow, tmp_path: Path
) -> None:
    [text] = [block for block in shown(TRIGGERS, "yaml") if "time_parameter" in block]
    text = text.replace("topic: {}", f"topic: {{default: {TOPIC!r}}}")
    pipeline = Pipeline.parse(yaml.safe_load(text))
    machine = deployed(aws, tmp_path, text)
    [started] = [each for each in aws.pass_time(hours=7 * 24) if each.startswith("weekly at ")]
    [execution] = ended(aws, machine, 1)
    assert execution["status"] == "SUCCEEDED", execution
    time = started.removeprefix("weekly at ")
    moment = datetime.fromisoformat(time)
    begun = airflow.run(pipeline, aws=aws, scheduled=moment)
    assert begun.state == "success", begun.log
    by_hand = {"until": f"{moment:%Y-%m-%d}"}
    assert run(pipeline, on="direct", aws=aws, parameters=by_hand).state == "succeeded"
    messages = [call.request["Message"] for call in aws.calls(service="sns")]
    published = [each for each in messages if "/events/" in each]
    week = moment - timedelta(days=7)
    assert published == [f"s3://my-data/events/{week:year=%Y/month=%m/day=%d}"] * 3


@pytest.mark.parametrize("on", ["step-functions", "direct"])
def test_a_text_that_is_no_time_ends_the_run_before_it_calls(aws: EmbeddedAws, on: On) -> None:
    [text] = [block for block in shown(TRIGGERS, "yaml") if "time_parameter" in block]
    before = len(aws.calls(service="sns"))
    given = {"topic": TOPIC, "until": "2027-02-30"}
    report = run(Pipeline.parse(yaml.safe_load(text)), on=on, aws=aws, parameters=given)
    assert report.state == "failed"
    assert len(aws.calls(service="sns")) == before
