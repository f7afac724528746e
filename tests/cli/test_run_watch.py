"""A run is repeated when a file of its pipeline changes, and survives mistakes in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestration.cli.commands.embedded.watching import seen
from tests.cli.conftest import Command
from tests.patience import PATIENCE_S


def _until(said: Path, text: str, times: int) -> str:
    end = time.monotonic() + PATIENCE_S
    while (found := said.read_text()).count(text) < times:
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


@pytest.mark.thorough
def test_a_change_runs_it_again_and_a_mistake_is_told(
    staging: Path, data: Path, tmp_path: Path
) -> None:
    said = tmp_path / "said.txt"
    arguments = ["run", str(staging), "--watch", "--time-scale", "0.005"]
    arguments += ["-p", "bucket=workspace", "-p", "data=s3://dataset/set"]
    arguments += ["--upload", f"{data}=s3://dataset/set"]
    with said.open("wb") as stream:
        running = subprocess.Popen(
            [sys.executable, "-m", "orchestration.cli", *arguments],
            stdout=stream,
            stderr=stream,
            env=dict(os.environ),
        )
    try:
        assert "succeeded" in _until(said, "watching", 1)
        valid = staging.read_text()
        staging.write_text(valid.replace("kind: data_staging", "kind: data_stagin"))
        text = _until(said, "watching", 2)
        assert f"{staging.name} changed: running all stages again" in text
        assert "did you mean 'data_staging'?" in text
        staging.write_text(valid)
        assert _until(said, "watching", 3).count("direct: succeeded") == 2
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_S) == 130


def test_what_a_run_itself_writes_is_no_change(tmp_path: Path) -> None:
    code, page = tmp_path / "train.py", tmp_path / "run.html"
    for file in (code, page, tmp_path / ".orchestration/runs/copying/first/report.json"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    assert set(seen({tmp_path}, tmp_path / "runs/../run.html")) == {code}
    assert set(seen({tmp_path}, None)) == {code, page}


def test_only_runs_on_this_machine_are_watched(orchestrate: Command, staging: Path) -> None:
    for option in ("--aws", "--json"):
        said = orchestrate("run", staging, "--watch", option)
        assert said.status == 2
        assert "--watch" in said.err
