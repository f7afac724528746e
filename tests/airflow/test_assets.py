"""Assets of the data and models that stages write, and the events that Airflow keeps of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from airflow.sdk import Asset

from orchestration.airflow import dag
from orchestration.expressions import Parameter, Result, join, run_id
from orchestration.graph import Workflow
from orchestration.local.airflow import LocalAirflow
from tests.airflow.conftest import Run
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import training, workflow

pytestmark = pytest.mark.xdist_group("airflow")

READER = """
import json
from pathlib import Path
from airflow.sdk import DAG, Asset, task

ASSETS = [Asset(name) for name in {names}]

@task(inlets=ASSETS)
def read(inlet_events):
    seen = {{asset.name: [event.extra for event in inlet_events[asset]] for asset in ASSETS}}
    Path(__file__).with_name("seen.json").write_text(json.dumps(seen))

with DAG("reader"):
    read()
"""


def pipeline(name: str) -> Workflow:
    made = workflow(training("train.job"), parameters={"bucket": "b-1"}, name=name)
    return replace(
        made,
        written={
            "train.model": Result("train.job", "artifacts"),
            "train.checkpoints": join("s3://", Parameter("bucket"), "/", run_id()),
            "train.logs": f"s3://{name}/logs",
        },
    )


def names(pipeline: str) -> list[str]:
    return [f"{pipeline}.train.model", f"{pipeline}.train.checkpoints", f"s3://{pipeline}/logs"]


def seen_by_another_dag(
    airflow: LocalAirflow, aws: ScriptedAws, folder: Path, assets: list[str]
) -> dict[str, list[dict[str, str]]]:
    file = folder / "reader.py"
    file.write_text(READER.format(names=assets))
    ended = airflow.run(file, aws=aws, run_id=folder.name)
    assert ended.state == "success", ended.log
    events: dict[str, list[dict[str, str]]] = json.loads((folder / "seen.json").read_text())
    return events


def test_events_hold_the_uris_of_the_run(
    run: Run, airflow: LocalAirflow, aws: ScriptedAws, tmp_path: Path
) -> None:
    ended = run(pipeline("written"), bucket="of-this-run")
    assert ended.state == "success", ended.log
    model, checkpoints, logs = names("written")
    events = seen_by_another_dag(airflow, aws, tmp_path, [model, checkpoints, logs])
    [job] = aws.of("CreateTrainingJob")
    assert events[model] == [{"uri": f"s3://bucket/{job['TrainingJobName']}/model.tar.gz"}]
    [checkpoint] = events[checkpoints]
    assert checkpoint["uri"].startswith("s3://of-this-run/")
    assert events[logs] == [{"uri": "s3://written/logs"}]


def test_a_failed_job_has_written_nothing(
    run: Run, airflow: LocalAirflow, aws: ScriptedAws, tmp_path: Path
) -> None:
    aws.statuses["train-job"] = ["Failed"]
    assert run(pipeline("failing")).state == "failed"
    events = seen_by_another_dag(airflow, aws, tmp_path, names("failing"))
    assert list(events.values()) == [[], [], []]


def test_outlets_are_the_same_in_every_run() -> None:
    train = dag(pipeline("nightly")).get_task("train")
    assert train.outlets == [Asset(name) for name in names("nightly")]
