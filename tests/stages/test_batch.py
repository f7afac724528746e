"""The arithmetic of batches, and what a script's hyperparameters say of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.stages.training.batch import Batch, arithmetic
from tests.stages.training import CODE, facts, job, refused

TORCHRUN = {"kind": "torch_distributed"}


def trained(batch: Any, **hyperparameters: Any) -> dict[str, Any]:
    return job(
        source=CODE,
        strategy=TORCHRUN,
        cluster={"instance_type": "ml.p4d.24xlarge", "instance_count": 2},
        batch=batch,
        hyperparameters=hyperparameters,
    )


def test_ten_iterations_of_five_hundred_samples_make_an_epoch_of_five_thousand() -> None:
    found = arithmetic(Batch(per_replica=50, samples=5000), {}, 10, 1)
    assert found is not None
    assert (found.global_batch, found.iterations) == (500, 10)


@given(*[st.integers(1, 64)] * 4, st.integers(1, 10**6))
def test_an_epoch_takes_every_sample_once(
    replicas: int, parallel: int, batch: int, accumulation: int, samples: int
) -> None:
    described = Batch(per_replica=batch, accumulation=accumulation, samples=samples)
    found = arithmetic(described, {}, replicas * parallel, parallel)
    assert found is not None
    assert found.iterations is not None
    assert found.global_batch == replicas * batch * accumulation
    assert 0 <= found.iterations * found.global_batch - samples < found.global_batch


def test_validate_counts_with_the_hyperparameters_that_are_named() -> None:
    batch = {"per_replica": "bs", "accumulation": 2, "global_batch": "total", "samples": 50_000}
    assert facts(trained(batch, bs=4, total="128")) == [
        "2 x ml.p4d.24xlarge: 16 processes, 16 replicas, global batch 16 x 4 x 2 = 128, "
        "391 iterations per epoch of 50000 samples"
    ]


def test_the_trainer_s_own_names_are_known() -> None:
    named = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 4}
    [line] = facts(trained(None, **named))
    assert line.endswith("global batch 16 x 8 x 4 = 512")


@pytest.mark.parametrize(
    ("batch", "path", "message"),
    [
        (
            {"per_replica": "bs", "global_batch": "total"},
            "hyperparameters.total",
            "is 96, and 16 replicas x 4 x 1 make 64; 6 per replica would make it so",
        ),
        (
            {"per_replica": "bs", "global_batch": 100},
            "batch.global_batch",
            "make 64; it must be a multiple of 16",
        ),
        (
            {"per_replica": "bz"},
            "batch.per_replica",
            "no hyperparameter 'bz'; there is bs, name, total",
        ),
        ({"per_replica": "name"}, "hyperparameters.name", "is 'x'; batch.per_replica counts"),
        ({"per_replica": 0}, "batch.per_replica", "whole number from 1 on"),
    ],
)
def test_a_batch_that_does_not_add_up_is_refused(batch: Any, path: str, message: str) -> None:
    found = refused(trained(batch, bs=4, total=96, name="x"))
    assert message in found[path]


def test_every_fallback_has_to_make_the_same_batch() -> None:
    cluster = {
        "instance_type": "ml.p4d.24xlarge",
        "instance_count": 2,
        "fallbacks": [{"instance_type": "ml.g5.12xlarge"}],
    }
    stage = trained({"per_replica": 4, "global_batch": 64}) | {"cluster": cluster}
    assert "8 replicas x 4 x 1 make 32" in refused(stage)["batch.global_batch"]
