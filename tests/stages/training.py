"""A training job in a pipeline of its own: what it sends, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.expressions import Tree, evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call

IMAGE = "111122223333.dkr.ecr.us-west-2.amazonaws.com/training:1"
CODE = {"entry_point": "train.py", "uri": "s3://code/sourcedir.tar.gz"}
ROLE = "arn:aws:iam::111122223333:role/training"


def pipeline(given: dict[str, Any], **further: Any) -> Pipeline:
    data = {
        "name": "p",
        "workspace": "s3://bucket",
        "role": ROLE,
        "region": "us-west-2",
        "stages": {"train": {"kind": "training_job", **given}},
    }
    return Pipeline.parse({**data, **further})


def job(**given: Any) -> dict[str, Any]:
    """A plain training job with further fields."""
    return {"image": IMAGE, "cluster": {"instance_type": "ml.m5.xlarge"}, **given}


def call(given: dict[str, Any], **further: Any) -> Call:
    [step] = pipeline(given, **further).lower().graph.steps
    assert isinstance(step, Call)
    return step


def evaluated(tree: Tree) -> Any:
    """A request, as a run sends it."""
    return evaluate(tree, Values({}, {}, run_token="0123456789ab"))


def sent(given: dict[str, Any], **further: Any) -> Any:
    """The request, as a run sends it."""
    return evaluated(call(given, **further).operation.request)


def refused(given: dict[str, Any], **further: Any) -> dict[str, str]:
    """What is wrong with it: messages by paths inside the stage."""
    with pytest.raises(PipelineError) as error:
        pipeline(given, **further)
    return {p.path.removeprefix("stages.train."): p.message for p in error.value.problems}


def warned(given: dict[str, Any], **further: Any) -> dict[str, str]:
    found = pipeline(given, **further).warnings()
    return {p.path.removeprefix("stages.train."): p.message for p in found}


def facts(given: dict[str, Any], **further: Any) -> list[str]:
    return pipeline(given, **further).facts().get("train", [])
