"""What a version of Airflow lacks is made up for, or told; one that is too old is refused."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import orchestration
from orchestration.airflow import dag, versions
from orchestration.errors import LocalError, UnsupportedError
from orchestration.expressions import Item, join
from orchestration.graph import ForEach, Graph
from orchestration.local.airflow import LocalAirflow
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

ROOT = Path(__file__).parents[2]
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


def test_it_is_refused_before_names_are_imported_that_it_lacks() -> None:
    # The real one is tried by tools/airflow_versions; this is what it comes to.
    old = (
        "import sys, airflow\n"
        "airflow.__version__ = '3.0.6'\n"
        "sys.modules['airflow.providers.common.compat.sdk'] = None\n"
        "from orchestration.airflow import dag, task_group\n"
        "for make in (dag, task_group):\n"
        "    try: make('digits.yaml')\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", old], capture_output=True, text=True, check=True)
    refused = re.findall(
        r"^UnsupportedError Airflow 3\.0\.6 is too old;", done.stdout, re.MULTILINE
    )
    assert len(refused) == 2, done.stdout + done.stderr


def test_all_that_is_lost_is_said_once_while_the_operators_are_loaded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    importlib.reload(versions)
    losses = versions.losses()
    assert len(caplog.records) == bool(losses)
    assert all(loss in caplog.text for loss in losses)


def test_what_is_lost_stands_in_the_documentation_with_the_version_that_mends_it() -> None:
    page = (ROOT / "docs/airflow.md").read_text("utf-8")
    told = {
        Version(first) for first in re.findall(r"^- \*\*Before ([\d.]+)\*\*", page, re.MULTILINE)
    }
    supported = {first for first in told if first > versions.OLDEST}
    fewer = [len(versions.losses(at)) for at in (versions.OLDEST, *sorted(supported))]
    assert fewer == [4, 3, 0]


def test_the_requirements_for_mwaa_leave_its_own_constraints_on() -> None:
    page = (ROOT / "docs/mwaa.md").read_text("utf-8")
    [block] = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    # What MWAA itself looks for, in comments too.
    assert not re.search(r"-c |--constraint ", block)
    [line] = block.splitlines()
    asked = Requirement(line)
    assert (asked.name, asked.extras) == ("sagemaker-orchestration", {"airflow"})
    assert str(asked.specifier) == f"=={orchestration.__version__}"


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
