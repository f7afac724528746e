"""``--stages``: modules with kinds of stages, for every command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from orchestration.backends.airflow.locking import specification
from orchestration.backends.airflow.spec import DagSpec
from orchestration.cli.naming import stage_modules
from tests import guides
from tests.cli.conftest import Command


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with guides.own_stages(tmp_path):
        yield tmp_path


def test_the_command_line_takes_modules_of_stages(folder: Path, orchestrate: Command) -> None:
    path = folder / "features.yaml"
    assert orchestrate("validate", str(path)).status == 1
    sys.modules.pop("my_stages", None)
    assert orchestrate("--stages", "my_stages", "validate", str(path)).status == 0
    assert orchestrate("--stages", "your_stages", "validate", str(path)).status == 2


def test_modules_of_stages_are_those_of_one_command(folder: Path, orchestrate: Command) -> None:
    path = folder / "features.yaml"
    for status in (2, 1):
        options = ("--stages", "your_stages") if status == 2 else ()
        assert orchestrate(*options, "validate", str(path)).status == status
        assert stage_modules() == []


def test_the_schema_has_modules_of_stages(
    folder: Path, orchestrate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    schema: Any = orchestrate("--stages", "my_stages", "schema").document
    validator = jsonschema.Draft202012Validator(schema)
    data = yaml.safe_load((folder / "features.yaml").read_text())
    assert list(validator.iter_errors(data)) == []
    data["stages"]["ask"]["sql"] = 7
    data["stages"]["other"] = {"kind": "athena_quary"}
    assert sorted(error.json_path for error in validator.iter_errors(data)) == [
        "$.stages.ask.sql",
        "$.stages.other.kind",
    ]
    assert "The statement." in str(schema)


def test_a_lock_file_covers_the_module_of_a_stage(
    folder: Path, orchestrate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)  # As Airflow does with the folder of DAG files.
    path = folder / "features.yaml"
    assert orchestrate("--stages", "my_stages", "lock", str(path)).status == 0
    sys.modules.pop("my_stages", None)
    assert isinstance(specification(path), DagSpec)
    assert "my_stages" not in sys.modules
    with (folder / "my_stages.py").open("a") as module:
        module.write("# changed\n")
    assert "my_stages" in str(specification(path))


def test_a_pipeline_with_a_stage_of_one_s_own_is_planned(
    folder: Path, orchestrate: Command
) -> None:
    path = folder / "features.yaml"
    data = yaml.safe_load(path.read_text())
    request = {
        "model": {"parameters": 125_000_000},
        "sequence": 1024,
        "batch": {"samples": 256},
        "data": {"samples": 100_000},
        "instances": {"types": ["ml.g5.*"], "counts": [1, 2]},
    }
    data["stages"]["train"] = {
        "kind": "training_job",
        "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
        "source": {"entry_point": "train.py", "uri": "s3://code/sourcedir.tar.gz"},
        "channels": {"training": {"ref": "ask.result"}},
        "strategy": {"kind": "auto", **request},
    }
    path.write_text(yaml.safe_dump(data))
    planned = orchestrate("--stages", "my_stages", "plan", str(path))
    assert planned.status == 0, planned.err
    assert "train" in planned.out
