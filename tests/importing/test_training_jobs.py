"""Requests become pipelines that send the same; what differs is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.graph import Call, all_steps
from orchestration.importing import from_request
from orchestration.importing.imported import differences

RECORDED = sorted((Path(__file__).parents[1] / "data" / "sdk_requests").glob("*.json"))
REQUESTS = {
    path.stem: data["request"]
    for path in RECORDED
    if "request" in (data := json.loads(path.read_text(encoding="utf-8")))
}
REQUEST: dict[str, Any] = REQUESTS["fsx_lustre_vpc"]


def sent(description: dict[str, Any]) -> dict[str, Any]:
    calls = [s for s in all_steps(Pipeline.parse(description).lower().graph) if isinstance(s, Call)]
    (call,) = calls
    return dict(call.operation.request)


def told(request: dict[str, Any]) -> dict[str, str]:
    return {note.path: note.message for note in from_request(request).notes}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_of_the_sdk_becomes_a_pipeline_that_sends_it(name: str) -> None:
    request = REQUESTS[name]
    again = sent(yaml.safe_load(from_request(request).yaml()))
    assert {key: again.get(key) for key in request if key not in ("TrainingJobName", "Tags")} == {
        key: value for key, value in request.items() if key not in ("TrainingJobName", "Tags")
    }
    assert set(again) - {"Tags"} <= set(request)


def test_there_are_requests_to_import() -> None:
    assert len(REQUESTS) >= 35


def test_the_name_and_the_tags_are_told() -> None:
    tagged = {**REQUEST, "Tags": [{"Key": "team", "Value": "vision"}]}
    assert set(told(tagged)) == {"TrainingJobName", "Tags"}
    assert from_request(tagged).description["stages"]["train"]["tags"] == {"team": "vision"}


def test_a_value_that_the_pipeline_adds_is_told() -> None:
    resources = {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2}
    notes = told({**REQUEST, "ResourceConfig": resources})
    assert notes["ResourceConfig.VolumeSizeInGB"] == "is added by the pipeline: 30"


def test_what_no_field_says_stays_as_it_is() -> None:
    request = {
        **REQUEST,
        "EnableNetworkIsolation": False,
        "InfraCheckConfig": {"EnableInfraCheck": True},
    }
    imported = from_request(request)
    extra = imported.description["stages"]["train"]["extra_request"]
    assert extra["InfraCheckConfig"] == {"EnableInfraCheck": True}
    assert extra["EnableNetworkIsolation"] is False
    assert {note.path for note in imported.notes} == {"TrainingJobName"}


def test_a_field_that_aws_does_not_know_is_refused() -> None:
    with pytest.raises(PipelineError, match="Colour"):
        from_request({**REQUEST, "Colour": "red"})


def test_another_object_is_refused() -> None:
    with pytest.raises(PipelineError, match="without AlgorithmSpecification"):
        from_request({"StartAt": "A", "States": {}})


def test_differences_have_their_paths() -> None:
    theirs = {"a": [{"b": 1}], "c": 2, "d": 3}
    ours = {"a": [{"b": 2}], "c": 2, "e": 4}
    assert [note.path for note in differences(theirs, ours)] == ["a[0].b", "d", "e"]
