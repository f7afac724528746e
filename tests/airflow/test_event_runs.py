"""DAGs that run after events: what they wait for, and what a run gets of its event."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import Asset, AssetOrTimeSchedule
from airflow.serialization.serialized_objects import DagSerialization

from orchestration import Pipeline
from orchestration.airflow import dag
from orchestration.backends import locks
from orchestration.backends.airflow import locking
from orchestration.backends.locking import with_renderings
from orchestration.errors import PipelineError
from orchestration.expressions import Parameter
from orchestration.graph import ParameterSpec, TriggerSpec, Workflow
from orchestration.local.airflow import LocalAirflow
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import training, workflow
from tests.guides import EMBEDDING, TRIGGERS, shown

pytestmark = pytest.mark.xdist_group("airflow")

QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/incoming"
EVENT: dict[str, Any] = {
    "id": "17793124-05d4-b198-2fde-7ededc63b103",
    "time": "2026-11-22T06:00:00Z",
    "detail": {"bucket": {"name": "in"}, "object": {"key": 'new/a "b"\n.csv', "size": 3}},
}


def triggered(name: str = "triggered") -> Workflow:
    text = {"DATA": Parameter("data"), "MARKET": Parameter("market"), "PLAIN": Parameter("plain")}
    made = workflow(training("train.job", Environment=text), name=name)
    return replace(
        made,
        parameters=(
            *(ParameterSpec(name=each) for each in ("data", "market")),
            ParameterSpec(name="plain", default="as ever"),
        ),
        trigger=TriggerSpec(
            pattern={"source": ["aws.s3"]},
            values={"data": "s3://<detail.bucket.name>/<detail.object.key>"},
            parameters={"market": "de"},
        ),
    )


def found_in_queue(event: Any) -> dict[str, Any]:
    """What the watcher of a queue leaves."""
    message = {"MessageId": "1", "Body": json.dumps(event)}
    return {"from_trigger": True, "payload": {"status": "success", "message_batch": [message]}}


def environment(aws: ScriptedAws) -> Any:
    return [request["Environment"] for request in aws.of("CreateTrainingJob")]


@pytest.mark.parametrize("extra", [EVENT, found_in_queue(EVENT)], ids=["asset", "queue"])
def test_a_run_gets_what_its_event_tells(
    airflow: LocalAirflow, aws: ScriptedAws, extra: Any
) -> None:
    made = "queue" if "payload" in extra else "asset"
    ended = airflow.run(triggered(), aws=aws, run_id=f"by-{made}", event=extra)
    assert ended.state == "success", ended.log
    assert environment(aws) == [
        {"DATA": 's3://in/new/a "b"\n.csv', "MARKET": "de", "PLAIN": "as ever"}
    ]


def test_an_event_that_comes_twice_is_paid_once(airflow: LocalAirflow, aws: ScriptedAws) -> None:
    made = triggered("twice")
    for number in (1, 2):
        ended = airflow.run(made, aws=aws, run_id=f"delivery-{number}", event=EVENT)
        assert ended.state == "success", ended.log
    other = airflow.run(made, aws=aws, run_id="other", event={**EVENT, "id": "another"})
    assert other.state == "success", other.log
    names = [request["TrainingJobName"] for request in aws.of("CreateTrainingJob")]
    assert (len(names), names[0] == names[1], len(set(names))) == (3, True, 2)


def test_an_event_without_the_field_is_refused_before_anything_is_paid(
    airflow: LocalAirflow, aws: ScriptedAws
) -> None:
    ended = airflow.run(triggered(), aws=aws, run_id="lacking", event={"id": "x", "detail": {}})
    assert (ended.error, ended.cause) == ("InvalidInput", "parameter data is missing")
    assert aws.calls == []


def test_a_person_gives_the_values_by_hand(airflow: LocalAirflow, aws: ScriptedAws) -> None:
    given = {"data": "s3://by/hand", "market": "fr"}
    ended = airflow.run(triggered(), aws=aws, run_id="by-hand", parameters=given)
    assert ended.state == "success", ended.log
    assert [each["DATA"] for each in environment(aws)] == ["s3://by/hand"]
    ended = airflow.run(triggered(), aws=aws, run_id="nothing", parameters={"market": "fr"})
    assert (ended.error, ended.cause) == ("InvalidInput", "parameter data is missing")


def assets(made: Any) -> list[Any]:
    return list(made.timetable.asset_condition.objects)


def of_guide(tmp_path: Path, number: int) -> Path:
    path = tmp_path / "incoming.yaml"
    first, queue = shown(TRIGGERS, "yaml")[:2]
    if number:
        start, _, rest = first.partition("trigger:")
        first = start + queue + "\nstages:" + rest.partition("stages:")[2]
    path.write_text(first)
    return path


def test_a_dag_waits_for_an_asset_with_or_without_a_watcher(tmp_path: Path) -> None:
    plain = dag(of_guide(tmp_path, 0), parameters={"topic": "t"}, dag_id="plain")
    [asset] = assets(plain)
    assert (asset.name, asset.watchers) == ("incoming.trigger", [])
    watched = dag(of_guide(tmp_path, 1), parameters={"topic": "t"})
    [asset] = assets(watched)
    [watcher] = asset.watchers
    path, arguments = watcher.trigger.serialize()
    assert path.endswith("SqsSensorTrigger")
    assert (arguments["sqs_queue"], arguments["max_messages"]) == (QUEUE, 1)
    assert arguments["region_name"] == "us-east-1"
    document = DagSerialization.to_dict(watched)
    DagSerialization.validate_schema(document)


def test_a_schedule_stands_beside_a_trigger(tmp_path: Path) -> None:
    path = of_guide(tmp_path, 0)
    path.write_text(
        "schedule: {cron: 0 6 * * *, parameters: {data: d, topic: t}}\n" + path.read_text()
    )
    assert isinstance(dag(path).timetable, AssetOrTimeSchedule)


def test_what_neither_event_nor_default_gives_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"parameters\.topic: a triggered run can't ask"):
        dag(of_guide(tmp_path, 0))
    with pytest.raises(PipelineError, match=r"parameters\.data: a scheduled run can't ask"):
        dag(of_guide(tmp_path, 0), parameters={"topic": "t"}, schedule="@daily")


def test_a_lock_file_holds_the_trigger(tmp_path: Path) -> None:
    path = of_guide(tmp_path, 1)
    content = with_renderings(path, {"sources": {}})[0]
    locks.lock_path(path).write_text(json.dumps(content))
    spec = locking.specification(path)
    assert not isinstance(spec, locking.Stale), spec
    assert spec.trigger == Pipeline.load(path).lower().trigger


def test_another_pipelines_success_is_an_asset() -> None:
    first, second = triggered("first"), triggered("second")
    second = replace(second, trigger=TriggerSpec(pattern={}, pipeline="first"))
    made = dag(replace(second, parameters=()))
    [asset] = assets(made)
    outlets = dag(first).get_task("outputs").outlets
    assert (asset.name, outlets) == ("first.succeeded", [Asset("first.succeeded")])


def test_the_guides_dags_are_read_by_airflow(tmp_path: Path) -> None:
    of_guide(tmp_path, 0)
    (tmp_path / "watch.py").write_text(shown(TRIGGERS, "python")[0])
    (tmp_path / "market.yaml").write_text(shown(EMBEDDING, "yaml")[0])
    (tmp_path / "nightly.py").write_text(shown(EMBEDDING, "python")[1])
    bag = DagBag(tmp_path, safe_mode=False)
    assert bag.import_errors == {}
    assert sorted(bag.dags) == ["nightly", "watch-incoming"]
