"""A stage with the values that parameters have by default."""

from __future__ import annotations

from typing import Any

from orchestration import TrainingJob, join, parameter, run_id
from orchestration.expressions import Json
from orchestration.refs import Ref
from orchestration.stages.assuming import assuming
from tests.stages.training import CODE, facts, job, refused


def stage(**given: Any) -> TrainingJob:
    return TrainingJob.model_validate({"name": "train", **job(**given)})


def test_what_is_known_takes_its_value_and_the_rest_stays() -> None:
    reference: Ref[str] = Ref("staging", "location")
    written = stage(
        cluster={"instance_type": parameter("machine"), "instance_count": parameter("count")},
        channels={"a": join("s3://", parameter("bucket"), "/a"), "b": reference},
        hyperparameters={"run": join("run-", run_id()), "other": parameter("other")},
    )
    given: dict[str, Json] = {"machine": "ml.p4d.24xlarge", "count": 2, "bucket": "b"}
    found = assuming(written, given)
    assert (found.cluster.instance_type, found.cluster.instance_count) == ("ml.p4d.24xlarge", 2)
    assert found.channels["a"].uri == "s3://b/a"  # type: ignore[union-attr]  # an S3 channel
    assert found.channels["b"].uri == reference  # type: ignore[union-attr]  # an S3 channel
    assert found.hyperparameters == written.hyperparameters
    assert assuming(written, {}) is written


def test_batches_are_counted_with_the_defaults() -> None:
    given = job(
        source=CODE,
        cluster={"instance_type": {"parameter": "machine"}, "instance_count": 2},
        strategy={"kind": "torch_distributed"},
        hyperparameters={"bs": {"parameter": "bs"}},
        batch={"per_replica": "bs", "global_batch": 128},
    )
    parameters: dict[str, dict[str, Any]] = {
        "machine": {"default": "ml.p4d.24xlarge"},
        "bs": {"type": "number", "default": 8},
    }
    assert facts(given, parameters=parameters) == [
        "2 x ml.p4d.24xlarge: 16 processes, 16 replicas, global batch 16 x 8 x 1 = 128"
    ]
    parameters["bs"]["default"] = 4
    found = refused(given, parameters=parameters)
    assert found["batch.global_batch"].endswith("(so by the parameters' defaults)")
