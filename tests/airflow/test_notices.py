"""What a DAG tells of its runs, and to whom."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.amazon.aws.notifications.sns import SnsNotifier
from airflow.sdk import DAG

from orchestration.airflow import dag, task_group
from orchestration.airflow.notifying import notice_of
from orchestration.backends import locks
from orchestration.backends.locking import with_renderings
from orchestration.graph import NotifySpec, Wait, Workflow
from orchestration.notices import Notice
from orchestration.pipeline import files
from tests.airflow.workflows import workflow

pytestmark = pytest.mark.xdist_group("airflow")

TOPIC = "arn:aws:sns:eu-west-1:123456789012:alerts"
YAML = f"""
name: copying
region: eu-west-1
parameters: {{bucket: {{}}, data: {{}}}}
workspace: {{join: ["s3://", {{parameter: bucket}}, /copying]}}
stages: {{staging: {{kind: data_staging, source: {{parameter: data}}}}}}
notify: {{on_failure: {{sns_topic: {TOPIC}}}}}
"""


def telling(**ends: tuple[str, ...]) -> Workflow:
    simple = workflow(Wait(name="wait.one", seconds=0))
    return Workflow(name=simple.name, graph=simple.graph, notify=NotifySpec(**ends))


def told(callbacks: Any) -> list[tuple[type, str, str]]:
    return [(type(each), each.target_arn, each.region_name) for each in callbacks]


def test_the_callbacks_are_the_providers_notifier() -> None:
    made: Any = dag(telling(on_failure=(TOPIC,)), aws_conn_id="mine")
    [notifier] = made.on_failure_callback
    assert isinstance(notifier, SnsNotifier)
    assert (notifier.target_arn, notifier.region_name, notifier.aws_conn_id) == (
        TOPIC,
        "eu-west-1",
        "mine",
    )
    assert not made.on_success_callback


@pytest.mark.parametrize("several", [False, True], ids=["one", "list"])
def test_a_users_own_callbacks_stay(several: bool) -> None:
    own: Any = lambda context: None  # noqa: E731 - a callback
    made: Any = dag(
        telling(on_failure=(TOPIC,)),
        on_failure_callback=[own] if several else own,
        on_success_callback=own,
    )
    first, second = made.on_failure_callback
    assert (first, second.target_arn) == (own, TOPIC)
    assert made.on_success_callback is own


def test_a_dag_of_the_lock_file_tells_the_same(tmp_path: Path) -> None:
    path = tmp_path / "copying.yaml"
    path.write_text(YAML)
    by_yaml = dag(path)
    content = with_renderings(path, files.lock(path))[0]
    locks.lock_path(path).write_text(json.dumps(content))
    path.write_text(YAML)
    by_lock = dag(path)
    assert told(by_lock.on_failure_callback) == told(by_yaml.on_failure_callback) != []


@pytest.mark.parametrize(
    ("notify", "problem"),
    [
        pytest.param({"on_end": []}, "unknown field 'on_end'", id="an end of its own"),
        pytest.param({"on_failure": "arn"}, "expected a list of texts, got 'arn'", id="no list"),
    ],
)
def test_a_specification_that_tells_otherwise_is_refused(
    tmp_path: Path, notify: Any, problem: str
) -> None:
    from orchestration.errors import PipelineError

    path = tmp_path / "copying.yaml"
    path.write_text(YAML)
    content = with_renderings(path, files.lock(path))[0]
    content["airflow"]["specification"]["notify"] = notify
    content["airflow"]["digest"] = locks.covering(content, "airflow")
    locks.lock_path(path).write_text(json.dumps(content))
    with pytest.raises(PipelineError, match=problem):
        dag(path)


def test_a_group_leaves_telling_to_the_dag_around(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), DAG("mine") as mine:
        task_group(telling(on_failure=(TOPIC,)))
    assert not mine.on_failure_callback
    assert "give the DAG around it callbacks of its own" in caplog.text


class TaskInstance(SimpleNamespace):
    """What the callbacks ask of Airflow's."""

    def get_task_states(self, **which: Any) -> dict[str, dict[str, str]]:
        if self.unreachable:
            raise ConnectionError
        return {run_id: self.states for run_id in which["run_ids"]}

    def xcom_pull(self, **which: Any) -> Any:
        return self.left.get(which["task_ids"])


def heard(
    states: dict[str, str],
    left: dict[str, Any],
    reason: str = "task_failure",
    *,
    unreachable: bool = False,
) -> Notice:
    last = TaskInstance(states=states, left=left, task_id="train", unreachable=unreachable)
    tasks = dict.fromkeys(("inputs", "train", "evaluate", "leftovers", "outputs"))
    context: Any = {
        "dag": SimpleNamespace(dag_id="p", task_dict=tasks),
        "run_id": "manual__2026-11-22T06:00:00+00:00",
        "reason": reason,
        "ti": last,
    }
    return notice_of(context, failed=True)


FAILED = {"error": "JobFailed", "cause": "train ended as Failed"}


def test_the_first_failure_in_the_order_of_the_dag_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/")
    states = {"inputs": "success", "evaluate_0": "failed", "train": "failed"}
    notice = heard(states, {"train": FAILED, "evaluate": [None, {"error": "Late"}]})
    assert notice == Notice(
        pipeline="p",
        run="manual__2026-11-22T06:00:00+00:00",
        state="FAILED",
        link="https://airflow.example.com/dags/p/runs/manual__2026-11-22T06%3A00%3A00%2B00%3A00",
        stage="train",
        **FAILED,
    )


def test_an_element_of_a_loop_tells_of_its_failure() -> None:
    notice = heard({"evaluate_1": "failed"}, {"evaluate": [{"error": "Late", "cause": "c"}]})
    assert (notice.stage, notice.error) == ("evaluate", "Late")


def test_a_run_that_a_person_has_marked_was_aborted() -> None:
    left = {"leftovers": {"error": "Aborted", "cause": "the run was marked as failed"}}
    notice = heard({"train": "failed", "leftovers": "failed", "outputs": "skipped"}, left)
    assert (notice.state, notice.stage, notice.error) == ("ABORTED", None, "Aborted")


def test_a_run_over_its_time_has_timed_out() -> None:
    assert heard({"train": "failed"}, {}, "timed_out").state == "TIMED_OUT"


def test_what_airflow_can_not_say_any_more_is_left_out() -> None:
    notice = heard({}, {}, unreachable=True)
    assert (notice.state, notice.stage, notice.error) == ("FAILED", "train", None)
    context: Any = {"dag": SimpleNamespace(dag_id="p"), "run_id": "r", "reason": "task_failure"}
    assert notice_of(context, failed=True).message.endswith('"detail": {}\n}')
