"""A model that fails shows its traceback in the report of the run, whatever serves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.run import run

pytestmark = pytest.mark.slow

PIPELINE = """\
name: {name}
region: us-east-1
workspace: s3://workspace/{name}
stages:
  deploy:
    kind: deployment
    model_data: s3://models/{name}/
    image: 111122223333.dkr.ecr.us-east-1.amazonaws.com/serving:1
    instance_type: ml.m5.large
    smoke_test: {{request: [1]}}
"""
LOADS = """\
def model_fn(model_dir):
    return parsed("no number")


def parsed(text):
    return float(text)
"""
ANSWERS = """\
def model_fn(model_dir):
    return {}


def predict_fn(rows, model):
    return model[rows[0]]
"""


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.002) as embedded:
        yield embedded


def failed(name: str, script: str, aws: EmbeddedAws, folder: Path) -> list[str]:
    """Deploy a model with a script; return the lines of the stage that failed."""
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "inference.py").write_text(script)
    file = folder.with_name(f"{name}.yaml")
    file.write_text(PIPELINE.format(name=name))
    report = run(Pipeline.load(file), aws=aws, uploads={f"s3://models/{name}": folder})
    assert report.state == "failed"
    [stage] = report.stages
    first, *lines = stage.log
    assert first.startswith(f"the last lines of {name}")
    return lines


def test_a_model_that_does_not_load_shows_its_traceback(aws: EmbeddedAws, tmp_path: Path) -> None:
    lines = failed("loads", LOADS, aws, tmp_path / "model")
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: could not convert string to float: 'no number'"
    assert any(line.endswith("in parsed") for line in lines)


def test_a_model_that_does_not_answer_shows_its_traceback(aws: EmbeddedAws, tmp_path: Path) -> None:
    lines = failed("answers", ANSWERS, aws, tmp_path / "model")
    assert "Traceback (most recent call last):" in lines
    assert "KeyError: 1" in lines
    assert any(line.endswith("in predict_fn") for line in lines)
