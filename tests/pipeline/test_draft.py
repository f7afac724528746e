"""A misspelt key hides nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError


def misspelt() -> dict[str, Any]:
    return {
        "name": "digits",
        "workspace": "s3://bucket/digits",
        "stages": {
            "train": {
                "kind": "training_job",
                "image": "image",
                "clutser": 1,
                "cluster": {"instance_type": "ml.p4d.24xlarge", "instance_cuont": 2},
                "spot": {"max_wait_s": 60},
                "channels": {"training": {"ref": "stagin.location"}},
            }
        },
    }


def test_a_misspelt_key_does_not_hide_what_is_wrong_with_the_rest_of_its_stage() -> None:
    with pytest.raises(PipelineError) as caught:
        Pipeline.parse(misspelt())
    paths = {problem.path for problem in caught.value.problems}
    assert paths >= {
        "stages.train.clutser",
        "stages.train.cluster.instance_cuont",
        "stages.train.spot.max_wait_s",
        "stages.train.channels.training.uri",
    }


def test_the_data_itself_is_left_as_it_was() -> None:
    data = misspelt()
    with pytest.raises(PipelineError):
        Pipeline.parse(data)
    assert data == misspelt()
