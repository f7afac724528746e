"""Models on an endpoint that they share: made, updated, and kept where that fails."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from orchestration.local import Fault
from orchestration.local.run.keeping import logged
from tests.conformance.sites import wait
from tests.conformance.test_updates import BACKENDS, IMAGE, ROLE, Shop, aws, count, put, shop

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
LARGER = {"copies": 3, "memory_mib": 4000}
ROLLING = {"traffic": "rolling", "instances": 1, "baking_s": 60}
CASES = [{"request": 1, "expected": {"name": "two"}}]
TRIED = {**ROLLING, "trial": CASES}
CHECKED = {**ROLLING, "trial": {"cases": CASES, "after": True}}


def ask(shop: Shop, component: str) -> str:
    runtime = shop.aws.client("sagemaker-runtime")
    answer = runtime.invoke_endpoint(
        EndpointName=shop.name, Body=b"1", InferenceComponentName=component
    )
    return str(json.loads(answer["Body"].read())["name"])


def described(shop: Shop, name: str) -> tuple[Any, Any]:
    """Return what a component serves, and in how many copies."""
    found = shop.client.describe_inference_component(InferenceComponentName=name)
    return found["Specification"], found["RuntimeConfig"]


def delete(shop: Shop, *names: str) -> None:
    for name in names:
        shop.client.delete_inference_component(InferenceComponentName=name)
    listed = shop.client.list_inference_components
    wait(lambda: not {each["InferenceComponentName"] for each in listed()[_LISTED]} & {*names})


def instances(shop: Shop) -> int:
    return int(shop.describe()["ProductionVariants"][0]["CurrentInstanceCount"])


def test_a_component_is_made_with_its_endpoint_updated_on_it_and_goes_back(shop: Shop) -> None:
    cats = {**COMPONENT["inference_component"], "name": f"{shop.name}-cats"}
    component = {**COMPONENT, "inference_component": cats}
    first: Any = shop.deploy("one", ROLLING, **component)
    assert (first.state, first.error, first.cause) == ("succeeded", None, None)
    name = first.outputs["deploy"]["inference_component"]
    assert list(logged(first)) == [("deploy", shop.name), ("deploy", name)]
    assert first.outputs["deploy"]["answer"] == {"name": "one"}
    assert (ask(shop, name), instances(shop)) == ("one", 2)
    update = TRIED if shop.on == "direct" else ROLLING
    left = _others(shop, name)
    second: Any = shop.deploy("two", {**update, "keep": 2}, **component)
    assert (second.state, second.error, second.cause) == ("succeeded", None, None)
    models = {
        each["ModelName"] for each in shop.client.list_models(NameContains=shop.name)["Models"]
    }
    assert models == {*left, *(each.outputs["deploy"]["model_name"] for each in (first, second))}
    assert (second.outputs["deploy"]["answer"], ask(shop, name)) == ({"name": "two"}, "two")
    sent = ("CreateEndpoint", "CreateInferenceComponent", "UpdateInferenceComponent")
    assert [count(first, each) for each in sent] == [1, 1, 0]
    # The second one's endpoint is that of its trial.
    assert [count(second, each) for each in sent] == [int(update is TRIED), 0, 1]
    _rolled_back(shop, name, component)
    _goes_back(shop, name, {**component, "inference_component": {**cats, **LARGER}})
    listed = shop.client.list_endpoints(NameContains=shop.name)["Endpoints"]
    assert [each["EndpointName"] for each in listed] == [shop.name]
    delete(shop, name)


def _others(shop: Shop, name: str) -> set[str]:
    """Make models that the stage could have left, and return those that it has to leave."""
    place = hashlib.sha256(f"{shop.name}/{name}".encode()).hexdigest()[:4]
    prefix = f"{shop.name}-deploy-{place}-"
    others = [f"my-{prefix}0", *(f"{prefix}{number}" for number in range(3))]
    for each in others:
        source = {"S3Uri": "s3://models/one/", "S3DataType": "S3Prefix", "CompressionType": "None"}
        shop.client.create_model(
            ModelName=each,
            PrimaryContainer={"Image": IMAGE, "ModelDataSource": {"S3DataSource": source}},
            ExecutionRoleArn=ROLE,
        )
    return {others[0], others[-1]}


def _rolled_back(shop: Shop, name: str, component: dict[str, Any]) -> None:
    """Deploy a model that answers nothing, while the component is asked."""
    before = described(shop, name)
    alarms = {"errors_percent": 20}
    with shop.asked(InferenceComponentName=name):
        report = shop.deploy("bad", {**ROLLING, "baking_s": 600, "alarms": alarms}, **component)
    assert (report.state, report.error) == ("failed", "EndpointRolledBack")
    told = (
        r"stage deploy: it serves (.+) instead of (.+): SageMaker gives no reason; "
        r"alarms that went off: \[\2-5xx\]"
    )
    matched = re.fullmatch(told, str(report.cause))
    assert matched is not None, report.cause
    assert matched[1] == before[0]["ModelName"]
    assert (described(shop, name), ask(shop, name)) == (before, "two")


def _goes_back(shop: Shop, name: str, component: dict[str, Any]) -> None:
    """Deploy a model that answers rightly before its update alone, with other needs and copies."""
    before = described(shop, name)
    put(shop.aws, f"{shop.name}-turns", "turns")
    run_id = f"{shop.name}-goes-back"

    def checked(answers: str) -> None:
        report = shop.deploy(f"{shop.name}-turns", CHECKED, run_id, **component)
        assert (report.state, report.error) == ("failed", "CheckFailed")
        assert ask(shop, name) == answers
        told = "case 1; expected two as name, got turned; the component goes back to what it served"
        assert f"{told} before: [" in str(report.cause)

    if shop.on == "direct":
        # A further attempt at the run still knows what served before.
        back: dict[str, Any] = {"matching": {"RuntimeConfig": {"CopyCount": 2}}, "status": 403}
        denied = ("sagemaker", "UpdateInferenceComponent", "AccessDeniedException")
        shop.aws.inject(Fault(*denied, **back))
        checked("turned")
    checked("two")
    assert described(shop, name) == before
    kept = shop.aws.client("s3").list_objects_v2(Bucket="models", Prefix=f"runs/{run_id}/")
    assert not [each["Key"] for each in kept.get("Contents", []) if "before" in each["Key"]]


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
    assert untried.stages[-1].log[-1] == "does not load"
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


def test_copies_follow_the_load_and_an_update_keeps_them(shop: Shop) -> None:
    scaled = {"min_copies": 1, "max_copies": 3, "invocations_per_minute": 100}
    name = f"{shop.name}-scaled"
    component = {**COMPONENT["inference_component"], "name": name, "autoscaling": scaled}
    whole = {**COMPONENT, "inference_component": {**component, "copies": 1}}
    first = shop.deploy("one", {}, **whole)
    assert (first.state, first.error, first.cause) == ("succeeded", None, None)
    shop.client.update_inference_component_runtime_config(
        InferenceComponentName=name, DesiredRuntimeConfig={"CopyCount": 2}
    )
    busy = ("sagemaker", "UpdateInferenceComponent", "ValidationException")
    scales = f'Cannot update in-progress inference component "{name}" (Updating).'
    shop.aws.inject(Fault(*busy, scales, times=3))
    second: Any = shop.deploy("two", {}, **whole)
    assert (second.state, second.error, second.cause) == ("succeeded", None, None)
    assert count(second, "UpdateInferenceComponent") == 4
    assert (ask(shop, name), described(shop, name)[1]["DesiredCopyCount"]) == ("two", 2)
    if shop.on == "direct":
        put(shop.aws, f"{shop.name}-turns", "turns")
        model = {"Specification": {"ModelName": second.outputs["deploy"]["model_name"]}}
        shop.aws.inject(Fault(*busy, scales, matching=model))
        checked = {"trial": {"cases": CASES, "after": True}}
        third: Any = shop.deploy(f"{shop.name}-turns", checked, **whole)
        assert (third.state, third.error) == ("failed", "CheckFailed")
        assert (ask(shop, name), count(third, "UpdateInferenceComponent")) == ("two", 3)
    of = {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
    }
    client, place = shop.aws.client("application-autoscaling"), f"inference-component/{name}"
    [target] = client.describe_scalable_targets(**of, ResourceIds=[place])["ScalableTargets"]
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 3)
    [policy] = client.describe_scaling_policies(**of, ResourceId=place)["ScalingPolicies"]
    followed = policy["TargetTrackingScalingPolicyConfiguration"]
    assert followed["PredefinedMetricSpecification"] == {
        "PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"
    }
    # What is registered again keeps the bounds that are not given.
    client.register_scalable_target(**of, ResourceId=place, MaxCapacity=4)
    [target] = client.describe_scalable_targets(**of, ResourceIds=[place])["ScalableTargets"]
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 4)
    delete(shop, name)
    assert not client.describe_scalable_targets(**of, ResourceIds=[place])["ScalableTargets"]
    assert not client.describe_scaling_policies(**of, ResourceId=place)["ScalingPolicies"]


def test_a_component_that_someone_else_updates_meanwhile_is_theirs(shop: Shop) -> None:
    name = f"own-{shop.on}"
    component = {**COMPONENT["inference_component"], "name": name}
    given: dict[str, Any] = {**COMPONENT, "inference_component": component}
    first = shop.deploy("one", {}, **given)
    assert (first.state, first.cause) == ("succeeded", None)
    theirs = {**described(shop, name)[0], "ModelName": shop.make(f"{shop.name}-theirs", "one", "m")}
    specification = {
        key: theirs[key] for key in ("ModelName", "ComputeResourceRequirements") if key in theirs
    }
    request = {"InferenceComponentName": name, "Specification": specification}
    meanwhile = {"request": {"someone_else": "update_inference_component", "request": request}}
    own = {"InferenceComponentName": name, "RuntimeConfig": None}
    message = "Cannot update in-progress inference component"
    shop.aws.inject(
        Fault("sagemaker", "UpdateInferenceComponent", "ValidationException", message, matching=own)
    )
    report = shop.deploy("two", {"trial": [meanwhile]}, **given)
    assert (report.state, report.error) == ("failed", "EndpointTaken")
    assert report.cause is not None
    assert report.cause.startswith(
        f"stage deploy: inference component {name} serves {shop.name}-theirs, which "
    )
    assert ask(shop, name) == "one"
    delete(shop, name)
