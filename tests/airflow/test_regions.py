"""Tasks reach AWS in the region of their pipeline, and refuse a connection to another one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from orchestration.airflow import dag, task_group
from orchestration.backends.airflow import render
from orchestration.backends.airflow.spec import from_document, to_document
from orchestration.errors import PipelineError
from orchestration.graph import Workflow
from tests.airflow.conftest import TaskInstance
from tests.airflow.workflows import training, workflow


@pytest.fixture
def western() -> Workflow:
    return replace(workflow(training("a.job")), region="us-west-2")


def connection(monkeypatch: pytest.MonkeyPatch, region: str | None) -> None:
    extra = {} if region is None else {"region_name": region}
    value = json.dumps({"conn_type": "aws", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", value)


def region_of(made: DAG, task: str = "a") -> str | None:
    operator: Any = made.get_task(task)
    region: str | None = operator.region_name
    return region


def begin(western: Workflow) -> dict[str, Any]:
    """Perform the first task of a run; return its XComs."""
    made = dag(western)
    first: Any = made.get_task("inputs")
    ti = TaskInstance()
    context: Any = {"ti": ti, "dag": made, "params": {}, "dag_run": TaskInstance(conf={})}
    try:
        first.execute(context)
    except AirflowFailException:
        assert ti.xcoms
    return dict(ti.xcoms)


def test_the_pipelines_region_is_that_of_its_tasks(western: Workflow) -> None:
    assert region_of(dag(western)) == "us-west-2"
    assert region_of(dag(western, region_name="us-west-2")) == "us-west-2"
    with DAG("theirs") as theirs:
        task_group(western, group_id="ours")
    assert region_of(theirs, "ours.a") == "us-west-2"


def test_without_one_it_is_that_of_the_connection() -> None:
    assert region_of(dag(workflow(training("a.job")))) is None


def test_another_region_in_the_dag_file_is_refused(western: Workflow) -> None:
    with pytest.raises(PipelineError, match="runs in us-west-2, and region_name is for eu-west-1"):
        dag(western, region_name="eu-west-1")


def test_a_region_survives_the_lock_file(western: Workflow) -> None:
    assert from_document(to_document(render(western))) == render(western)


def test_a_connection_to_another_region_fails_the_first_task(
    western: Workflow, reachable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, "us-east-1")
    error = begin(western)["error"]
    assert error["error"] == "RegionMismatch"
    assert error["cause"] == (
        f"pipeline {western.name} runs in us-west-2, and the connection 'aws_default' is for "
        "us-east-1; use one for us-west-2, or change the region of the pipeline"
    )


@pytest.mark.parametrize("region", [None, "us-west-2"])
def test_a_connection_to_it_or_to_none_is_used(
    region: str | None, western: Workflow, reachable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, region)
    assert begin(western) == {}
