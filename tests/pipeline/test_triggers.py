"""Triggers of pipelines: what they listen to, what parameters get, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import EventValue, Pipeline, S3Objects, Trigger
from orchestration.errors import PipelineError

STAGES = {"staging": {"kind": "data_staging", "source": {"parameter": "data"}}}


def pipeline(trigger: Any, workspace: str = "s3://shelf/runs", **parameters: Any) -> Pipeline:
    declared = {"data": {}, "role": {"default": "arn:aws:iam::123456789012:role/r"}, **parameters}
    return Pipeline.parse(
        {
            "name": "copying",
            "workspace": workspace,
            "parameters": declared,
            "trigger": trigger,
            "stages": STAGES,
        }
    )


def spec(trigger: Any, **parameters: Any) -> Any:
    return pipeline(trigger, **parameters).lower().trigger


OBJECTS: dict[str, Any] = {
    "s3": {"bucket": "incoming"},
    "parameters": {"data": {"event": "object_uri"}},
}


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ({}, None),
        ({"prefix": "new/"}, {"prefix": "new/"}),
        ({"suffix": ".csv"}, {"suffix": ".csv"}),
        ({"prefix": "a*b/", "suffix": "\\"}, {"wildcard": "a\\*b/*\\\\"}),
    ],
)
def test_new_objects_are_told_by_bucket_and_key(where: Any, key: Any) -> None:
    found = spec({**OBJECTS, "s3": {"bucket": "incoming", **where}})
    detail = {"bucket": {"name": ["incoming"]}}
    assert found.pattern == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": detail if key is None else {**detail, "object": {"key": [key]}},
    }
    assert found.values == {"data": "s3://<detail.bucket.name>/<detail.object.key>"}


def test_python_and_yaml_say_the_same() -> None:
    trigger = Trigger(
        s3=S3Objects(bucket="incoming"), parameters={"data": EventValue(event="object_uri")}
    )
    assert trigger.spec() == spec(OBJECTS)


def test_versions_of_a_model_are_told_by_group_and_status() -> None:
    found = spec(
        {
            "model_package": {"group": "digits"},
            "parameters": {"data": "s3://a/b", "model": {"event": "model_package"}},
        },
        model={},
    )
    assert found.pattern["detail"] == {
        "ModelPackageGroupName": ["digits"],
        "ModelApprovalStatus": ["Approved"],
    }
    assert found.values == {"model": "<detail.ModelPackageArn>"}
    assert found.parameters == {"data": "s3://a/b"}


def test_an_event_needs_the_fields_that_parameters_get() -> None:
    pattern = {"source": ["my.orders"], "detail": {"state": ["paid"]}}
    parameters = {"data": {"event": "detail.order.uri"}, "state": {"event": "$.detail.state"}}
    found = spec({"event": pattern, "parameters": parameters}, state={})
    assert found.pattern == {
        "source": ["my.orders"],
        "detail": {"state": ["paid"], "order": {"uri": [{"exists": True}]}},
    }
    assert found.values == {"data": "<detail.order.uri>", "state": "<detail.state>"}


@pytest.mark.parametrize(
    ("trigger", "problem"),
    [
        ({}, "trigger: expected one of s3, model_package, pipeline, event, got none"),
        (
            {"pipeline": "b", **OBJECTS},
            "trigger: expected one of s3, model_package, pipeline, event, got s3 and pipeline",
        ),
        (
            {**OBJECTS, "s3": {"bucket": {"parameter": "data"}}},
            "trigger.s3.bucket: expected text, got {'parameter': 'data'}: what hears of events",
        ),
        (
            {**OBJECTS, "parameters": {"data": {"event": "object_url"}}},
            "trigger.parameters.data: the event tells no 'object_url'; did you mean 'object_uri'?",
        ),
        (
            {**OBJECTS, "parameters": {"data": {"event": "xyzzy"}}},
            "the event tells no 'xyzzy'; there is bucket, etag, id, key, object_uri, size, time",
        ),
        (
            {**OBJECTS, "parameters": {"dta": "x"}},
            "trigger.parameters.dta: there is no such parameter; did you mean 'data'?",
        ),
        (
            {**OBJECTS, "parameters": {"count": {"event": "key"}}},
            "trigger.parameters.count: 'key' is text, and the parameter is a number",
        ),
        (
            {**OBJECTS, "parameters": {"count": "many"}},
            "trigger.parameters.count: is 'many', and the parameter is a number",
        ),
        ({"pipeline": "copying"}, "trigger.pipeline: is this very pipeline"),
        (
            {"pipeline": "b", "queue": "https://sqs.us-east-1.amazonaws.com/123456789012/q"},
            "trigger.queue: is for events of EventBridge",
        ),
        (
            {"event": {"source": ["a"]}, "parameters": {"data": {"event": "order.uri"}}},
            "the event tells no 'order.uri'; write a path such as detail.order.uri",
        ),
        ({"event": {"detail": {"a": [1]}}}, "trigger.event.source: is missing"),
        (
            {"event": {"sorce": ["a"]}},
            "trigger.event.sorce: is an unknown field of events; did you mean 'source'?",
        ),
        (
            {"event": {"source": ["a"], "detail": {"a": "b"}}},
            "trigger.event.detail.a: expected a list of values or filters, or a mapping, got 'b'",
        ),
        (
            {"event": {"source": ["a"], "detail": {"a": [{"prefx": "b"}]}}},
            "trigger.event.detail.a[0]: unknown filter 'prefx'; did you mean 'prefix'?",
        ),
        (
            {"event": {"source": ["a"], "detail": {"a": [{"exists": 1}]}}},
            "trigger.event.detail.a[0]: exists: expected true or false, got 1",
        ),
        (
            {"event": {"source": ["a"], "detail": {"$or": [{"a": [1]}, "b"]}}},
            "trigger.event.detail.$or[1]: expected a pattern, got 'b'",
        ),
        (
            {"event": {"source": ["a"], "detail": {"a": [["b"]]}}},
            "trigger.event.detail.a[0]: expected a value, or a filter",
        ),
        ({"event": {"source": ["a" * 2100]}}, "trigger.event: has 2116 characters as JSON"),
        (
            {
                "event": {"source": ["a" * 2000]},
                "parameters": {"data": {"event": "detail.order.uri"}},
            },
            "trigger.event: has 2066 characters as JSON",
        ),
        (
            {"s3": {"bucket": "incoming", "prefix": "a" * 1000, "suffix": "b" * 1000}},
            "trigger.s3: has 2143 characters as JSON",
        ),
    ],
)
def test_what_can_not_work_is_refused_with_a_way_out(trigger: Any, problem: str) -> None:
    with pytest.raises(PipelineError) as refused:
        pipeline(trigger, count={"type": "number", "default": 1})
    assert any(problem in str(each) for each in refused.value.problems), refused.value


def test_numbers_of_an_event_fit_numbers_and_texts() -> None:
    found = {**OBJECTS["parameters"], "size": {"event": "size"}, "text": {"event": "size"}}
    trigger = {**OBJECTS, "parameters": found}
    assert spec(trigger, size={"type": "number"}, text={}).values["size"] == "<detail.object.size>"


def test_what_a_triggered_run_lacks_is_a_warning() -> None:
    [warning] = pipeline({**OBJECTS, "parameters": {}}).warnings()
    assert str(warning).startswith(
        "trigger.parameters: triggered runs have no value for data; give each a default"
    )
    assert pipeline(OBJECTS).warnings() == []


@pytest.mark.parametrize(
    ("prefix", "warned"), [("", True), ("runs/", True), ("runs/x/", True), ("new/", False)]
)
def test_a_run_that_may_start_the_next_is_a_warning(prefix: str, warned: bool) -> None:
    trigger = {**OBJECTS, "s3": {"bucket": "shelf", "prefix": prefix}}
    found = [str(each) for each in pipeline(trigger).warnings()]
    assert bool(found) is warned
    assert all("may start the next run; name a prefix outside it" in each for each in found)
