"""What the tests of the command line share."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestration.cli.app import app
from orchestration.local import EmbeddedAws
from tests.cli.talkative import Talkative, talkative

ROOT = Path(__file__).parents[2]
STAGING = """\
name: copying
description: Copies objects and verifies that all came.
parameters:
  bucket: {description: Bucket of the workspace}
  data: {description: S3 URI of the data}
  limit: {type: number, default: 3}
  strict: {type: boolean, default: true}
workspace: {join: ["s3://", {parameter: bucket}, /copying]}
stages:
  staging:
    kind: data_staging
    source: {parameter: data}
"""
CODE = """\
name: training
parameters:
  bucket: {}
workspace: {join: ["s3://", {parameter: bucket}, /training]}
stages:
  train:
    kind: training_job
    image: image
    source: {directory: code, entry_point: train.py}
    cluster: {instance_type: ml.c5.xlarge}
"""


@dataclass(frozen=True)
class Said:
    """What a command left: its exit status and its two streams."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, which has to be one JSON document and nothing else."""
        return json.loads(self.out)


Command = Callable[..., Said]


@pytest.fixture(scope="session")
def orchestrate() -> Command:
    """Run a command in this process; what is no error of a command is raised."""

    def run(*arguments: object) -> Said:
        # One that imports Airflow leaves a handler that writes to the streams of that command.
        handlers = list(logging.root.handlers)
        result = CliRunner().invoke(app, [str(a) for a in arguments], prog_name="orchestrate")
        logging.root.handlers[:] = handlers
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    """A pipeline that needs no code and starts no job."""
    path = tmp_path / "copying.yaml"
    path.write_text(STAGING)
    return path


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A pipeline with a folder of code beside it."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print('trained')\n")
    path = tmp_path / "training.yaml"
    path.write_text(CODE)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of data, one folder in it."""
    folder = tmp_path / "data"
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "a.txt").write_text("a" * 10)
    (folder / "b.txt").write_text("b" * 20)
    return folder


@pytest.fixture(scope="session")
def aws() -> Iterator[EmbeddedAws]:
    """The account that the tests of runs and deployments share."""
    with EmbeddedAws(time_scale=0.005) as embedded:
        yield embedded


@pytest.fixture
def account(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> EmbeddedAws:
    """Make the shared account the one that boto3 finds in the environment."""
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    return aws


@pytest.fixture(scope="session")
def runs(aws: EmbeddedAws, tmp_path_factory: pytest.TempPathFactory) -> Talkative:
    """The pipeline that the tests of logs and of watching look at."""
    return talkative(aws, tmp_path_factory.mktemp("talkative"))
