"""A run is repeated when a file of its pipeline changes, and survives mistakes in between."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.cli.commands.embedded.watching import seen
from tests.cli.conftest import Command
from tests.meanwhile import meanwhile
from tests.patience import PATIENCE_S


def _until(said: Path, text: str, times: int) -> str:
    end = time.monotonic() + PATIENCE_S
    while (found := said.read_text()).count(text) < times:
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


@contextlib.contextmanager
def _watched(said: Path, pipeline: Path, *options: str) -> Iterator[None]:
    arguments = ["run", str(pipeline), "--watch", "--time-scale", "0.005", *options]
    with said.open("wb") as stream:
        running = subprocess.Popen(
            [sys.executable, "-m", "orchestration.cli", *arguments],
            stdout=stream,
            stderr=stream,
            env=dict(os.environ),
        )
    try:
        yield
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_S) == 130


@pytest.mark.thorough
def test_a_change_runs_it_again_and_a_mistake_is_told(
    staging: Path, data: Path, tmp_path: Path
) -> None:
    said = tmp_path / "said.txt"
    options = ["-p", "bucket=workspace", "-p", "data=s3://dataset/set"]
    with _watched(said, staging, *options, "--upload", f"{data}=s3://dataset/set"):
        assert "succeeded" in _until(said, "watching", 1)
        valid = staging.read_text()
        staging.write_text(valid.replace("kind: data_staging", "kind: data_stagin"))
        text = _until(said, "watching", 2)
        assert f"{staging.name} changed: running it again" in text
        assert "did you mean 'data_staging'?" in text
        staging.write_text(valid)
        assert _until(said, "watching", 3).count("direct: succeeded") == 2


def test_a_job_that_reads_what_it_has_read_before_does_not_run_again(
    training: Path, tmp_path: Path
) -> None:
    said, code = tmp_path / "said.txt", training.parent / "code/train.py"
    stage = training.read_text()
    training.write_text(
        stage.replace(
            "image: image", "image: image\n    local: {command: [python3, code/train.py]}"
        )
    )
    training.write_text(training.read_text().replace("code/train.py]", f"{code}]"))
    kept = "nothing that they read has changed, so these did not run again: training-train-"
    with _watched(said, training, "-p", "bucket=workspace"):
        assert kept not in _until(said, "watching", 1)
        training.write_text(training.read_text() + "description: the same\n")
        assert _until(said, "watching", 2).count(kept) == 1
        code.write_text("print('otherwise')\n")
        text = _until(said, "watching", 3)
        assert text.count(kept) == 1
        assert text.count("direct: succeeded") == 3


@pytest.mark.toolkit
@pytest.mark.slow
def test_another_evaluation_of_a_template_does_not_train_again(
    orchestrate: Command, tmp_path: Path
) -> None:
    said, folder = tmp_path / "said.txt", tmp_path / "mine"
    assert orchestrate("init", folder).status == 0
    script = folder / "evaluate/evaluate.py"
    with _watched(said, folder / "mine.yaml"):
        _until(said, "watching", 1)
        script.write_text(script.read_text().replace('{"auc"', '{"rows": len(left), "auc"'))
        text = _until(said, "watching", 2)
    assert text.count("direct: succeeded") == 2, text
    [again] = [line for line in text.splitlines() if "did not run again" in line]
    assert "mine-train-" in again
    assert "evaluate" not in again


def test_what_a_run_itself_writes_is_no_change(tmp_path: Path) -> None:
    code, page = tmp_path / "train.py", tmp_path / "run.html"
    for file in (code, page, tmp_path / ".orchestration/runs/copying/first/report.json"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    assert set(seen({tmp_path}, tmp_path / "runs/../run.html")) == {code}
    assert set(seen({tmp_path}, None)) == {code, page}


def test_files_are_looked_at_while_a_folder_of_theirs_is_removed(tmp_path: Path) -> None:
    code = tmp_path / "train.py"
    code.write_text("")

    def remove(number: int) -> None:
        (tmp_path / f"{number}" / "inner").mkdir(parents=True)
        if number >= 20:
            shutil.rmtree(tmp_path / f"{number - 20}")

    meanwhile(remove, lambda: seen({tmp_path}, None), 500)
    assert set(seen({tmp_path}, None)) == {code}


def test_only_runs_on_this_machine_are_watched(orchestrate: Command, staging: Path) -> None:
    for option in ("--aws", "--json"):
        said = orchestrate("run", staging, "--watch", option)
        assert said.status == 2
        assert "--watch" in said.err
