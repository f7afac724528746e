"""The command as a process of its own: start-up, streams, terminals, Control-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from orchestration import __version__
from tests.cli.conftest import ROOT
from tests.patience import PATIENCE_S

COMMANDS = (
    *("validate", "render", "graph", "lock", "schema", "vendor-runtime"),
    *("run", "demo", "deploy", "upload"),
)
COMMAND = (sys.executable, "-m", "orchestration.cli")


def start(
    *arguments: object, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_version() -> None:
    assert start("--version").stdout == f"orchestrate {__version__}\n"


def test_help_names_every_command() -> None:
    said = start("--help")
    assert (said.returncode, said.stderr) == (0, "")
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", said.stdout, re.MULTILINE)


def test_without_a_command_it_shows_its_help_and_fails() -> None:
    said = start()
    assert said.returncode == 2
    assert "Usage: orchestrate" in said.stdout + said.stderr


def test_starting_loads_nothing_heavy() -> None:
    code = "import sys; import orchestration.cli.app; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    loaded = set(said.stdout.split())
    heavy = {"airflow", "boto3", "botocore", "jsonata", "moto", "rich.console", "torch", "yaml"}
    assert loaded & heavy == set()


def test_a_pipeline_that_is_not_there_is_a_usage_error_without_a_traceback(tmp_path: Path) -> None:
    said = start("validate", tmp_path / "missing.yaml")
    assert (said.returncode, said.stdout) == (2, "")
    assert "can't read" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_module_in_the_current_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from orchestration import DataStaging, Pipeline\n"
        "stage = DataStaging(name='staging', source='s3://bucket/data')\n"
        "pipeline = Pipeline(name='mine', workspace='s3://bucket/mine', stages=[stage])\n"
    )
    said = start("graph", "mine:pipeline", cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert 'title: "mine"' in said.stdout


def test_what_goes_into_a_pipe_is_plain(staging: Path) -> None:
    file = staging.with_name("definition.json")
    start("render", "airflow", staging, "-o", file)
    file.write_text(file.read_text().replace("copying", "renamed"))
    said = start(
        "render", "airflow", staging, "-o", file, "--check", environment={"TERM": "xterm-256color"}
    )
    assert said.returncode == 1
    assert "\x1b" not in said.stdout + said.stderr


@pytest.mark.toolkit
def test_control_c_stops_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("import time\ntime.sleep(600)\n")
    pipeline = tmp_path / "training.yaml"
    pipeline.write_text(
        "name: training\n"
        "workspace: s3://workspace/training\n"
        "stages:\n"
        "  train:\n"
        "    kind: training_job\n"
        "    image: image\n"
        "    source: {directory: code, entry_point: train.py}\n"
        "    cluster: {instance_type: ml.c5.xlarge}\n"
    )
    with subprocess.Popen(
        [*COMMAND, "run", str(pipeline), "--on", "step-functions"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "train.job" in line:
                break
        tree = psutil.Process(process.pid).children(recursive=True)
        assert tree
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    deadline = time.monotonic() + PATIENCE_S
    while any(child.is_running() for child in tree) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [child.pid for child in tree if child.is_running()] == []


@pytest.mark.slow
@pytest.mark.toolkit
def test_demo() -> None:
    said = subprocess.run(
        [*COMMAND, "demo", "--json"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert told["good"]
    assert told["answers"] == {"step-functions": told["label"], "airflow": told["label"]}
    for report in told["runs"]:
        assert [stage["state"] for stage in report["stages"]] == ["succeeded"] * 4
        assert len(report["stages"][2]["job_names"]) == 4
        assert report["outputs"]["evaluate"]["best_metric"] >= 0.9


def test_a_shell_completes_commands() -> None:
    asked = {"_ORCHESTRATE_COMPLETE": "complete_bash", "COMP_WORDS": "orchestrate va"}
    done = subprocess.run(
        [Path(sys.executable).with_name("orchestrate")],
        env={**os.environ, **asked, "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "validate\n")
