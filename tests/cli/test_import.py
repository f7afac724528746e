"""``import``: the pipeline on one stream, what differs on the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Command


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    recorded = ROOT / "tests" / "data" / "sdk_requests" / "pt_mpi.json"
    path = tmp_path / "request.json"
    path.write_text(json.dumps(json.loads(recorded.read_text())["request"]))
    return path


def test_the_pipeline_is_printed_and_valid(orchestrate: Command, request_file: Path) -> None:
    said = orchestrate("import", str(request_file), "--name", "mine")
    assert said.status == 0
    assert said.out.startswith("name: mine\n")
    assert "TrainingJobName: each run's job has a name of its own" in said.err
    written = request_file.with_name("pipeline.yaml")
    assert orchestrate("import", str(request_file), "-o", str(written)).out == f"wrote {written}\n"
    assert orchestrate("validate", str(written)).status == 0


def test_json_has_the_pipeline_and_the_notes(orchestrate: Command, request_file: Path) -> None:
    document = orchestrate("import", str(request_file), "--json").document
    assert document["pipeline"]["stages"]["train"]["kind"] == "training_job"
    assert [note["path"] for note in document["notes"]] == ["TrainingJobName"]


def test_what_is_no_request_is_an_error(orchestrate: Command, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[]")
    for name in ("list.json", "nowhere.json"):
        said = orchestrate("import", str(tmp_path / name))
        assert (said.status, said.out) == (1, "")
        assert name in said.err


def test_a_dag_file_of_ours_is_the_yaml_beside_it(orchestrate: Command) -> None:
    of_dag = orchestrate("import", str(ROOT / "dags/digits.py"), "--json").document
    of_machine = orchestrate("import", str(ROOT / "statemachines/digits.asl.json"), "--json")
    assert of_dag == of_machine.document
    assert (of_dag["pipeline"]["name"], of_dag["notes"]) == ("digits", [])


def test_what_a_dag_file_of_ours_gives_beside_the_yaml_is_told(
    orchestrate: Command, tmp_path: Path
) -> None:
    yaml = ROOT / "dags/digits.yaml"
    source = f'from orchestration.airflow import dag\ndag("{yaml}", max_active_runs=3)\n'
    (tmp_path / "digits.py").write_text(source)
    said = orchestrate("import", str(tmp_path / "digits.py"), "--json")
    assert said.document["notes"] == [
        {"path": "dag.max_active_runs", "message": f"3 is left out: it is not in {yaml}"}
    ]
    assert "digits.py: dag.max_active_runs: 3 is left out" in said.err
