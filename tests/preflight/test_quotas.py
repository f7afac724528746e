"""Quotas of the account against what every cluster, fallback and endpoint asks for."""

from __future__ import annotations

import pytest

from orchestration.local import EmbeddedAws
from tests.preflight.conftest import TRAINING, Examine, pipeline

PLAIN = "instance_type: ml.c5.xlarge, instance_count: 2"


def cluster(name: str, more: str = "") -> tuple[str, str]:
    return (PLAIN, f"instance_type: {name}, instance_count: 2{more}")


def test_enough_of_everything_is_no_finding(found: Examine) -> None:
    assert found(pipeline(), "quotas") == []


@pytest.mark.parametrize(
    ("name", "usage", "changes"),
    [
        ("ml.g5.xlarge", "training job usage", ()),
        (
            "ml.g5.2xlarge",
            "spot training job usage",
            (("max_runtime_s: 3600", "max_runtime_s: 3600\n    spot: {max_wait_s: 7200}"),),
        ),
    ],
)
def test_a_quota_below_the_cluster_fails_the_run(
    aws: EmbeddedAws, found: Examine, name: str, usage: str, changes: tuple[tuple[str, str], ...]
) -> None:
    aws.provide(quotas={f"{name} for {usage}": 1})
    [finding] = found(pipeline(TRAINING, cluster(name), *changes), "quotas")
    assert finding.severity == "fails"
    assert finding.where == "stages.train.cluster.instance_type"
    assert f"2 x {name} asked for, and the quota is 1 (quota '{name} for {usage}')" in finding.what
    assert finding.when == "train.job calls sagemaker:CreateTrainingJob"
    assert "to at least 2" in finding.mend


def test_a_fallback_within_its_quota_still_runs(aws: EmbeddedAws, found: Examine) -> None:
    aws.provide(quotas={"ml.p5.48xlarge for training job usage": 0})
    one = cluster("ml.p5.48xlarge", ", fallbacks: [{instance_type: ml.p4d.24xlarge}]")
    [finding] = found(pipeline(TRAINING, one), "quotas")
    assert finding.severity == "may fail"
    assert finding.what.endswith("2 x ml.p4d.24xlarge would still be tried")


def test_each_cluster_without_a_quota_is_found_where_it_stands(
    aws: EmbeddedAws, found: Examine
) -> None:
    types = ("ml.p4de.24xlarge", "ml.p5e.48xlarge")
    aws.provide(quotas={f"{name} for training job usage": 1 for name in types})
    both = cluster(types[0], f", fallbacks: [{{instance_type: {types[1]}}}]")
    first, second = found(pipeline(TRAINING, both), "quotas")
    assert {first.severity, second.severity} == {"fails"}
    assert [first.where, second.where] == [
        "stages.train.cluster.fallbacks.0.instance_type",
        "stages.train.cluster.instance_type",
    ]


EVALUATING = """\
name: NAME
workspace: s3://workspace/work
stages:
  evaluate:
    kind: checkpoint_evaluation
    checkpoints: s3://incoming/checkpoints
    image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1
    data: s3://incoming/set
    source: {uri: s3://workspace/code, entry_point: evaluate.py}
    instance_type: ml.m5.large
    max_concurrency: 4
    metric: accuracy
    direction: max
"""


def test_jobs_side_by_side_need_a_quota_together(aws: EmbeddedAws, found: Examine) -> None:
    aws.provide(quotas={"ml.m5.large for processing job usage": 3})
    [finding] = found(pipeline(EVALUATING), "quotas")
    assert finding.severity == "may fail"
    assert "up to 4 of these run at once, and the quota is 3" in finding.what


def test_an_unknown_type_is_said_to_be_unknown(found: Examine) -> None:
    asked = ("workspace:", "parameters: {type: {default: ml.m5.large}}\nworkspace:")
    checked = pipeline(EVALUATING, asked, ("type: ml.m5.large", "type: {parameter: type}"))
    [finding] = found(checked, "quotas", type="ml.zz9.large")
    assert finding.where == "stages.evaluate.instance_type"
    assert finding.severity == "not checked"
    assert "the account lists no such quota" in finding.what


SERVING = """\
name: NAME
workspace: s3://workspace/work
stages:
  deploy:
    kind: deployment
    model_data: s3://incoming/set
    image: 123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1
    instance_type: ml.g5.xlarge
    instance_count: 3
    fallbacks: [ml.g6.xlarge]
"""


def test_an_endpoint_s_fallback_within_its_quota_still_serves(
    aws: EmbeddedAws, found: Examine
) -> None:
    aws.provide(quotas={"ml.g5.xlarge for endpoint usage": 2})
    [finding] = found(pipeline(SERVING), "quotas")
    assert finding.severity == "may fail"
    assert finding.what.startswith("3 x ml.g5.xlarge asked for, and the quota is 2")
    assert finding.what.endswith("3 x ml.g6.xlarge would still be tried")


COMPONENT = """\
endpoint_name: shared
    update: {}
    inference_component:
      name: cats
      copies: 1
      memory_mib: 1024
      managed_instances: {min_instances: 1, max_instances: 8}"""


@pytest.mark.parametrize(
    "scaling",
    [
        "autoscaling: {min_instances: 1, max_instances: 8, invocations_per_minute: 300}",
        COMPONENT,
    ],
)
def test_what_scaling_may_make_needs_a_quota_too(
    aws: EmbeddedAws, found: Examine, scaling: str
) -> None:
    aws.provide(quotas={"ml.g5.4xlarge for endpoint usage": 4})
    serving = pipeline(
        SERVING,
        ("instance_type: ml.g5.xlarge", f"instance_type: ml.g5.4xlarge\n    {scaling}"),
        ("    fallbacks: [ml.g6.xlarge]\n", ""),
    )
    [finding] = found(serving, "quotas")
    assert finding.severity == "may fail"
    assert "scaling may make 8 of them, and the quota is 4" in finding.what
    assert "to at least 8" in finding.mend


SCORING = """\
name: NAME
workspace: s3://workspace/work
stages:
  score:
    kind: batch_transform
    model_name: shop
    data: s3://incoming/set
    content_type: text/csv
    instance_type: ml.g5.8xlarge
"""


def test_a_quota_below_a_transform_job_fails_the_run(aws: EmbeddedAws, found: Examine) -> None:
    aws.provide(quotas={"ml.g5.8xlarge for transform job usage": 0})
    [finding] = found(pipeline(SCORING), "quotas")
    assert finding.severity == "fails"
    assert "(quota 'ml.g5.8xlarge for transform job usage')" in finding.what
