"""Variants share requests by weight on every driver, and keep what they serve."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.conformance.sites import wait
from tests.conformance.test_updates import BACKENDS, CANARY, DOOMED, Shop, aws, count, shop

pytestmark = pytest.mark.slow
__all__ = ["aws", "shop"]

AB: dict[str, Any] = {"variant": "new", "variants": {"main": {"weight": 3}}}


def answers(shop: Shop, times: int, **asked: Any) -> Counter[str]:
    runtime = shop.aws.client("sagemaker-runtime")
    sent = [
        runtime.invoke_endpoint(EndpointName=shop.name, Body=b"1", **asked) for _ in range(times)
    ]
    return Counter(json.loads(answer["Body"].read())["name"] for answer in sent)


def test_a_new_model_gets_its_share_beside_the_one_that_serves(shop: Shop) -> None:
    before = shop.serve("one")
    refused = shop.deploy("two", CANARY, **AB)
    assert (refused.state, refused.error) == ("failed", "VariantsDiffer")
    assert "has the variants [main], and the stage main, new" in str(refused.cause)
    assert (count(refused, "CreateModel"), shop.describe()["EndpointConfigName"]) == (0, before)
    report = shop.deploy("two", {}, **AB, smoke_test={"request": 1})
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert outputs["deploy"]["answer"] == {"name": "two"}
    assert answers(shop, 8) == {"one": 6, "two": 2}
    assert answers(shop, 2, TargetVariant="new") == {"two": 2}


def test_a_kept_variant_that_the_endpoint_lacks_is_not_made_of_the_new_model(shop: Shop) -> None:
    before = shop.serve("one")
    mistaken: dict[str, Any] = {"variant": "new", "variants": {"champion": {"weight": 3}}}
    refused = shop.deploy("two", {"while_busy": "refuse"}, **mistaken)
    assert (refused.state, refused.error) == ("failed", "VariantMissing")
    assert "has the variants [main], and the stage keeps champion" in str(refused.cause)
    assert (count(refused, "CreateModel"), shop.describe()["EndpointConfigName"]) == (0, before)
    report = shop.deploy("two", {"while_busy": "refuse"}, **AB)
    assert (report.state, report.cause) == ("succeeded", None)
    assert answers(shop, 4) == {"one": 3, "two": 1}


def test_a_shadow_gets_copies_answers_nobody_and_is_promoted(shop: Shop) -> None:
    shop.serve("one")
    place = f"shadowed-{shop.on}"
    copied: dict[str, Any] = {
        "variant": "candidate",
        "weight": 0.5,
        "shadow": True,
        "variants": {"main": {}},
        "data_capture": {"uri": f"s3://models/{place}"},
    }
    trial = {"trial": [{"request": 1, "expected": {"name": "two"}}]}
    report = shop.deploy("two", trial if shop.on == "direct" else {}, **copied)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    assert answers(shop, 10) == {"one": 10}
    assert captured(shop, f"{place}/{shop.name}/main/", 10) == {"one": 10}
    assert captured(shop, f"{place}/{shop.name}/candidate/", 5) == {"two": 5}
    [shadow] = shop.describe()["ShadowProductionVariants"]
    assert (shadow["VariantName"], shadow["CurrentWeight"]) == ("candidate", 0.5)
    if shop.on != "direct":
        return
    assert alarmed(shop, "candidate", above=4) == ["ALARM"]
    assert alarmed(shop, "candidate", above=5) == ["OK"]
    again = shop.deploy("two", {}, **copied)
    assert (again.outputs, count(again, "UpdateEndpoint")) == (report.outputs, 0)
    promoted = shop.deploy("two", CANARY)
    assert (promoted.state, promoted.cause) == ("succeeded", None)
    assert answers(shop, 2) == {"two": 2}
    assert "ShadowProductionVariants" not in shop.describe()


def captured(shop: Shop, prefix: str, total: int) -> Counter[str]:
    """Wait for a number of captured requests, and return what answered them."""
    s3 = shop.aws.client("s3")

    def listed() -> list[dict[str, Any]]:
        found = s3.list_objects_v2(Bucket="models", Prefix=prefix)
        return list(found.get("Contents", []))

    wait(lambda: len(listed()) >= total)
    lines = [s3.get_object(Bucket="models", Key=each["Key"])["Body"].read() for each in listed()]
    outputs = [json.loads(line)["captureData"]["endpointOutput"]["data"] for line in lines]
    return Counter(json.loads(output)["name"] for output in outputs)


def alarmed(shop: Shop, variant: str, *, above: int) -> list[str]:
    """Return the state of an alarm on the invocations of a variant."""
    watch, name = shop.aws.client("cloudwatch"), f"{shop.name}-{variant}-{above}"
    dimensions = {"EndpointName": shop.name, "VariantName": variant}
    watch.put_metric_alarm(
        AlarmName=name,
        Namespace="AWS/SageMaker",
        MetricName="Invocations",
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        Statistic="Sum",
        Period=36_000,
        EvaluationPeriods=1,
        Threshold=above,
        ComparisonOperator="GreaterThanThreshold",
    )
    listed = watch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return [each["StateValue"] for each in listed]


@pytest.mark.parametrize("shop", BACKENDS[:1], indirect=True)
def test_the_others_keep_their_models_over_updates_and_rollbacks(shop: Shop) -> None:
    first = shop.deploy("one", {}, **AB)
    assert (first.state, first.cause) == ("succeeded", None)
    # A new endpoint has the new model in each of its variants.
    assert answers(shop, 4) == {"one": 4}
    again = shop.deploy("one", {}, **AB)
    assert (count(again, "UpdateEndpoint"), again.outputs) == (0, first.outputs)
    second = shop.deploy("two", CANARY, **AB)
    assert (second.state, second.cause) == ("succeeded", None)
    assert answers(shop, 4) == {"one": 3, "two": 1}
    with shop.asked():
        rolled_back = shop.deploy("bad", DOOMED, **AB)
    assert (rolled_back.state, rolled_back.error) == ("failed", "EndpointRolledBack")
    assert answers(shop, 4) == {"one": 3, "two": 1}
    even = shop.deploy("two", {}, **{**AB, "weight": 3})
    assert (even.state, answers(shop, 4)) == ("succeeded", {"one": 2, "two": 2})


@pytest.mark.thorough
@pytest.mark.parametrize("shop", BACKENDS[:1], indirect=True)
def test_a_run_that_refuses_while_busy_knows_the_update_that_it_asked_for_itself(
    shop: Shop,
) -> None:
    first: Any = shop.deploy("one", {}, **AB).outputs
    deployed = shop.deploy("two", {}, **AB)
    second: Any = deployed.outputs
    served, asked = (each["deploy"]["endpoint_config_name"] for each in (first, second))
    shop.client.update_endpoint(EndpointName=shop.name, EndpointConfigName=served)
    wait(lambda: shop.describe()["EndpointStatus"] == "InService")
    # As an earlier attempt of the run has left it: it began the update, which bakes for seconds.
    routing = {
        "Type": "CANARY",
        "WaitIntervalInSeconds": 600,
        "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1},
    }
    shop.client.update_endpoint(
        EndpointName=shop.name,
        EndpointConfigName=asked,
        DeploymentConfig={"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing}},
    )
    report = shop.deploy("two", {"while_busy": "refuse"}, **AB)
    assert (report.state, report.cause, report.outputs) == ("succeeded", None, deployed.outputs)
    assert count(report, "UpdateEndpoint") == 0
