"""What a version of Airflow lacks is made up for, or told; one that is too old is refused."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from orchestration.airflow import dag, versions
from orchestration.errors import LocalError, UnsupportedError
from orchestration.expressions import Item, join
from orchestration.graph import ForEach, Graph
from orchestration.local.airflow import LocalAirflow
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

LOOP = ForEach(
    name="l.each",
    items=["x", "y"],
    body=Graph((training("l.job", job=join("n-", Item())),)),
    collect={},
    max_concurrency=1,
)


@pytest.mark.parametrize("old", ["2.11.2", "3.0.6", "3.1.8", "3.2.0"])
def test_an_airflow_that_is_too_old_is_refused(old: str) -> None:
    with pytest.raises(UnsupportedError, match=f"Airflow {old} is too old; install 3.2.1 or newer"):
        versions.check(Version(old))


def test_what_is_lost_is_said_once_while_the_operators_are_loaded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    importlib.reload(versions)
    assert tuple(record.getMessage() for record in caplog.records) == versions.losses()
    expected = (Version("3.2.2") > versions.INSTALLED) + (Version("3.3") > versions.INSTALLED)
    assert len(versions.losses()) == expected


@pytest.mark.parametrize("counted", [True, False])
def test_tasks_of_a_loop_defer_only_where_deferred_ones_are_counted(
    monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    monkeypatch.setattr(versions, "COUNTS_DEFERRED", counted)
    made = dag(workflow(training("t.job"), LOOP))
    alone: Any = made.get_task("t")
    mapped: Any = made.get_task("l.each")
    assert (alone.deferrable, mapped.partial_kwargs["deferrable"]) == (True, counted)


def test_nor_do_those_of_a_loop_over_several_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "COUNTS_DEFERRED", False)
    guarded = ForEach(
        name="g.each",
        items=[1, 2],
        body=Graph((file_system("g.fs", Graph((training("g.job", job=join("n-", Item())),))),)),
        collect={},
        max_concurrency=1,
    )
    tasks: Any = dag(workflow(guarded)).task_dict
    assert tasks["g.job"].deferrable is False


def test_a_local_airflow_builds_one_version_of_its_api(
    airflow: LocalAirflow, aws: ScriptedAws, tmp_path: Path
) -> None:
    asking = tmp_path / "asking.py"
    asking.write_text(
        "from airflow.sdk.execution_time.supervisor import in_process_api_server\n"
        "built = in_process_api_server().app.router.versioned_routers\n"
        "raise ImportError(f'versions: {len(built)}')\n"
    )
    with pytest.raises(LocalError, match=r"versions: 1$"):
        airflow.run(asking, aws=aws)
