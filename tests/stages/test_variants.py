"""Several variants of an endpoint: the requests, and what is refused beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, join
from orchestration.checks.requests import violations
from orchestration.graph import Require, all_steps
from orchestration.pricing import Assumptions, estimate
from tests.stages.test_endpoint_updates import calls, deployment, problems
from tests.stages.test_registration import allowed

AB: dict[str, Any] = {"variant": "new", "variants": {"old": {"weight": 9.0}}, "update": {}}


def config(**fields: Any) -> dict[str, Any]:
    request: Any = calls(deployment(**{**AB, **fields}))["deploy.config"].operation.request
    return dict(request)


def test_the_new_model_has_its_share_beside_those_that_stay() -> None:
    old, new = config(weight=3.0)["ProductionVariants"]
    assert [old["VariantName"], new["VariantName"]] == ["old", "new"]
    assert [old["InitialVariantWeight"], new["InitialVariantWeight"]] == [9.0, 3.0]
    assert old["ModelName"] != new["ModelName"]
    assert old["InstanceType"] == new["InstanceType"] == "ml.m5.large"


def test_a_variant_may_have_machines_and_a_model_of_its_own() -> None:
    own = {"model_name": "mine", "instance_type": "ml.c5.large", "instance_count": 2}
    other = config(variants={"old": own})["ProductionVariants"][0]
    assert (other["ModelName"], other["InstanceType"]) == ("mine", "ml.c5.large")
    assert other["InitialInstanceCount"] == 2
    assert "deploy.configured" not in calls(deployment(**{**AB, "variants": {"old": own}}))


def test_what_the_configuration_is_named_after() -> None:
    def name(**fields: Any) -> Any:
        return config(**fields)["EndpointConfigName"]

    named = {"old": {"model_name": "one"}}
    assert name() == name()
    assert name(weight=1.0) == name() != name(weight=2.0)
    assert name(variants=named) != name(variants={"old": {"model_name": "two"}})


def test_guardrails_ask_for_equal_variants_and_a_plain_update_does_not() -> None:
    def required(update: dict[str, Any]) -> tuple[bool, bool]:
        stage = deployment(**{**AB, "update": update})
        graph = Pipeline(name="p", workspace="s3://b", stages=[stage]).lower().graph
        names = [step.name for step in all_steps(graph) if isinstance(step, Require)]
        request = calls(stage)["deploy.update"].operation.request
        return "deploy.same_variants" in names, "DeploymentConfig" in request

    assert required({}) == (False, False)
    assert required({"traffic": "canary", "percent": 25}) == (True, True)
    assert required({"alarms": {"errors_percent": 1}}) == (True, True)


def test_refusing_while_busy_knows_this_run_by_what_the_endpoint_was_asked_for() -> None:
    stage = deployment(**{**AB, "update": {"while_busy": "refuse"}})
    graph = Pipeline(name="p", workspace="s3://b", stages=[stage]).lower().graph
    names = [step.name for step in graph.steps]
    order = ["busy", "serves", "kept_1", "free", "look", "known_variants", "model"]
    assert [name for name in names if name.removeprefix("deploy.") in order] == [
        f"deploy.{name}" for name in order
    ]


def test_weights_and_captures_follow_the_configuration_though_instances_are_scaled() -> None:
    capture = {"uri": "s3://captured", "percent": 20}
    request: Any = calls(deployment(**AB, data_capture=capture))["deploy.update"].operation.request
    excluded = [each["VariantPropertyType"] for each in request["ExcludeRetainedVariantProperties"]]
    assert excluded == ["DesiredWeight", "DataCaptureConfig"]
    asked: Any = calls(deployment(**AB))["deploy.scaled"].operation.request
    assert len(asked["ResourceIds"]) == 2


def test_alarms_scaling_and_tests_are_those_of_the_new_model_s_variant() -> None:
    steps = calls(
        deployment(
            **{**AB, "update": {"alarms": {"errors_percent": 1}}},
            autoscaling={"max_instances": 8, "invocations_per_minute": 60.0},
            smoke_test={"request": 1},
        )
    )
    alarm: Any = steps["deploy.alarm_5xx"].operation.request
    assert {"Name": "VariantName", "Value": "new"} in alarm["Dimensions"]
    resource = join("endpoint/", "shop-deploy", "/variant/", "new")
    assert steps["deploy.scaling"].operation.request["ResourceId"] == resource
    assert steps["deploy.invoke"].operation.request["TargetVariant"] == "new"


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"variant": None}, "variant", "is needed: the name of the variant that the new model"),
        ({"variant": "old"}, "variant", "old is one of the other variants; choose another"),
        ({"variants": {}}, "variant", "there are no other variants; remove it"),
        ({"variants": {"old": {"weight": 0.0}}, "weight": 0.0}, "weight", "all variants have a"),
        (
            {"update": {"traffic": "rolling", "percent": 25}},
            "update.traffic",
            "SageMaker rolls no endpoint with several variants; choose canary or linear",
        ),
        ({"update": {"keep": 3}, "endpoint_name": "e"}, "update.keep", "another variant may serve"),
        ({"serverless": {}, "instance_type": None}, "variants", "a serverless endpoint has one"),
        ({"asynchronous": {"output_uri": "s3://b/o"}}, "variants", "requests that wait name no"),
    ],
)
def test_what_does_not_go_with_several_variants_is_an_error(
    fields: dict[str, Any], field: str, message: str
) -> None:
    assert problems(**{**AB, **fields})[field].startswith(message)


SHADOW: dict[str, Any] = {**AB, "variants": {"old": {}}, "shadow": True}


def test_a_shadow_stands_beside_the_variant_that_answers() -> None:
    request = config(**SHADOW, weight=0.2)
    [old], [new] = (request[f"{kind}ProductionVariants"] for kind in ("", "Shadow"))
    assert (old["VariantName"], old["InitialVariantWeight"]) == ("old", 1.0)
    assert (new["VariantName"], new["InitialVariantWeight"]) == ("new", 0.2)
    assert not list(deployment(**SHADOW, weight=0.2).check())
    assert not violations("sagemaker", "CreateEndpointConfig", request)


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"variants": {}, "variant": None}, "shadow", "there are no other variants; remove it"),
        ({"variants": {"a": {}, "b": {}}}, "variants", "SageMaker makes a shadow of an endpoint's"),
        (
            {"weight": 2.0},
            "weight",
            "a shadow gets at most all requests of old: expected at most 1",
        ),
        ({"smoke_test": {"request": 1}}, "smoke_test", "a shadow answers nobody; use update.trial"),
        ({"autoscaling": {"max_instances": 2}}, "autoscaling", "a shadow is not scaled; remove it"),
        ({"postprocessing": [{"image": "i"}]}, "postprocessing", "SageMaker makes shadows of one"),
        (
            {"instance_type": "ml.inf1.xlarge"},
            "instance_type",
            "SageMaker makes no shadows on Inf1",
        ),
        ({"asynchronous": {"output_uri": "s3://b/o"}}, "variants", "requests that wait name no"),
        (
            {"update": {"traffic": "canary", "percent": 25}},
            "update.traffic",
            "a shadow gets copies, and no traffic moves to it; remove it",
        ),
        ({"update": {"alarms": {"named": ["orders"]}}}, "update.alarms", "a shadow gets copies"),
        (
            {"update": {"trial": {"cases": [{"request": 1}], "after": True}}},
            "update.trial.after",
            "a shadow answers nobody; the cases are asked before",
        ),
    ],
)
def test_what_does_not_go_with_a_shadow_is_an_error(
    fields: dict[str, Any], field: str, message: str
) -> None:
    assert problems(**{**SHADOW, **fields})[field].startswith(message)


def test_a_shadow_costs_beside_what_answers() -> None:
    made = Pipeline(
        name="p", workspace="s3://b", region="us-east-1", stages=[deployment(**SHADOW)]
    ).lower()
    found = estimate(made, Assumptions(), region="us-east-1", parameters={})
    [line] = [each for each in found.lines if "endpoint" in each.what]
    # Four machines of each, over a month of 730 hours.
    assert (line.what, line.expected) == ("endpoint, 4 x ml.m5.large", 2 * 4 * 730)


def test_each_variant_costs_and_the_scaled_one_has_a_range() -> None:
    stage = deployment(**AB, autoscaling={"max_instances": 8, "invocations_per_minute": 60.0})
    made = Pipeline(name="p", workspace="s3://b", region="us-east-1", stages=[stage]).lower()
    found = estimate(made, Assumptions(), region="us-east-1", parameters={})
    lines = [each.what for each in found.lines if "endpoint" in each.what]
    assert lines == ["endpoint, 4 x ml.m5.large", "endpoint, 1 to 8 x ml.m5.large"]


def test_a_run_may_look_at_what_the_endpoint_is_configured_to_serve() -> None:
    made = Pipeline(name="p", workspace="s3://b", region="us-east-1", stages=[deployment(**AB)])
    assert "DescribeEndpointConfig" in allowed(made)


def test_numbers_of_machines_that_scaling_keeps_are_told_beforehand() -> None:
    def warned(count: int | None, **fields: Any) -> list[str]:
        variants = {"old": {"instance_count": count}, "named": {}}
        stage = deployment(**{**AB, "variants": variants, **fields})
        return [each.field for each in stage.warnings() if "instance_count" in each.field]

    scaled = {"autoscaling": {"max_instances": 8, "invocations_per_minute": 60.0}}
    assert warned(2, **scaled) == ["variants.old.instance_count"]
    assert warned(None, **scaled) == warned(2) == []


def test_the_time_of_watching_counts_where_traffic_moves_in_parts_or_is_watched() -> None:
    for update in ({}, {"traffic": "canary", "percent": 25, "baking_s": 600}):
        assert "update.baking_s" not in problems(**{**AB, "update": update})
