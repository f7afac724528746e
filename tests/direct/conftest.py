"""What the tests of direct runs share: an embedded account, pipelines, processes that run them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestration.local import EmbeddedAws
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
SCALE = 0.005
ROLE = "arn:aws:iam::123456789012:role/SageMakerExecution"
COPYING = """\
name: copying
parameters:
  bucket: {}
  data: {}
workspace: {join: ["s3://", {parameter: bucket}, /copying]}
stages:
  staging:
    kind: data_staging
    source: {parameter: data}
"""
TRAINING = """\
name: sleeping
parameters:
  bucket: {}
  data: {}
  seconds: {default: "600"}
workspace: {join: ["s3://", {parameter: bucket}, /sleeping]}
stages:
  staging:
    kind: data_staging
    source: {parameter: data}
    destination:
      kind: fsx_lustre
      subnet: subnet-0123abcd
      security_groups: [sg-0123abcd]
  train:
    kind: training_job
    image: image
    entrypoint: [sleep, {parameter: seconds}]
    channels:
      training: {kind: fsx_lustre, file_system: {ref: staging.file_system}}
    vpc: {subnets: [subnet-0123abcd], security_groups: [sg-0123abcd]}
    cluster: {instance_type: ml.c5.xlarge}
"""


SIDE_BY_SIDE = """\
name: pair
parameters: {bucket: {}, data: {}}
workspace: {join: ["s3://", {parameter: bucket}, /pair]}
stages:
  one: &stage
    kind: training_job
    image: image
    entrypoint: [sleep, "600"]
    cluster: {instance_type: ml.c5.xlarge}
  two: *stage
"""


@dataclass(frozen=True)
class Account:
    """An embedded account with data in it, and what a test asks of it."""

    aws: EmbeddedAws

    def job(self) -> str | None:
        """The status of the one training job; ``None`` before there is any."""
        jobs = list(self.aws.state()["sagemaker"]["TrainingJobs"].values())
        assert len(jobs) <= 1
        return jobs[0]["TrainingJobStatus"] if jobs else None

    def file_systems(self) -> list[str]:
        return list(self.aws.state()["fsx"]["FileSystems"])

    def sent(self, operation: str) -> int:
        """How often an operation was asked for, and not refused."""
        calls = self.aws.calls()
        return sum(call.operation == operation and call.error_code is None for call in calls)

    def journal(self) -> list[str]:
        return [key for key in self.aws.state()["s3"]["workspace"] if "/.journal/" in key]


@pytest.fixture
def account() -> Iterator[Account]:
    with EmbeddedAws(time_scale=SCALE) as aws:
        s3 = aws.client("s3")
        for bucket in ("workspace", "incoming"):
            s3.create_bucket(Bucket=bucket)
        for name in ("one", "two"):
            s3.put_object(Bucket="incoming", Key=f"set/{name}.csv", Body=name.encode())
        aws.provide(roles=[ROLE], subnets=["subnet-0123abcd"], security_groups=["sg-0123abcd"])
        yield Account(aws)


@pytest.fixture
def copying(tmp_path: Path) -> Path:
    """A pipeline that starts no job."""
    path = tmp_path / "copying.yaml"
    path.write_text(COPYING)
    return path


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A pipeline whose job sleeps, over a file system of the run's own."""
    path = tmp_path / "sleeping.yaml"
    path.write_text(TRAINING)
    return path


@pytest.fixture
def side_by_side(tmp_path: Path) -> Path:
    """A pipeline of two jobs that do not wait for each other."""
    path = tmp_path / "pair.yaml"
    path.write_text(SIDE_BY_SIDE)
    return path


Launch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def launch(account: Account) -> Iterator[Launch]:
    """Start ``orchestrate run --aws`` in a process of its own, which knows this account only."""
    started = []
    environment = {
        **account.aws.environment(),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }

    def start(pipeline: Path, *parameters: str, time_scale: float = SCALE) -> subprocess.Popen[str]:
        given = ("bucket=workspace", "data=s3://incoming/set", f"role={ROLE}", *parameters)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "orchestration.cli", "run", str(pipeline), "--aws"),
                *("--run-id", "nightly", "--json"),
                *(word for value in given for word in ("-p", value)),
            ],
            env=environment | {"ORCHESTRATION_TIME_SCALE": str(time_scale)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)
