"""Pipelines from V2's estimators: what is wrong is told in the estimator's words, at once.

Needs an environment with V2 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestration import PipelineError
from orchestration.sagemaker_sdk import pipeline_from_estimator
from tests.sdk.capture import S3, generation
from tests.sdk.natural import Sdk

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)


@pytest.fixture
def sdk(tmp_path: Path) -> Sdk:
    return Sdk(tmp_path)


def _told(estimator: Any, inputs: Any = S3) -> dict[str, str]:
    with pytest.raises(PipelineError) as error:
        pipeline_from_estimator(estimator, inputs, name="mine", workspace="s3://b/mine")
    return {problem.path: problem.message for problem in error.value.problems}


def _mounted(sdk: Sdk) -> Any:
    return sdk.names["FileSystemInput"]("fs-0123456789abcdef0", "FSxLustre", "/fsx")


WRONG: dict[str, tuple[dict[str, Any], Callable[[Sdk], Any], str, str]] = {
    "spot": (
        {"use_spot_instances": True, "max_run": 7200, "max_wait": 3600},
        lambda sdk: S3,
        "max_wait",
        "3600 is less than max_run (7200)",
    ),
    "warm pool": (
        {"use_spot_instances": True, "max_wait": 172800, "keep_alive_period_in_seconds": 60},
        lambda sdk: S3,
        "keep_alive_period_in_seconds",
        "a warm pool",
    ),
    "place": ({"output_path": "b/out"}, lambda sdk: S3, "output_path", "expected an S3 URI"),
    "machine": ({"instance_type": "ml.p4d.2xlarge"}, lambda sdk: S3, "instance_type", "ml.p4d"),
    "network": ({}, _mounted, "subnets", "is required to mount"),
    "channel": ({}, lambda sdk: {"my data": S3}, "inputs['my data']", "a channel's name"),
    "metric": (
        {"metric_definitions": [{"Name": "loss", "Regex": "loss=.*"}]},
        lambda sdk: S3,
        "metric_definitions['loss']",
        "has no group",
    ),
    "tag": ({"tags": [{"Key": "aws:a", "Value": "b"}]}, lambda sdk: S3, "tags.aws:a", "AWS's own"),
    "distribution": (
        {"distribution": {"parameter_server": {"enabled": True}}},
        lambda sdk: S3,
        "distribution",
        "ignores parameter_server",
    ),
    "request": ({"environment": {"A-B": "1"}}, lambda sdk: S3, "", "key 'A-B'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_pipeline_says_of_its_job_is_in_the_estimators_words(sdk: Sdk, name: str) -> None:
    given, inputs, attribute, message = WRONG[name]
    [(path, text)] = _told(sdk.made(**given), inputs(sdk)).items()
    assert path == f"estimator.{attribute}".rstrip(".")
    assert message in text


def test_what_the_bridge_and_what_the_pipeline_refuses_is_told_together(sdk: Sdk) -> None:
    estimator = sdk.made(code_location="s3://b/c", tags=[{"Key": "aws:a", "Value": "b"}])
    assert _told(estimator).keys() == {"estimator.code_location", "estimator.tags.aws:a"}


def test_what_the_bridge_left_out_is_told_once(sdk: Sdk) -> None:
    estimator = sdk.made()
    estimator.source_dir = "nowhere"
    assert list(_told(estimator)) == ["estimator.source_dir"]
    estimator = sdk.made()
    estimator.instance_type = None
    assert list(_told(estimator)) == ["estimator.instance_type"]
