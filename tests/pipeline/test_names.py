"""Derived names keep to SageMaker's rules, whatever the pipeline and its stages are called."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orchestration import PipelineError
from orchestration.checks.requests import violations
from orchestration.expressions import Json, evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, all_steps
from tests.pipeline.building import deployment, evaluation, job, lustre, pipeline, reader

PIPELINES = st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,4}){0,5}", fullmatch=True)
STAGES = st.from_regex(r"[a-z][a-z0-9]{0,4}(_[a-z0-9]{1,4}){0,5}", fullmatch=True)
NAME_FIELDS = {
    "TrainingJobName",
    "ProcessingJobName",
    "ModelName",
    "EndpointConfigName",
    "EndpointName",
    "ClientRequestToken",
}


def names(pipeline_name: str, stage_name: str) -> dict[str, set[str]]:
    """The names a run gives, by field of the requests, a job started anew among them."""
    stages = [
        {**job("t"), "name": f"{stage_name}"},
        evaluation("e", stage_name),
        deployment("d", "e"),
        lustre("f"),
        reader("g", "f"),
    ]
    workflow = pipeline(*stages, name=pipeline_name).lower()
    known: dict[str, dict[str, Json]] = {
        "f.create": {"file_system_id": "fs-0123456789abcdef0"},
        "e.each": {"items": [{"checkpoint": "s3://b/epoch-1/", "metric": 1}]},
        "d.fingerprint": {"fingerprint": "f"},
        "d.look": {"variant": "main"},
    }
    element: Json = {"Prefix": "checkpoints/epoch-1/"}
    env = Values(known, {}, run_token="0123456789ab", current=element, number=99)
    found: dict[str, set[str]] = {}
    for step in all_steps(workflow.graph):
        if isinstance(step, Call):
            for field in NAME_FIELDS & step.operation.request.keys():
                name = evaluate(step.operation.request[field], env)
                found.setdefault(field, set()).add(str(name))
                if step.adopt is not None and step.adopt.name_field == field:
                    found[field].add(f"{name}-99")
    return found


def request(field: str, name: str) -> list[str]:
    operation = {
        "TrainingJobName": ("sagemaker", "DescribeTrainingJob"),
        "ProcessingJobName": ("sagemaker", "DescribeProcessingJob"),
        "ModelName": ("sagemaker", "DescribeModel"),
        "EndpointConfigName": ("sagemaker", "DescribeEndpointConfig"),
        "EndpointName": ("sagemaker", "DescribeEndpoint"),
        "ClientRequestToken": ("fsx", "CreateFileSystem"),
    }[field]
    asked: dict[str, Json] = {field: name}
    return [str(p) for p in violations(*operation, asked) if p.path == field]


@settings(max_examples=20, deadline=None)
@given(PIPELINES, STAGES)
def test_every_name_that_is_allowed_makes_names_that_aws_takes(one: str, other: str) -> None:
    assume(len(one) <= 32 and len(other) <= 30 and len(one) + len(other) <= 44)
    assume(other not in ("e", "d", "f", "g"))
    for field, given_names in names(one, other).items():
        for name in given_names:
            assert request(field, name) == []


def test_the_longest_names_fit() -> None:
    found = names("p" * 14, "s" * 30)
    # SageMaker takes 63 characters; the job of a fallback cluster ends in two more.
    assert max(len(name) for name in found["TrainingJobName"]) == 63 - len("-b")


def test_names_of_stages_that_differ_by_their_word_breaks_only_differ() -> None:
    found = [names("p", stage)["TrainingJobName"] for stage in ("a_b", "ab")]
    # The file system's reader has the same name in both.
    assert {name.removesuffix("-99") for name in found[0] & found[1]} == {"p-g-0123456789ab"}


@pytest.mark.parametrize(("one", "other"), [("p" * 15, "s" * 30), ("p" * 32, "s" * 13)])
def test_names_that_are_too_long_together_are_reported_as_such(one: str, other: str) -> None:
    with pytest.raises(PipelineError) as error:
        pipeline(job(other), name=one)
    [problem] = error.value.problems
    assert problem.path == f"stages.{other}.name"
    assert problem.message.startswith("has 45 characters together with the pipeline's name")
