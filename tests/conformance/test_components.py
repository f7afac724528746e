"""Models on an endpoint that they share: made, updated, and kept where that fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.local.run.keeping import logged
from tests.conformance.sites import wait
from tests.conformance.test_updates import BACKENDS, ROLE, Shop, aws, count, put, shop

pytestmark = pytest.mark.slow
__all__ = ["aws", "shop"]

_LISTED = "InferenceComponents"
MANAGED = {"max_instances": 4}
COMPONENT: dict[str, Any] = {
    # An instance of 8 GiB has room for one copy.
    "inference_component": {"copies": 2, "memory_mib": 5000, "managed_instances": MANAGED},
    "instance_count": 1,
    "smoke_test": {"request": 1},
}
ROLLING = {"traffic": "rolling", "instances": 1, "baking_s": 60}
TRIED = {**ROLLING, "trial": [{"request": 1, "expected": {"name": "two"}}]}


def ask(shop: Shop, component: str) -> str:
    runtime = shop.aws.client("sagemaker-runtime")
    answer = runtime.invoke_endpoint(
        EndpointName=shop.name, Body=b"1", InferenceComponentName=component
    )
    return str(json.loads(answer["Body"].read())["name"])


def delete(shop: Shop, *names: str) -> None:
    for name in names:
        shop.client.delete_inference_component(InferenceComponentName=name)
    listed = shop.client.list_inference_components
    wait(lambda: not {each["InferenceComponentName"] for each in listed()[_LISTED]} & {*names})


def instances(shop: Shop) -> int:
    return int(shop.describe()["ProductionVariants"][0]["CurrentInstanceCount"])


def test_a_component_is_made_with_its_endpoint_and_updated_on_it(shop: Shop) -> None:
    first: Any = shop.deploy("one", ROLLING, **COMPONENT)
    assert (first.state, first.error, first.cause) == ("succeeded", None, None)
    name = first.outputs["deploy"]["inference_component"]
    assert list(logged(first)) == [("deploy", shop.name), ("deploy", name)]
    assert first.outputs["deploy"]["answer"] == {"name": "one"}
    assert (ask(shop, name), instances(shop)) == ("one", 2)
    update = TRIED if shop.on == "direct" else ROLLING
    second: Any = shop.deploy("two", update, **COMPONENT)
    assert (second.state, second.error, second.cause) == ("succeeded", None, None)
    assert (second.outputs["deploy"]["answer"], ask(shop, name)) == ({"name": "two"}, "two")
    sent = ("CreateEndpoint", "CreateInferenceComponent", "UpdateInferenceComponent")
    assert [count(first, each) for each in sent] == [1, 1, 0]
    # The second one's endpoint is that of its trial.
    assert [count(second, each) for each in sent] == [int(update is TRIED), 0, 1]
    listed = shop.client.list_endpoints(NameContains=shop.name)["Endpoints"]
    assert [each["EndpointName"] for each in listed] == [shop.name]
    delete(shop, name)


def broken(shop: Shop) -> str:
    """Keep a model that does not start, and return its name."""
    put(shop.aws, "broken", "broken")
    shop.aws.client("s3").put_object(
        Bucket="models", Key="broken/code/inference.py", Body=b"raise SystemExit('does not load')"
    )
    return "broken"


@pytest.mark.parametrize("shop", BACKENDS[:1], indirect=True)
def test_an_endpoint_of_others_is_used_as_it_is_and_none_made_for_a_trial_that_fails(
    shop: Shop,
) -> None:
    shop.name = "others"
    untried: Any = shop.deploy(broken(shop), {"trial": [{"request": 1}]}, **COMPONENT)
    assert (untried.state, untried.error) == ("failed", "TrialFailed")
    assert not shop.client.list_endpoints(NameContains=shop.name)["Endpoints"]
    variant = {"VariantName": "AllTraffic", "InstanceType": "ml.m5.large"}
    shop.client.create_endpoint_config(
        EndpointConfigName="theirs",
        ExecutionRoleArn=ROLE,
        ProductionVariants=[{**variant, "InitialInstanceCount": 2}],
    )
    shop.client.create_endpoint(EndpointName=shop.name, EndpointConfigName="theirs")
    made: Any = shop.deploy("one", {}, **COMPONENT)
    assert (made.state, made.error, made.cause) == ("succeeded", None, None)
    assert made.outputs["deploy"]["endpoint_config_name"] == "theirs"
    assert count(made, "CreateEndpointConfig") == 0
    name = made.outputs["deploy"]["inference_component"]
    # What an attempt that was interrupted leaves: a component of the same model that failed.
    delete(shop, name)
    needs = {"MinMemoryRequiredInMb": 99_000}
    shop.client.create_inference_component(
        InferenceComponentName=name,
        EndpointName=shop.name,
        Specification={
            "ModelName": made.outputs["deploy"]["model_name"],
            "ComputeResourceRequirements": needs,
        },
        RuntimeConfig={"CopyCount": 1},
    )
    again: Any = shop.deploy("one", {}, **COMPONENT)
    assert (again.state, again.error) == ("failed", "ComponentFailed")
    assert [count(again, f"{each}InferenceComponent") for each in ("Create", "Delete")] == [0, 1]
    # One that is being deleted is waited for, and made anew.
    anew: Any = shop.deploy("one", {}, **COMPONENT)
    assert (anew.state, anew.error, anew.cause) == ("succeeded", None, None)
    assert count(anew, "CreateInferenceComponent") == 1
    assert anew.outputs["deploy"]["answer"] == {"name": "one"}
    delete(shop, name)


@pytest.mark.parametrize("shop", BACKENDS[:1], indirect=True)
def test_what_fails_leaves_the_model_that_served_and_nothing_of_its_own(shop: Shop) -> None:
    small = {**COMPONENT, "inference_component": {"memory_mib": 1024, "name": "small"}}
    first: Any = shop.deploy("one", {}, **COMPONENT)
    name = first.outputs["deploy"]["inference_component"]
    beside = shop.deploy("two", {}, **small)
    assert (first.state, beside.state, beside.cause) == ("succeeded", "succeeded", None)
    rolled_back = shop.deploy(broken(shop), {}, **COMPONENT)
    assert "does not load" in shop.aws.logs(name)
    assert (rolled_back.state, rolled_back.error) == ("failed", "EndpointRolledBack")
    assert (ask(shop, name), ask(shop, "small")) == ("one", "two")
    again = shop.deploy("one", {}, **COMPONENT)
    assert (again.outputs, count(again, "UpdateInferenceComponent")) == (first.outputs, 0)
    needs = {"memory_mib": 5000, "copies": 3, "name": "large"}
    large = shop.deploy("one", {}, **{**COMPONENT, "inference_component": needs})
    assert (large.state, large.error) == ("failed", "ComponentFailed")
    told = f"have no room for the copies.; it is being deleted, and endpoint {shop.name} stays"
    assert told in str(large.cause)
    delete(shop, name, "small")
    # It is gone, too, and its copies with it.
    wait(lambda: not shop.client.list_inference_components(EndpointNameEquals=shop.name)[_LISTED])
    assert instances(shop) == 1
