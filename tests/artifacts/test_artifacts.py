"""The files that people use: DAG files, lock files and rendered definitions."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestration.cli.app import app
from orchestration.pipeline.files import stale
from orchestration.pipeline.pinning.lock_file import lock_path
from tests.oracles import AslValidators

ROOT = Path(__file__).parents[2]
PIPELINES = sorted((ROOT / "dags").glob("*.yaml"), key=lambda path: path.name)


SUFFIXES = {"step-functions": ".asl.json", "companion": ".companion.asl.json"}


def definition(pipeline: Path, artefact: str = "step-functions") -> Path:
    return ROOT / "statemachines" / f"{pipeline.stem}{SUFFIXES[artefact]}"


@pytest.mark.parametrize("artefact", SUFFIXES)
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda path: path.stem)
def test_the_rendered_definition_is_fresh(pipeline: Path, artefact: str) -> None:
    file = definition(pipeline, artefact)
    # The application itself renders, whatever lock files hold.
    checked = CliRunner().invoke(
        app, ["render", artefact, str(pipeline), "-o", str(file), "--check"]
    )
    assert checked.exit_code == 0, f"run `make render`\n{checked.output}"


@pytest.mark.parametrize("artefact", SUFFIXES)
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda path: path.stem)
def test_the_public_validators_pass_the_definition(
    pipeline: Path, artefact: str, asl_validators: AslValidators
) -> None:
    assert asl_validators(json.loads(definition(pipeline, artefact).read_text())) == []


@pytest.mark.parametrize("artefact", SUFFIXES)
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda path: path.stem)
def test_no_account_bucket_or_role_is_burnt_in(pipeline: Path, artefact: str) -> None:
    text = definition(pipeline, artefact).read_text()
    # A digest may have as many digits in a row.
    assert not re.search(r"(?<![0-9a-f])\d{12}(?![0-9a-f])", text)
    assert "arn:aws:iam" not in text
    assert not re.findall(r"s3://(?!bucket/key\))[a-z0-9]", text)


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda path: path.stem)
def test_the_lock_file_is_fresh(pipeline: Path) -> None:
    assert lock_path(pipeline).exists()
    assert stale(pipeline) == [], f"run `orchestrate lock {pipeline.name}`"


def test_dag_files_import_where_only_dags_is_synchronised(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "dags", tmp_path / "dags")
    script = (
        "from airflow.dag_processing.dagbag import DagBag\n"
        "bag = DagBag('dags')\n"
        "assert not bag.import_errors, bag.import_errors\n"
        "print(sorted(bag.dags))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == "['digits', 'llm-fsx']"
