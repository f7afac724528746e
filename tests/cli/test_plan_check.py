"""``plan --check``: a run's own figures beside those that its plan had predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.run import On, run
from tests.cli.conftest import Command

PIPELINE = """\
name: NAME
parameters: {bucket: {}}
region: us-east-1
workspace: {join: ["s3://", {parameter: bucket}, /w]}
stages:
  train:
    kind: training_job
    image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/training:1
    source: {directory: code, entry_point: train.py, runtime: true}
    strategy:
      kind: auto
      model: {layers: 4, hidden: 256, heads: 4, vocabulary: 1000}
      sequence: 128
      batch: {samples: 8}
      data: {samples: 80}
      instances: {types: [ml.g5.xlarge], counts: [1]}
"""
SCRIPT = """\
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from orchestration_runtime import measured_steps
for step in measured_steps(range(12), samples=8):
    sum(range(100_000))
"""


def written(folder: Path, name: str) -> Path:
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(SCRIPT)
    path = folder / f"{name}.yaml"
    path.write_text(PIPELINE.replace("NAME", name))
    return path


def test_no_plan_and_no_run_are_told(
    account: EmbeddedAws, orchestrate: Command, tmp_path: Path
) -> None:
    path = written(tmp_path, "unrun")
    refused = orchestrate("plan", path, "--check")
    assert refused.status == 1
    assert "pins no plan; `orchestrate plan" in refused.err
    assert orchestrate("plan", path, "--update").status == 0
    early = orchestrate("plan", path, "--check")
    assert early.status == 1
    assert "train: no training job in us-east-1 has this stage's tags" in early.err


@pytest.mark.parametrize("command", [("plan", "--check"), ("probe", "--from-runs")])
def test_without_credentials_no_jobs_can_be_read(
    command: tuple[str, str],
    orchestrate: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = written(tmp_path, "unsigned")
    assert orchestrate("plan", path, "--update").status == 0
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    refused = orchestrate(command[0], path, command[1])
    assert refused.status == 1
    assert (
        "the training jobs of us-east-1 can't be read: Unable to locate credentials" in refused.err
    )
    assert "sign in" in refused.err


@pytest.mark.parametrize("on", ["direct", "step-functions"])
def test_a_run_is_held_against_its_plan(
    account: EmbeddedAws, orchestrate: Command, tmp_path: Path, on: On
) -> None:
    path = written(tmp_path, f"checked-{on}")
    assert orchestrate("plan", path, "--update").status == 0
    pin = json.loads(path.with_suffix(".lock.json").read_text())["plans"]["train"]
    report = run(
        Pipeline.load(path), on=on, parameters={"bucket": f"bucket-{on}"}, aws=account,
        run_id=f"first-{on}",
    )  # fmt: skip
    assert report.state == "succeeded"
    [job] = report.stages[0].job_names
    described = account.client("sagemaker").describe_training_job(TrainingJobName=job)
    figures = checked(orchestrate, path, job)["figures"]
    metrics = {m["MetricName"]: m["Value"] for m in described["FinalMetricDataList"]}
    assert figures["step"]["measured"] == metrics["orchestration:step_time_s"]
    assert figures["memory"]["measured"] == metrics["orchestration:peak_memory_gib"]
    for name, key in {"step": "step_s", "memory": "memory_gib", "time": "time_s"}.items():
        figure = figures[name]
        assert [figure[end] for end in ("low", "predicted", "high")] == pin["predicted"][key]
        assert figure["off"] == pytest.approx(figure["measured"] / figure["predicted"] - 1)
    rate = pin["predicted"]["price"]["usd_per_hour"]
    bill = described["BillableTimeInSeconds"] / 3600 * rate
    assert figures["cost"]["measured"] == pytest.approx(bill)
    assert orchestrate("plan", path, "--check", "--run-id", "other").status == 1


def checked(orchestrate: Command, path: Path, job: str) -> Any:
    """Return the checked stage, after a look at what people read."""
    lines = orchestrate("plan", path, "--check").out.splitlines()
    assert lines[0].startswith(f"train: {job}, completed, run ")
    assert [line.split()[0] for line in lines[1:]] == ["step", "memory", "time", "cost"]
    assert " billed of 1 at $" in lines[4]
    stage = orchestrate("plan", path, "--check", "--json").document["train"]
    assert stage["job"] == job
    return stage
