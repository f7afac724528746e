"""Requests against botocore's shapes, and the check against botocore's own validator."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.checks.requests import (
    has_output,
    places,
    violations,
)
from orchestration.expressions import Item, Result, Tree, join, parameter, run_id

Data = dict[str, Any]

_BOTOCORES = ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")
SDK = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))["request"]
    for path in (Path(__file__).parents[1] / "data" / "sdk_requests").glob("*.json")
}


def found(request: Data) -> dict[str, str]:
    return {p.path: p.message for p in violations("sagemaker", "CreateTrainingJob", request)}


def training_job(**further: Any) -> Data:
    return {
        "TrainingJobName": "job",
        "RoleArn": "arn:aws:iam::111122223333:role/Execution",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    } | further


@pytest.mark.parametrize("name", SDK)
def test_the_sdks_own_requests_are_right(name: str) -> None:
    assert found(SDK[name]) == {}


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _containers(item)
    elif isinstance(value, list):
        for item in value:
            yield from _containers(item)


@st.composite
def broken(draw: st.DrawFn) -> Data:
    """A request of the SDK with a few things taken away, added or replaced."""
    request: Data = copy.deepcopy(SDK[draw(st.sampled_from(sorted(SDK)))])
    junk: st.SearchStrategy[Any] = st.sampled_from([3, 2.5, "text", [], {}, None, [{}], {"a": 1}])
    for _ in range(draw(st.integers(1, 4))):
        target = draw(st.sampled_from([c for c in _containers(request) if c] or [request]))
        key = draw(st.sampled_from(sorted(target))) if target else "Added"
        match draw(st.sampled_from(["delete", "add", "replace"])):
            case "delete":
                target.pop(key, None)
            case "add":
                target["Added"] = copy.deepcopy(draw(junk))
            case _:
                target[key] = copy.deepcopy(draw(junk))
    return request


def _botocores(request: Data) -> set[str]:
    model = _BOTOCORES.operation_model("CreateTrainingJob")
    report = ParamValidator().validate(request, model.input_shape)
    paths = set()
    for _, name, about in report._errors:
        further = about.get("required_name") or about.get("unknown_param")
        paths.add(".".join(part for part in (name, further) if part).lstrip("."))
    return paths


@settings(max_examples=300, deadline=None)
@given(broken())
def test_what_botocore_refuses_is_refused_at_the_same_place(request: Data) -> None:
    # botocore writes a map's value as (key: x) or the key; the field before it is enough.
    ours = {path.split(" key")[0] for path in found(request)}
    for path in _botocores(request):
        assert path in ours or any(o.startswith(path.split(" (")[0]) for o in ours), path


@settings(max_examples=300, deadline=None)
@given(broken())
def test_what_is_refused_beyond_botocore_is_a_bound_a_pattern_or_a_word(request: Data) -> None:
    words = ("the most is", "the least is", "pattern", "AWS does not know", "exactly one of")
    theirs = _botocores(request)
    for path, message in found(request).items():
        assert path in theirs or any(word in message for word in words) or _in_map(path), path


def _in_map(path: str) -> bool:
    return path.startswith(("HyperParameters", "Environment"))


@pytest.mark.parametrize(
    ("further", "path", "message"),
    [
        ({"TrainingJobName": "j" * 64}, "TrainingJobName", "has 64 characters; the most is 63"),
        ({"TrainingJobName": "a_b"}, "TrainingJobName", "AWS's pattern"),
        ({"TrainingJobName": "-a"}, "TrainingJobName", "AWS's pattern"),
        ({"RoleArn": "role"}, "RoleArn", "the least is 20"),
        ({"HyperParameters": {f"h{n}": "" for n in range(101)}}, "HyperParameters", "is 100"),
        ({"HyperParameters": {"h": "x" * 2501}}, "HyperParameters.h", "the most is 2500"),
        ({"HyperParameters": {"h": 3}}, "HyperParameters.h", "expected text, not 3"),
        ({"Environment": {f"E{n}": "" for n in range(101)}}, "Environment", "the most is 100"),
        ({"Environment": {"E": "x" * 513}}, "Environment.E", "the most is 512"),
        ({"Environment": {"1E": "x"}}, "Environment key '1E'", "AWS's pattern"),
        ({"InputDataConfig": []}, "InputDataConfig", "the least is 1"),
        ({"Tags": [{"Key": "k", "Value": "v"}] * 51}, "Tags", "the most is 50"),
        ({"Tags": [{"Key": "k"}]}, "Tags[0].Value", "is required"),
        (
            {"RetryStrategy": {"MaximumRetryAttempts": 31}},
            "RetryStrategy.MaximumRetryAttempts",
            "30",
        ),
        (
            {"ResourceConfig": {"InstanceType": "ml.p4d.24xlage"}},
            "ResourceConfig.InstanceType",
            "did you mean 'ml.p4d.24xlarge'?",
        ),
        (
            {"StoppingCondition": {"MaxRuntimeInSeconds": 0}},
            "StoppingCondition.MaxRuntimeInSeconds",
            "is 0; the least is 1",
        ),
        (
            {"StoppingCondition": {"MaxRuntimeInSeconds": 3.5}},
            "StoppingCondition.MaxRuntimeInSeconds",
            "a whole number, not 3.5",
        ),
        (
            {"VpcConfig": {"SecurityGroupIds": ["sg"] * 6, "Subnets": ["s"]}},
            "VpcConfig.SecurityGroupIds",
            "has 6 entries; the most is 5",
        ),
        (
            {"VpcConfig": {"SecurityGroupIds": ["sg"], "Subnets": ["s"] * 17}},
            "VpcConfig.Subnets",
            "the most is 16",
        ),
        ({"EnableManagedSpotTraining": "yes"}, "EnableManagedSpotTraining", "true or false"),
        (
            {"EnableNetworkIsolaton": True},
            "EnableNetworkIsolaton",
            "mean 'EnableNet",
        ),
        ({"OutputDataConfig": {1: 2}}, "OutputDataConfig.1", "is unknown"),
    ],
)
def test_limits_of_a_training_job(further: Data, path: str, message: str) -> None:
    problems = found(training_job(**further))
    assert message in problems[path]


@pytest.mark.parametrize(
    "name",
    [join("p-", run_id()), join("p-", parameter("x")), parameter("x"), Result("a", "b"), Item()],
)
def test_what_is_not_known_yet_is_not_refused(name: Tree) -> None:
    assert found(training_job(TrainingJobName=name)) == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (join("p" * 52, run_id()), "has 64 characters; the most is 63"),
        (join("p_", run_id()), "AWS's pattern"),
        (join("p" * 64, parameter("x")), "has at least 64 characters; the most is 63"),
    ],
)
def test_the_known_part_of_a_text_is_checked(name: Tree, message: str) -> None:
    assert message in found(training_job(TrainingJobName=name))["TrainingJobName"]


def test_text_where_a_number_belongs_is_refused() -> None:
    wrong = {"StoppingCondition": {"MaxRuntimeInSeconds": join(parameter("x"))}}
    assert found(training_job(**wrong)) == {
        "StoppingCondition.MaxRuntimeInSeconds": "is text where the API takes another type: integer"
    }


def test_an_unknown_operation_suggests_the_near_one() -> None:
    [problem] = violations("sagemaker", "CreateTraningJob", {})
    assert "did you mean 'CreateTrainingJob'?" in problem.message
    [problem] = violations("sagemakr", "CreateTrainingJob", {})
    assert "botocore knows no service 'sagemakr'; did you mean 'sagemaker'?" in problem.message


def test_places_of_expressions_have_the_type_of_the_api() -> None:
    count, role = parameter("count"), parameter("role")
    request: Data = {"RoleArn": role, "ResourceConfig": {"InstanceCount": count}, "Unknown": count}
    assert list(places("sagemaker", "CreateTrainingJob", request)) == [
        ("RoleArn", "string", role),
        ("ResourceConfig.InstanceCount", "integer", count),
    ]


@pytest.mark.parametrize(
    ("path", "there"),
    [
        (("ModelArtifacts", "S3ModelArtifacts"), True),
        (("SecondaryStatusTransitions", 0, "Status"), True),
        (("SecondaryStatusTransitions", "Status"), False),
        (("ModelArtifact",), False),
        (("TrainingJobName", "x"), False),
        (("HyperParameters", "anything"), True),
    ],
)
def test_an_output_has_to_be_in_the_response(path: tuple[str | int, ...], there: bool) -> None:
    assert has_output("sagemaker", "DescribeTrainingJob", path) is there


ARN = "arn:aws:sagemaker:us-east-1:123456789012:model/m"


@pytest.mark.parametrize("value", ["x!", "line\nbreak", "nul\0", "a\n", "tab\t", "€"])
def test_a_tag_that_aws_refuses_is_refused(value: str) -> None:
    [problem] = violations(
        "sagemaker", "AddTags", {"ResourceArn": ARN, "Tags": [{"Key": "team", "Value": value}]}
    )
    assert problem.field == "Tags[0].Value"
    assert "does not match AWS's pattern" in problem.message


@pytest.mark.parametrize("value", ["", "Zürich 2:a/b=c+d-e@f_.", "数据", "\u00a0", "٣"])
def test_letters_of_every_script_are_fine_in_a_tag(value: str) -> None:
    tags = [{"Key": "team", "Value": value}]
    assert violations("sagemaker", "AddTags", {"ResourceArn": ARN, "Tags": tags}) == []


def test_an_event_without_what_eventbridge_needs_is_refused_before_its_answer_says_so() -> None:
    request = {"Entries": [{"Source": "aws.mine", "DetailType": "Done"}]}
    fields = [problem.field for problem in violations("events", "PutEvents", request)]
    assert fields == ["Entries[0].Detail", "Entries[0].Source"]


def test_a_line_break_where_a_pattern_takes_none_is_told() -> None:
    assert found(training_job(HyperParameters={"words": "a b", "more": "ü{}"})) == found(
        training_job()
    )
    told = found(training_job(HyperParameters={"words": "a\nb"}))["HyperParameters.words"]
    assert told == r"'a\nb' has a line break, and so does not match AWS's pattern .*"
