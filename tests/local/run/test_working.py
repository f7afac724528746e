"""While a run goes on, it tells how far its jobs are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestration import Pipeline
from orchestration.cli.progress import following
from orchestration.direct.progress import Progress
from orchestration.local import EmbeddedAws
from orchestration.local.run import run
from orchestration.local.run.working import Working
from tests.pipeline.building import job, pipeline

if TYPE_CHECKING:
    import pytest

SCRIPT = """\
import os, pathlib, sys, time
print("loss=0.5\\nloss=0.25", flush=True)
(pathlib.Path(os.environ["CHECKPOINTS"]) / "epoch-2").mkdir(parents=True)
(pathlib.Path(os.environ["CHECKPOINTS"]) / "epoch-2" / "weights").write_text("1")
deadline = time.monotonic() + 900
while not pathlib.Path(os.environ["HOLD"]).exists():
    if time.monotonic() > deadline:
        sys.exit("nobody has seen how far this job is")
    time.sleep(0.02)
"""


def held(folder: Path) -> Pipeline:
    """Return a pipeline whose job goes on until ``folder/hold`` exists."""
    (folder / "train.py").write_text(SCRIPT)
    train = job(
        "train",
        local={"command": ["python3", "train.py"], "directory": str(folder)},
        environment={"HOLD": f"{folder}/hold", "CHECKPOINTS": "/opt/ml/checkpoints"},
        metrics={"loss": "loss=([0-9.]+)"},
    )
    role = {"role": {"parameter": "role"}, "parameters": {"role": {}}}
    return pipeline(train, **role)


def test_a_job_tells_its_metrics_and_its_newest_checkpoint(tmp_path: Path) -> None:
    seen: list[Working] = []

    def on_work(working: Working) -> None:
        seen.append(working)
        if working.checkpoint is not None:
            (tmp_path / "hold").touch()

    with EmbeddedAws(time_scale=0.002) as aws:
        report = run(held(tmp_path), aws=aws, on_work=on_work)
        assert aws.progress() == []
    assert report.cause is None
    assert report.state == "succeeded"
    # The next look may see the job's end.
    last = next(each for each in seen if each.checkpoint is not None)
    assert (last.stage, last.job) == ("train", report.stages[0].job_names[0])
    assert (dict(last.metrics), last.checkpoint) == ({"loss": 0.25}, "epoch-2")
    assert (last.phase, last.line) == ("Training", "loss=0.25")


def test_lines_tell_a_checkpoint_at_once_and_nothing_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = Working(stage="train", job="a", phase="Training", metrics={"loss": 0.5})
    saved = Working(stage="train", job="a", phase="Training", metrics={"loss": 0.5}, checkpoint="1")
    other = Working(stage="train", job="b", phase="Training", metrics={"loss": 0.4}, checkpoint="1")
    silent = Working(stage="evaluate", job="c", phase="InProgress")
    with following("p on direct", ["train"]) as shown:
        shown.change(Progress("train.job", "running", 60.0))
        for working in (first, first, saved, saved, silent, other):
            shown.work(working)
    lines = [line.split("s  ", 1)[1] for line in capsys.readouterr().err.splitlines()[1:]]
    assert lines == [
        "train.job",
        "train: loss=0.5",
        "train: loss=0.5, checkpoint 1",
        "train, b: loss=0.4, checkpoint 1",
    ]


def test_a_line_is_told_without_what_is_for_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestration.cli.progress._LOG_EVERY_S", 0.0)
    line = "\x1b[A\x1b[1;32mepoch 1\x1b[0m\r \x1b]8;;http://x\x07[50%]\x1b]8;;\x1b\\\x08"
    with following("p on direct", ["train"]) as shown:
        shown.work(Working(stage="train", job="a", phase="Training", line=line))
    assert capsys.readouterr().err.splitlines()[1].endswith("s  train: epoch 1 [50%]")
