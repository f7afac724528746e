"""The recorded requests of the SageMaker Python SDK, each from a training job that was written.

Only the job's name, our tags and the order of keys in ``mp_parameters`` differ. That the recorded
calls themselves convert to these requests is tested where the SDK is: ``tests/sdk``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline, PipelineError, TrainingJob
from orchestration.checks.requests import violations
from tests.sdk.capture import REGION, ROLE
from tests.sdk.comparing import WORKSPACE, different, request

RECORDED = {
    path.stem: path for path in (Path(__file__).parents[1] / "data" / "sdk_requests").glob("*.json")
}
WRITTEN: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("sdk_requests.yaml").read_text(encoding="utf-8")
)
del WRITTEN[".shared"]


REFUSED = {
    "pt_ps": "ignores parameter_server",
    "pt_smp_v1_mpi": "mpirun aborts where it comes twice",
}
"""Recorded calls that can not work: the job sends the same request, and a pipeline refuses it."""


def _given(name: str) -> dict[str, Any]:
    return {key: value for key, value in WRITTEN[name].items() if value is not None}


def _job(name: str) -> TrainingJob:
    return TrainingJob.model_validate({"name": "train", **_given(name)})


def _pipeline(name: str) -> Pipeline:
    stages = {"train": {"kind": "training_job", **_given(name)}}
    around = {"name": "p", "workspace": WORKSPACE, "role": ROLE, "region": REGION}
    return Pipeline.parse({**around, "stages": stages})


def test_every_recorded_request_is_written() -> None:
    assert WRITTEN.keys() == RECORDED.keys()
    assert len(RECORDED) >= 35


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_the_written_job_sends_the_recorded_request(name: str) -> None:
    recorded = json.loads(RECORDED[name].read_text(encoding="utf-8"))
    assert different(_job(name), recorded["request"], {}) == {}


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_botocore_takes_the_request(name: str) -> None:
    assert violations("sagemaker", "CreateTrainingJob", request(_job(name))) == []


@pytest.mark.parametrize("name", sorted(RECORDED.keys() - REFUSED.keys()))
def test_a_pipeline_takes_the_written_job(name: str) -> None:
    assert list(_pipeline(name).stages) == [_job(name)]


@pytest.mark.parametrize("name", REFUSED)
def test_a_pipeline_says_why_a_recorded_call_can_not_work(name: str) -> None:
    with pytest.raises(PipelineError, match=REFUSED[name]):
        _pipeline(name)
