"""A deployment to an inference component: its requests, and what is refused beforehand."""

from __future__ import annotations

from typing import Any, cast

import pytest

from orchestration import Pipeline, parameter
from orchestration.checks.requests import violations
from orchestration.expressions import Field, Item, Result
from orchestration.graph import Call, Graph, all_steps, ordered
from orchestration.local.sagemaker.components.placing import needed, stages
from orchestration.pricing import Assumptions, estimate
from orchestration.stages.stage import SAMPLE
from tests.stages.test_endpoint_updates import calls, deployment, problems
from tests.stages.test_registration import allowed

COMPONENT: dict[str, Any] = {"copies": 4, "memory_mib": 2048, "cpus": 0.5}
MANAGED = {"min_instances": 1, "max_instances": 8, "scale_in": "consolidation"}
SHARED: dict[str, Any] = {
    "inference_component": {**COMPONENT, "managed_instances": MANAGED},
    "endpoint_name": "shared",
    "instance_count": 2,
    "update": {"traffic": "rolling", "instances": 1, "alarms": {"named": ["orders"]}},
}


def request(step: str, **fields: Any) -> dict[str, Any]:
    whole: Any = calls(deployment(**{**SHARED, **fields}))[f"deploy.{step}"].operation.request
    return dict(whole)


def test_the_endpoint_has_no_model_and_adapts_its_instances() -> None:
    made = request("config", routing="least_outstanding_requests", volume_kms_key="key")
    [variant] = made["ProductionVariants"]
    assert "ModelName" not in variant
    assert variant["ManagedInstanceScaling"] == {
        "Status": "ENABLED",
        "MinInstanceCount": 1,
        "MaxInstanceCount": 8,
        "ScaleInPolicy": {"Strategy": "CONSOLIDATION"},
    }
    assert variant["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert (made["KmsKeyId"], "ExecutionRoleArn" in made) == ("key", True)


def test_the_network_is_that_of_the_endpoint() -> None:
    vpc = {"subnets": ["subnet-1"], "security_groups": ["sg-1"]}
    fields = {"vpc": vpc, "enable_network_isolation": True}
    made, model = request("config", **fields), request("model", **fields)
    assert made["VpcConfig"] == {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
    assert made["EnableNetworkIsolation"] is True
    assert not {"VpcConfig", "EnableNetworkIsolation"} & model.keys()


def test_a_trial_is_as_closed_as_the_endpoint() -> None:
    vpc = {"subnets": ["subnet-1"], "security_groups": ["sg-1"]}
    trial = {"update": {"trial": [{"request": 1}]}}
    stage = deployment(**{**SHARED, **trial, "vpc": vpc, "enable_network_isolation": True})
    assert not list(stage.check())
    tried = calls(stage)
    own, config = (tried[f"deploy.trial_{each}"].operation.request for each in ("model", "config"))
    assert own["VpcConfig"] == {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
    assert own["EnableNetworkIsolation"] is True
    [variant] = cast(Any, config["ProductionVariants"])
    deleted = tried["deploy.trial_model_forgotten"].operation.request
    assert variant["ModelName"] == own["ModelName"] == deleted["ModelName"]
    assert own["ModelName"] != tried["deploy.model"].operation.request["ModelName"]
    # Without either, the trial has the model itself.
    assert "deploy.trial_model" not in calls(deployment(**{**SHARED, **trial}))


def test_a_component_says_what_each_copy_needs_and_how_it_is_updated() -> None:
    created = request("create_component", startup_timeout_s=900)
    assert created["Specification"]["ComputeResourceRequirements"] == {
        "NumberOfCpuCoresRequired": 0.5,
        "MinMemoryRequiredInMb": 2048,
    }
    assert created["Specification"]["StartupParameters"] == {
        "ContainerStartupHealthCheckTimeoutInSeconds": 900
    }
    updated = request("update_component")
    policy = updated["DeploymentConfig"]["RollingUpdatePolicy"]
    assert policy["MaximumBatchSize"] == {"Type": "COPY_COUNT", "Value": 1}
    alarms = updated["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
    assert alarms == [{"AlarmName": "orders"}]
    assert "DeploymentConfig" not in request("update_component", update={})


def test_a_trial_comes_before_the_endpoint_which_costs() -> None:
    stage = deployment(**{**SHARED, "update": {"trial": [{"request": 1}]}})
    order = [step.name for step in ordered(Graph(stage.lower(SAMPLE).steps))]
    assert order.index("deploy.untried") < order.index("deploy.missing")


CHECKED: dict[str, Any] = {
    **SHARED,
    "update": {**SHARED["update"], "trial": {"cases": [{"request": 1}], "after": True}},
}


def test_each_request_is_well_formed() -> None:
    assert not list(deployment(**SHARED, smoke_test={"request": 1}).check())
    assert not list(deployment(**CHECKED).check())
    for call in calls(deployment(**CHECKED)).values():
        operation = call.operation
        assert not violations(operation.service, operation.name, operation.request)


def test_what_makes_another_component_makes_another_name_of_its_model() -> None:
    other = {**SHARED["inference_component"], "copies": 5}
    assert request("model")["ModelName"] == request("model")["ModelName"]
    assert request("model")["ModelName"] != request("model", inference_component=other)["ModelName"]


def test_further_fields_reach_the_requests_of_a_component() -> None:
    cache = {"Specification": {"DataCacheConfig": {"EnableCaching": True}}}
    rollback = {"Type": "COPY_COUNT", "Value": 2}
    policy = {"RollingUpdatePolicy": {"RollbackMaximumBatchSize": rollback}}
    extra: dict[str, Any] = {
        "CreateInferenceComponent": cache,
        "UpdateInferenceComponent": {**cache, "DeploymentConfig": policy},
    }
    assert not problems(**SHARED, extra_request=extra)
    for step in ("create_component", "update_component"):
        specification = request(step, extra_request=extra)["Specification"]
        assert specification["DataCacheConfig"] == {"EnableCaching": True}
        assert specification["ComputeResourceRequirements"]["MinMemoryRequiredInMb"] == 2048
    updated = request("update_component", extra_request=extra)["DeploymentConfig"]
    assert updated["RollingUpdatePolicy"]["RollbackMaximumBatchSize"] == rollback
    set_already = {"CreateInferenceComponent": {"Specification": {"ModelName": "other"}}}
    assert "is already set" in problems(**SHARED, extra_request=set_already)["extra_request"]


@pytest.mark.parametrize(
    ("step", "name", "extra"),
    [
        ("config", "EndpointConfigName", {"CreateEndpointConfig": {"ExplainerConfig": {}}}),
        (
            "model",
            "ModelName",
            {
                "UpdateInferenceComponent": {
                    "Specification": {"SchedulingConfig": {"PlacementStrategy": "SPREAD"}}
                }
            },
        ),
    ],
)
def test_further_fields_make_another_name(step: str, name: str, extra: dict[str, Any]) -> None:
    assert request(step, extra_request=extra)[name] != request(step)[name]


def test_how_a_component_is_updated_makes_no_other_name_of_its_model() -> None:
    rollback = {"RollbackMaximumBatchSize": {"Type": "COPY_COUNT", "Value": 2}}
    config = {"DeploymentConfig": {"RollingUpdatePolicy": rollback}}
    extra = {"UpdateInferenceComponent": config}
    assert request("model", extra_request=extra)["ModelName"] == request("model")["ModelName"]


def test_further_fields_of_components_need_one() -> None:
    extra: dict[str, Any] = {"CreateInferenceComponent": {"Specifications": []}}
    found = problems(extra_request=extra)
    assert found["extra_request.CreateInferenceComponent"].startswith("needs inference_component")


def test_a_component_gets_the_tags_that_it_lacks_and_quotas_are_told() -> None:
    made = Pipeline(
        name="p",
        workspace="s3://b",
        region="us-east-1",
        tags={"team": "vision"},
        stages=[deployment(**SHARED, smoke_test={"request": 1})],
    )
    steps = {each.name: each for each in all_steps(made.lower().graph)}
    tagged, smoke = steps["deploy.tagged"], steps["deploy.invoke"]
    assert isinstance(tagged, Call)
    assert tagged.operation.name == "AddTags"
    assert tagged.operation.request["Tags"] == [{"Key": "team", "Value": "vision"}]
    assert tagged.operation.request["ResourceArn"] == Result("deploy.settled", "arn")
    assert smoke.after == ("deploy.tagged",)
    for step in ("create_component", "update_component"):
        call = calls(deployment(**SHARED))[f"deploy.{step}"]
        assert call.failure is not None
    component = "arn:aws:sagemaker:us-east-1:123456789012:inference-component/p-deploy"
    assert component in allowed(made)["AddTags"]


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        (
            {"extra_request": {"UpdateEndpoint": {"RetainAllVariantProperties": True}}},
            "extra_request.UpdateEndpoint",
            "an endpoint of components is never updated; remove it",
        ),
        ({"endpoint_name": None}, "endpoint_name", "is needed: the endpoint that has room"),
        ({"instance_count": 9}, "instance_count", "expected 1 to 8, the managed_instances, got 9"),
        ({"serverless": {}, "instance_type": None}, "serverless", "a component is on instances"),
        (
            {"autoscaling": {"max_instances": 4}},
            "autoscaling",
            "scales the instances of a whole endpoint",
        ),
        ({"data_capture": {"uri": "s3://b/c"}}, "data_capture", "is of the whole endpoint, which"),
        ({"variants": {"a": {}}, "variant": "b"}, "variants", "the endpoint has one variant for"),
        ({"preprocessing": [{"image": "i"}]}, "preprocessing", "a component has one container"),
        (
            {"update": {"traffic": "canary", "percent": 25}},
            "update.traffic",
            "a component is updated all_at_once or rolling",
        ),
        (
            {"update": {"traffic": "rolling", "instances": 3, "baking_s": 5}},
            "update.instances",
            "expected 5 to 50 % of the copies for rolling, got 75 %",
        ),
        (
            {"update": {"alarms": {"named": ["orders"]}}},
            "update.alarms",
            "only a rolling update of a component is watched",
        ),
        (
            {
                "update": {"keep": 3},
                "inference_component": {"memory_mib": 1024, "name": parameter("bucket")},
            },
            "update.keep",
            "components whose names only a run knows share their models' names",
        ),
        ({"update": {"while_busy": "refuse"}}, "update.while_busy", "an update of a component is"),
    ],
)
def test_what_does_not_go_with_a_component_is_an_error(
    fields: dict[str, Any], field: str, message: str
) -> None:
    assert problems(**{**SHARED, **fields})[field].startswith(message)


def test_a_run_may_do_to_components_what_it_does() -> None:
    stage = deployment(**SHARED, smoke_test={"request": 1})
    made = Pipeline(name="p", workspace="s3://b", region="us-east-1", stages=[stage])
    actions = allowed(made)
    component = "arn:aws:sagemaker:us-east-1:123456789012:inference-component/p-deploy"
    for action in ("Update", "Describe", "Delete"):
        assert actions[f"{action}InferenceComponent"] == {component}
    both = {component, "arn:aws:sagemaker:us-east-1:123456789012:endpoint/shared"}
    assert actions["CreateInferenceComponent"] == actions["InvokeEndpoint"] == both


def test_what_a_component_goes_back_to_is_kept_once_in_the_run_s_folder() -> None:
    tried = calls(deployment(**CHECKED))
    kept, undone = (tried[f"deploy.check{each}"].operation.request for each in ("", "_undone"))
    assert kept["IfNoneMatch"] == "*"
    assert cast(Any, kept["Body"])["copies"] == Result("deploy.look", "copies")
    assert undone["Specification"] == Result("deploy.check_left", "specification")
    made = Pipeline(
        name="p", workspace="s3://b", region="us-east-1", stages=[deployment(**CHECKED)]
    )
    place = "arn:aws:s3:::b/*/deploy/check/before.json"
    for action in ("PutObject", "GetObject", "DeleteObject"):
        assert place in allowed(made)[action]
    assert "deploy.restorable" not in {each.name for each in all_steps(made_without_check())}


SCALED: dict[str, Any] = {
    **COMPONENT,
    "autoscaling": {"min_copies": 2, "max_copies": 8, "invocations_per_minute": 60},
}


def test_copies_that_the_load_has_added_stay_where_a_component_goes_back() -> None:
    tried = calls(deployment(**{**CHECKED, "inference_component": SCALED}))
    kept, undone = (tried[f"deploy.check{each}"].operation.request for each in ("", "_undone"))
    assert cast(Any, kept["Body"]).keys() == {"before", "specification"}
    assert undone.keys() == {"InferenceComponentName", "Specification"}
    for step in ("look", "check_left"):
        assert "copies" not in tried[f"deploy.{step}"].outputs


@pytest.mark.parametrize(
    ("bounds", "update", "field", "message"),
    [
        ((1, 8), {"instances": 1}, "traffic", "rolling needs at least 2 copies, since at most"),
        ((2, 8), {"instances": 2}, "instances", "expected 5 to 50 % of the copies for rolling, go"),
        ((2, 21), {"instances": 1}, "instances", "expected 5 to 50 % of the copies for rolling, g"),
        ((2, 8), {"instances": 1, "baking_s": 1000}, "baking_s", "the update waits 8000 s in all"),
    ],
)
def test_a_rolling_update_suits_all_numbers_of_copies_that_the_load_may_lead_to(
    bounds: tuple[int, int], update: dict[str, Any], field: str, message: str
) -> None:
    scaled = {"min_copies": bounds[0], "max_copies": bounds[1], "invocations_per_minute": 60}
    component = {**COMPONENT, "copies": bounds[0], "autoscaling": scaled}
    rolling = {"traffic": "rolling", "alarms": {"named": ["orders"]}, **update}
    found = problems(**{**SHARED, "inference_component": component, "update": rolling})
    assert found[f"update.{field}"].startswith(message)


def test_alarms_that_are_made_look_at_the_component_and_forget_before_an_update() -> None:
    alarms = {"named": ["orders"], "errors_percent": 2, "latency_ms": 40}
    stage = deployment(**{**SHARED, "update": {**SHARED["update"], "alarms": alarms, "keep": 2}})
    assert not list(stage.check())
    asked = calls(stage)
    made = asked["deploy.alarm_5xx"].operation.request
    assert made["Dimensions"] == [{"Name": "InferenceComponentName", "Value": "shop-deploy"}]
    assert made["MetricName"] == "Invocation5XXErrors"
    config: Any = asked["deploy.update_component"].operation.request["DeploymentConfig"]
    assert len(config["AutoRollbackConfiguration"]["Alarms"]) == 3
    assert {"deploy.delete_5xx", "deploy.delete_latency"} <= asked.keys()
    order = [step.name for step in ordered(Graph(stage.lower(SAMPLE).steps))]
    steps = ("deploy.alarm_latency", "deploy.reset_5xx", "deploy.began", "deploy.apply")
    assert sorted(steps, key=order.index) == [*steps]
    since = asked["deploy.history"].operation.request["StartDate"]
    assert since == Field(Item(), "StateUpdatedTimestamp")


def test_models_of_two_components_have_names_of_their_own() -> None:
    stages = [
        deployment(
            **{
                **SHARED,
                "name": "deploy",
                "inference_component": {**COMPONENT, "name": name},
                "update": {"keep": 2},
            }
        )
        for name in ("cats", "dogs")
    ]
    listed = [calls(each)["deploy.newest"].operation for each in stages]
    assert {each.name for each in listed} == {"ListModels"}
    cats, dogs = (str(each.request["NameContains"]) for each in listed)
    assert cats[:-5] == dogs[:-5] == "shop-deploy-"
    assert cats != dogs


def made_without_check() -> Graph:
    return Graph(deployment(**SHARED).lower(SAMPLE).steps)


def costs(*stages: dict[str, Any]) -> list[str]:
    """Return what endpoints cost; a component itself costs nothing."""
    made = Pipeline(
        name="p",
        workspace="s3://b",
        region="us-east-1",
        stages=[deployment(**{**SHARED, **fields}) for fields in stages],
    )
    found = estimate(made.lower(), Assumptions(), region="us-east-1", parameters={})
    assert found.unpriced == ()
    return [each.what for each in found.lines if "endpoint" in each.what]


def test_an_endpoint_costs_what_its_fewest_and_its_most_instances_do() -> None:
    assert costs({}) == ["endpoint, 1 to 8 x ml.m5.large"]


def test_copies_that_are_scaled_add_no_instances() -> None:
    assert costs({"inference_component": SCALED}) == ["endpoint, 2 x ml.m5.large"]


def test_an_endpoint_that_components_share_costs_once() -> None:
    one, two = ({**COMPONENT, "name": name} for name in ("one", "two"))
    both: Any = (
        {"name": "one", "inference_component": one},
        {
            "name": "two",
            "inference_component": two,
        },
    )
    assert costs(*both) == ["endpoint, 2 x ml.m5.large"]
    elsewhere = {**both[1], "endpoint_name": "another"}
    assert costs(both[0], elsewhere) == ["endpoint, 2 x ml.m5.large"] * 2


def test_copies_are_put_where_there_is_room() -> None:
    def number(*copies: tuple[int, int]) -> int | None:
        return needed("ml.m5.large", [({"MinMemoryRequiredInMb": mib}, n) for mib, n in copies])

    assert number() == 0
    assert number((4096, 2)) == 1
    assert number((4097, 2)) == 2
    assert number((5000, 2), (1024, 3)) == 2
    assert number((9000, 1)) is None


def test_an_update_needs_room_for_what_is_started_before_the_old_copies_end() -> None:
    old, new = {"ModelName": "one"}, {"ModelName": "two"}
    rolling = [list(stage) for stage in stages((old, 4), (new, 4), 2)]
    assert rolling == [[(old, 4), (new, 2)], [(old, 2), (new, 4)], [(new, 4)]]
    assert next(stages((old, 2), (new, 4), 4)) == [(old, 2), (new, 4)]
    assert list(stages((old, 2), (old, 3), 3)) == [[(old, 3)]]
    assert list(stages(None, (new, 3), 1)) == [[(new, 3)]]


@pytest.mark.parametrize(
    ("component", "field", "message"),
    [
        (
            {"copies": 5},
            "inference_component.copies",
            "expected 1 to 4, the bounds of the autoscaling, got 5",
        ),
        (
            {"autoscaling": {"min_copies": 3, "max_copies": 2, "invocations_per_minute": 1}},
            "inference_component.autoscaling.max_copies",
            "expected at least min_copies (3), got 2",
        ),
    ],
)
def test_copies_that_cannot_be_scaled_are_an_error(
    component: dict[str, Any], field: str, message: str
) -> None:
    scaled = {"max_copies": 4, "invocations_per_minute": 1}
    whole = {"memory_mib": 1024, "autoscaling": scaled, **component}
    assert problems(endpoint_name="all", inference_component=whole, update={})[field] == message


def test_scaled_copies_are_no_part_of_what_is_deployed() -> None:
    scaled = {"memory_mib": 1024, "autoscaling": {"max_copies": 4, "invocations_per_minute": 1}}
    steps = [
        calls(deployment(endpoint_name="all", update={}, inference_component={**scaled, **more}))
        for more in ({}, {"copies": 2})
    ]
    first, second = (each["deploy.model"].operation.request["ModelName"] for each in steps)
    assert first == second
    for call in steps[0].values():
        operation = call.operation
        assert not list(violations(operation.service, operation.name, operation.request))
    assert "RuntimeConfig" not in steps[0]["deploy.update_component"].operation.request
