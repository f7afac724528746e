"""A pipeline whose job says much, and waits until it is let go; it runs once as an execution."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.run import run
from orchestration.local.run.report import On

NAME = "talkative"
PIPELINE = """\
name: talkative
parameters: {bucket: {}, hold: {default: "-"}}
workspace: {join: ["s3://", {parameter: bucket}, /talkative]}
stages:
  staging:
    kind: data_staging
    source: s3://talkative-data/set
  train:
    kind: training_job
    image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/training:1
    cluster: {instance_type: ml.m5.xlarge, instance_count: 2}
    channels: {training: {ref: staging.location}}
    environment: {HOLD: {parameter: hold}}
    metrics: {epoch: "epoch=([0-9]+)"}
    max_runtime_s: 3600
    local: {command: [python3, train.py], directory: .}
  publish:
    kind: data_staging
    source: s3://talkative-data/set
    after: [train]
"""
SCRIPT = """\
import os, pathlib, time
for number in range(1, 6):
    print(f"epoch={number} <b>bold</b>", flush=True)
hold = os.environ["HOLD"]
deadline = time.monotonic() + 600
while hold != "-" and not pathlib.Path(hold).exists() and time.monotonic() < deadline:
    time.sleep(0.02)
if hold != "-" and pathlib.Path(hold).read_text() == "fail":
    raise SystemExit(3)
"""


@dataclass(frozen=True)
class Talkative:
    """The pipeline, which has run as the execution ``friday`` and, directly, as ``saturday``."""

    file: Path
    aws: EmbeddedAws

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline.load(self.file)

    @property
    def execution(self) -> str:
        return f"arn:aws:states:{self.aws.region}:123456789012:execution:{NAME}:friday"

    def start(self, name: str, **given: Any) -> str:
        """Start a named run where it is deployed, as ``orchestrate start`` does."""
        from orchestration.deploy.executions import start
        from orchestration.local.run.executions import role

        own = role(self.aws, "EmbeddedSageMaker", "sagemaker.amazonaws.com")
        values = {"bucket": NAME, "role": own, **given}
        return start(self.pipeline, values, session=self.aws, run=name).arn


def talkative(aws: EmbeddedAws, folder: Path) -> Talkative:
    """Write the pipeline, and run it twice."""
    path = folder / "talkative.yaml"
    path.write_text(PIPELINE)
    path.with_name("train.py").write_text(SCRIPT)
    data = path.with_name("one.txt")
    data.write_text("1")
    drivers: tuple[tuple[On, str], ...] = (("step-functions", "friday"), ("direct", "saturday"))
    for on, name in drivers:
        report = run(
            Pipeline.load(path), on=on, parameters={"bucket": NAME}, aws=aws, run_id=name,
            uploads={"s3://talkative-data/set/one.txt": data},
        )  # fmt: skip
        assert report.state == "succeeded", report.cause
    return Talkative(path, aws)
