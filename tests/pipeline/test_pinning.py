"""What a file of Python says of stages is what a YAML file with them says, code and all."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.pipeline import files
from orchestration.pipeline.nesting.inlining import whole
from orchestration.pipeline.yaml import dumped
from tests.stages.test_evaluation import IMAGE, OF_MODEL
from tests.stages.test_scored_predictions import TRANSFORM

ROOT = Path(__file__).parents[2]
PIPELINES = sorted([*ROOT.glob("dags/*.yaml"), *ROOT.glob("examples/*/*.yaml")])
IN_PYTHON = """
from orchestration import Pipeline
from orchestration.pipeline.afterwards.sections import SECTIONS
from orchestration.stages.kinds import Kinds

for section in SECTIONS:
    stages = {name: {**stage, "name": name} for name, stage in data.get(section, {}).items()}
    data[section] = [Kinds().get(each["kind"]).model_validate(each) for each in stages.values()]
pipeline = Pipeline(**data)
"""
"""Builds a pipeline of Python from the data of a YAML file."""
CODE = {"directory": "code", "entry_point": "inference.py"}
NESTED = {
    "name": "nested",
    "workspace": "s3://bucket/nested",
    "role": "arn:aws:iam::111122223333:role/Execution",
    "stages": {
        "judge": {
            "kind": "checkpoint_evaluation",
            "metric": "accuracy",
            "direction": "max",
            **OF_MODEL,
            "model": "s3://bucket/model.tar.gz",
            "transform": {**TRANSFORM, "model_archive": True, "source": CODE},
        },
        "serve": {
            "kind": "deployment",
            "image": IMAGE,
            "model_data": "s3://bucket/model.tar.gz",
            "model_archive": True,
            "instance_type": "ml.m5.xlarge",
            "preprocessing": [{"image": IMAGE}, {"image": IMAGE, "source": CODE}],
        },
    },
}


def in_python(file: Path, data: dict[str, Any]) -> Pipeline:
    """Build a pipeline as code in a file does."""
    names: dict[str, Any] = {"data": deepcopy(data)}
    exec(compile(IN_PYTHON, str(file), "exec"), names)
    made = names["pipeline"]
    assert isinstance(made, Pipeline)
    return made


def keys(made: Pipeline) -> list[str]:
    built = made.built()
    assert built is not None
    return sorted(code.key for code in built.codes())


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """A pipeline with code in a transform, and in one of several containers."""
    path = tmp_path / "nested.yaml"
    path.write_text(dumped(NESTED))
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "inference.py").touch()
    return path


def test_code_inside_of_stages_is_pinned_under_the_names_of_yaml(nested: Path) -> None:
    pins, read, data = files.lock(nested), Pipeline.load(nested), whole(nested).data
    assert list(pins["sources"]) == ["judge.transform.source", "serve.preprocessing[1].source"]
    file = nested.rename(nested.with_name("nested.py"))
    made = in_python(file, data)
    assert made == read
    built = made.built()
    assert built is not None
    assert built.content() == {"python": "nested.py", **pins}
    built.lock.write_text(json.dumps(pins))
    shutil.rmtree(nested.parent / "code")
    assert in_python(file, data) == made


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_an_example_in_python_is_what_it_is_in_yaml(path: Path) -> None:
    locked = files.lock(path)
    made = in_python(path, whole(path).data)
    assert made == Pipeline.load(path, lock=locked)
    assert keys(made) == list(locked["sources"])
