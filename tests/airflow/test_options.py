"""Settings of Airflow's tasks, from the pipeline's words to Airflow's own objects and runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Asset

from orchestration import Pipeline
from orchestration.airflow import dag, task_group
from orchestration.backends import locks, stepfunctions
from orchestration.backends.airflow.options import KNOWN
from orchestration.backends.airflow.vetting import problems
from orchestration.backends.locking import with_renderings
from orchestration.errors import PipelineError
from orchestration.expressions import Json
from orchestration.graph import Wait, Workflow
from orchestration.local.airflow import LocalAirflow
from orchestration.pipeline import files
from orchestration.stages.options import AirflowOptions
from tests.airflow.conftest import Run, states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.test_assets import seen_by_another_dag
from tests.airflow.workflows import training, workflow
from tests.backends.test_airflow import loop

pytestmark = pytest.mark.xdist_group("airflow")

YAML = """
name: weighted
workspace: s3://bucket/weighted
role: arn:aws:iam::123456789012:role/sagemaker
airflow: {pool: shared, retries: 4, retry_delay_s: 90, on_failure_callback: builtins.print,
          outlets: [everything-is-done]}
stages:
  first:
    kind: data_staging
    source: s3://incoming/set
    airflow: {pool: copies, pool_slots: 2, queue: small, priority_weight: 9, weight_rule: absolute,
              execution_timeout_s: 600, on_success_callback: [builtins.print, builtins.repr],
              outlets: ["s3://shared/copied"]}
  second: {kind: data_staging, source: s3://incoming/set, after: [first]}
"""


def read(text: str, folder: Path) -> Path:
    path = folder / "weighted.yaml"
    path.write_text(text)
    return path


def given(workflow: Workflow, **options: Mapping[str, Json]) -> Workflow:
    return replace(workflow, airflow=options)


@pytest.mark.parametrize("locked", [False, True], ids=["read", "locked"])
def test_each_task_has_the_settings_of_its_stage_and_of_the_pipeline(
    tmp_path: Path, locked: bool
) -> None:
    path = read(YAML, tmp_path)
    if locked:
        content = with_renderings(path, files.lock(path))[0]
        locks.lock_path(path).write_text(json.dumps(content))
    made = dag(path)
    first, second, inputs = (made.get_task(name) for name in ("first", "second", "inputs"))
    assert (first.pool, first.pool_slots, first.queue) == ("copies", 2, "small")
    assert (first.priority_weight, first.weight_rule) == (9, "absolute")
    assert first.execution_timeout == timedelta(minutes=10)
    assert first.on_success_callback == [print, repr]
    assert first.outlets == [Asset("weighted.first.location"), Asset("s3://shared/copied")]
    for task in (first, second, inputs):
        assert (task.retries, task.retry_delay) == (4, timedelta(seconds=90))
        assert task.on_failure_callback == [print]
    assert (second.pool, second.on_success_callback) == ("shared", [])
    assert second.outlets == [Asset("weighted.second.location")]
    last = [Asset("weighted.succeeded"), Asset("everything-is-done")]
    assert made.get_task("outputs").outlets == last


def test_the_files_own_words_go_before_those_of_the_pipeline(tmp_path: Path) -> None:
    made = dag(read(YAML, tmp_path), default_args={"pool": "mine", "retries": 1})
    pools = {name: made.get_task(name).pool for name in ("first", "second")}
    assert pools == {"first": "copies", "second": "mine"}
    assert made.get_task("first").retries == 1


def test_a_task_group_has_them_too(tmp_path: Path) -> None:
    with DAG("around", default_args={"retries": 7}) as around:
        task_group(read(YAML, tmp_path))
    first, second = (around.get_task(f"weighted.{name}") for name in ("first", "second"))
    assert (first.pool, second.pool, second.retries) == ("copies", "shared", 7)


def test_step_functions_ignores_them(tmp_path: Path) -> None:
    plain = YAML.replace("airflow: {pool: shared", "description: x\nignored: {pool: shared")
    with pytest.raises(PipelineError, match="ignored"):
        Pipeline.load(read(plain, tmp_path))
    whole = Pipeline.load(read(YAML, tmp_path)).lower()
    assert stepfunctions.render(whole) == stepfunctions.render(replace(whole, airflow={}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("{retry_delay: 3}", r"first\.airflow\.retry_delay: .*did you mean 'retry_delay_s'"),
        ("{retries: -1}", r"first\.airflow\.retries"),
        ("{retries: 1.5}", r"first\.airflow\.retries"),
        ("{pool_slots: 0}", r"first\.airflow\.pool_slots"),
        ("{weight_rule: random}", r"first\.airflow\.weight_rule"),
        ("{on_retry_callback: shout}", r"first\.airflow\.on_retry_callback"),
        ("{outlets: ['']}", r"first\.airflow\.outlets\[0\]"),
    ],
)
def test_wrong_settings_are_errors_with_their_place(
    tmp_path: Path, wrong: str, message: str
) -> None:
    begin, rest = YAML.split("airflow: {pool: copies", 1)
    text = f"{begin}airflow: {wrong}\n{rest[rest.index('  second:') - 1 :]}"
    with pytest.raises(PipelineError, match=message):
        Pipeline.load(read(text, tmp_path))


@pytest.mark.parametrize("name", ["builtins.shout", "nowhere_to_be_found.shout", "sys.path"])
def test_a_callback_that_can_not_be_had_is_an_error_when_the_dag_is_built(name: str) -> None:
    simple = workflow(Wait(name="a.wait", seconds=0))
    with pytest.raises(PipelineError, match=f"airflow.on_failure_callback: {name}"):
        dag(given(simple, a={"on_failure_callback": [name]}))


def test_outlets_need_a_task_that_runs_once() -> None:
    mapped = workflow(loop("a.each", training("a.job")))
    made = dag(given(mapped, a={"outlets": ["done"]}))
    holding = [task.task_id for task in made.tasks if Asset("done") in task.outlets]
    assert holding == ["a.results"]


def test_a_lock_file_holds_no_other_settings(tmp_path: Path) -> None:
    path = read(YAML, tmp_path)
    whole: Any = with_renderings(path, files.lock(path))[0]["airflow"]["specification"]
    assert list(problems(whole)) == []
    whole["options"] = {"retries": ["1"], "python_callable": "os.abort"}
    assert sorted(map(str, problems(whole))) == [
        "options.retries: unexpected value ['1']",
        "options: unknown setting 'python_callable'",
    ]
    whole["options"] = {}
    whole["tasks"]["first"]["options"] = {"on_failure_callback": "builtins.print"}
    [problem] = problems(whole)
    assert str(problem) == (
        "tasks.first.options.on_failure_callback: unexpected value 'builtins.print'"
    )


def test_every_setting_is_known_to_the_lock_file() -> None:
    assert set(AirflowOptions.model_fields) == KNOWN


def test_a_run_goes_by_them(
    run: Run, airflow: LocalAirflow, aws: ScriptedAws, tmp_path: Path
) -> None:
    made = workflow(training("train.job"), training("other.job"), name="settled")
    options: dict[str, Json] = {
        "retries": 0,
        "execution_timeout_s": 300,
        "outlets": ["settled-model"],
    }
    ended = run(given(made, train=options, other={"on_success_callback": ["builtins.print"]}))
    assert ended.state == "success", ended.log
    assert len(aws.of("CreateTrainingJob")) == 2
    [event] = seen_by_another_dag(airflow, aws, tmp_path, ["settled-model"]).values()
    assert len(event) == 1


def test_a_failed_job_is_not_started_again_whatever_the_retries(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["train-job"] = ["Failed"]
    options: dict[str, Json] = {"retries": 5, "on_failure_callback": ["builtins.print"]}
    ended = run(given(workflow(training("train.job"), name="refailing"), train=options))
    assert states(ended)["train"] == "failed"
    assert len(aws.of("CreateTrainingJob")) == 1
    assert "AirflowFailException" in ended.log
