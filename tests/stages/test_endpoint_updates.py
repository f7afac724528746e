"""What an update of an endpoint asks SageMaker for, and what is refused beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestration import Deployment, EndpointUpdate, Parameter, Pipeline, parameter
from orchestration.checks.requests import violations
from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Require, all_steps
from tests.guides import DEPLOYMENT, shown


def deployment(**fields: Any) -> Deployment:
    given: dict[str, Any] = {
        "name": "deploy",
        "model_data": "s3://models/one",
        "image": "image:1",
        "instance_type": "ml.m5.large",
        "instance_count": 4,
    }
    return Deployment(**{**given, **fields})


def problems(**fields: Any) -> dict[str, str]:
    return {each.field: each.message for each in deployment(**fields).check()}


def pipeline(stage: Deployment) -> Pipeline:
    return Pipeline(
        name="shop",
        parameters={"bucket": Parameter()},
        workspace=parameter("bucket"),
        stages=[stage],
    )


def calls(stage: Deployment) -> dict[str, Call]:
    graph = pipeline(stage).lower().graph
    return {step.name: step for step in all_steps(graph) if isinstance(step, Call)}


@pytest.mark.parametrize(
    ("update", "field", "message"),
    [
        (
            {"traffic": "canary"},
            "percent",
            "expected either percent or instances for canary",
        ),
        (
            {"traffic": "linear", "percent": 20, "instances": 1},
            "percent",
            "expected either percent or instances for linear",
        ),
        (
            {"traffic": "all_at_once", "percent": 10},
            "percent",
            "all traffic moves at once; remove it, or choose a canary",
        ),
        (
            {"traffic": "linear", "percent": 9, "baking_s": 10},
            "percent",
            "expected 10 to 50 % of the instances for linear, got 9 %",
        ),
        (
            {"traffic": "canary", "instances": 3},
            "instances",
            "expected 1 to 50 % of the instances for canary, got 75 %",
        ),
        (
            {"traffic": "rolling", "percent": 4, "baking_s": 10},
            "percent",
            "expected 5 to 50 % of the instances for rolling, got 4 %",
        ),
        (
            {"traffic": "rolling", "percent": 50, "termination_wait_s": 5},
            "termination_wait_s",
            "a rolling update keeps no old instances; remove",
        ),
        (
            {"traffic": "linear", "percent": 10, "baking_s": 360},
            "baking_s",
            "the update waits 3600 s in all, and may take 3600 s; bake for less, or raise "
            "timeout_s",
        ),
        (
            {"baking_s": 60, "alarms": {"latency_ms": 5, "periods": 2}},
            "baking_s",
            "the alarms look at 120 s, and the model is watched for 60 s; give at least 120",
        ),
        (
            {"baking_s": 600},
            "baking_s",
            "nothing is watched where all traffic moves at once without alarms; remove it",
        ),
        (
            {"alarms": {}},
            "alarms",
            "expected named alarms, errors_percent or latency_ms",
        ),
        (
            {"alarms": {"named": list("abcdefghij"), "latency_ms": 5}},
            "alarms",
            "11 alarms; the most is 10",
        ),
    ],
)
def test_what_sagemaker_refuses_is_an_error_beforehand(
    update: dict[str, Any], field: str, message: str
) -> None:
    assert problems(update=update) == {f"update.{field}": message}


@pytest.mark.parametrize("traffic", ["canary", "linear", "rolling"])
def test_one_instance_cannot_change_over_in_parts(traffic: str) -> None:
    update = {"traffic": traffic, "percent": 50}
    assert problems(update=update, instance_count=1) == {
        "update.traffic": f"{traffic} needs at least 2 instances, since at most half of them move "
        "first; got instance_count 1"
    }


@pytest.mark.parametrize(
    ("scaled", "update", "field", "message"),
    [
        (
            {"max_instances": 8},
            {"percent": 50},
            "traffic",
            "canary needs at least 2 instances, since at most half of them move first; got "
            "autoscaling.min_instances 1",
        ),
        (
            {"min_instances": 2, "max_instances": 8},
            {"instances": 2},
            "instances",
            "expected 1 to 50 % of the instances for canary, got 100 % of 2",
        ),
        (
            {
                "min_instances": 4,
                "max_instances": 8,
                "scheduled": {"night": {"cron": "0 22 * * *", "min_instances": 2}},
            },
            {"instances": 2},
            "instances",
            "expected 1 to 50 % of the instances for canary, got 100 % of 2",
        ),
        ({"min_instances": 2, "max_instances": 8}, {"instances": 1}, "", ""),
    ],
)
def test_an_update_suits_all_numbers_of_instances_that_the_load_may_lead_to(
    scaled: dict[str, Any], update: dict[str, Any], field: str, message: str
) -> None:
    autoscaling = {"invocations_per_minute": 60, **scaled}
    found = problems(update={"traffic": "canary", **update}, autoscaling=autoscaling)
    assert found == ({f"update.{field}": message} if field else {})


@pytest.mark.parametrize(
    ("update", "possible"),
    [
        ({"traffic": "canary", "percent": 10}, {2, 100, 1000}),
        ({"traffic": "linear", "instances": 2}, {4, 20}),
        ({"traffic": "rolling", "instances": 1}, {2, 4, 20}),
        # Moves of 900 s, of which three fit into an hour, and four do not.
        ({"traffic": "linear", "instances": 1, "baking_s": 900}, {2}),
        ({"traffic": "rolling", "instances": 7, "baking_s": 900}, {20}),
        ({"traffic": "linear", "instances": 2, "baking_s": 899, "termination_wait_s": 3}, {4}),
        ({"traffic": "linear", "instances": 2, "baking_s": 180, "termination_wait_s": 0}, {4, 20}),
        ({"traffic": "canary", "instances": 1, "baking_s": 1700}, {2, 4, 20, 100}),
    ],
)
def test_a_number_that_only_the_run_knows_is_required_to_have_parts(
    update: dict[str, Any], possible: set[int]
) -> None:
    stage = deployment(instance_count=parameter("machines"), update={"baking_s": 10, **update})
    graph = Pipeline(
        name="shop",
        parameters={"machines": Parameter(type="number")},
        workspace="s3://b/w",
        stages=[stage],
    ).lower().graph  # fmt: skip
    [required] = [step for step in all_steps(graph) if step.name == "deploy.parts"]
    assert isinstance(required, Require)
    assert required.error == "UpdateNotPossible"
    numbers = (1, 2, 4, 20, 100, 1000)
    allowed = {
        number
        for number in numbers
        if evaluate(required.condition, Values({}, {"machines": number}, "0123456789ab"))
    }
    assert allowed == possible | ({4, 20} if "percent" in update else set())


@pytest.mark.parametrize(
    "machines",
    [
        {"instance_type": "ml.inf1.xlarge"},
        {"fallbacks": ["ml.inf1.xlarge"]},
        {"variant": "new", "variants": {"old": {"instance_type": "ml.inf1.2xlarge"}}},
    ],
)
def test_nothing_is_watched_where_sagemaker_ignores_it(machines: dict[str, Any]) -> None:
    assert problems(**machines, update={"trial": [{"request": 1}]}) == {}
    watched = {"traffic": "canary", "percent": 50, "alarms": {"latency_ms": 5}}
    told = problems(**machines, update=watched)
    assert set(told) == {"update.traffic", "update.alarms"}
    assert "SageMaker updates Inf1 instances all at once" in told["update.alarms"]


def test_a_place_that_is_none_is_told_once() -> None:
    trial = [{"request": 1, "expected": {"a[*]": 1}}]
    extra = {"CreateModel": {"ExecutionRoleArn": "r"}}
    found = [
        each.field for each in deployment(update={"trial": trial}, extra_request=extra).check()
    ]
    assert found == ["update.trial.cases[0].expected", "extra_request"]


def test_moves_that_no_number_of_instances_has_time_for_are_refused_beforehand() -> None:
    update = {"traffic": "linear", "instances": 1, "baking_s": 600}
    machines = {"instance_count": parameter("machines"), "update": update}
    assert problems(**machines, timeout_s=1800) == {}
    assert set(problems(**machines, timeout_s=1200)) == {"update.baking_s"}


@pytest.mark.parametrize(
    "update",
    [
        {"percent": 51},
        {"traffic": "sideways"},
        {"baking_s": 3601},
        {"alarms": {"period_s": 30, "latency_ms": 1}},
        {"alarms": {"errors_percent": 100}},
        {"while_busy": "hope"},
    ],
)
def test_values_out_of_bounds_are_refused(update: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EndpointUpdate(**update)


@pytest.mark.parametrize(
    ("update", "policy"),
    [
        (
            {"traffic": "canary", "percent": 10, "baking_s": 60, "termination_wait_s": 30},
            {
                "BlueGreenUpdatePolicy": {
                    "TrafficRoutingConfiguration": {
                        "Type": "CANARY",
                        "WaitIntervalInSeconds": 60,
                        "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 10},
                    },
                    "TerminationWaitInSeconds": 30,
                    "MaximumExecutionTimeoutInSeconds": 3600,
                }
            },
        ),
        (
            {"traffic": "rolling", "instances": 1},
            {
                "RollingUpdatePolicy": {
                    "MaximumBatchSize": {"Type": "INSTANCE_COUNT", "Value": 1},
                    "WaitIntervalInSeconds": 300,
                    "MaximumExecutionTimeoutInSeconds": 3600,
                }
            },
        ),
    ],
)
def test_an_update_says_how_traffic_moves(update: dict[str, Any], policy: dict[str, Any]) -> None:
    request = calls(deployment(update=update))["deploy.update"].operation.request
    assert request["DeploymentConfig"] == policy


@pytest.mark.parametrize("update", [{}, {"keep": 3}, {"baking_s": 0, "trial": [{"request": 1}]}])
def test_an_update_all_at_once_that_nothing_watches_does_not_wait(update: dict[str, Any]) -> None:
    assert problems(update=update, timeout_s=60) == {}
    request = calls(deployment(update=update))["deploy.update"].operation.request
    assert "DeploymentConfig" not in request


def test_an_update_is_never_none() -> None:
    with pytest.raises(ValidationError, match="update"):
        deployment(update=None)


def test_alarms_are_made_for_the_new_configuration_and_roll_the_update_back() -> None:
    alarms = {"named": ["orders"], "errors_percent": 1, "latency_ms": 250, "statistic": "p99"}
    steps = calls(deployment(update={"alarms": alarms}))
    latency = dict(steps["deploy.alarm_latency"].operation.request)
    assert (latency["MetricName"], latency["ExtendedStatistic"]) == ("ModelLatency", "p99")
    assert latency["Threshold"] == 250_000
    errors = dict(steps["deploy.alarm_5xx"].operation.request)
    assert (errors["MetricName"], errors["Threshold"]) == ("Invocation5XXErrors", 0.01)
    config: Any = steps["deploy.update"].operation.request["DeploymentConfig"]
    names = [each["AlarmName"] for each in config["AutoRollbackConfiguration"]["Alarms"]]
    assert names == ["orders", errors["AlarmName"], latency["AlarmName"]]


def test_every_request_of_an_update_is_well_formed() -> None:
    alarms = {"named": ["orders"], "errors_percent": 1, "latency_ms": 250}
    trial = [{"request": {"a": 1}, "expected": {"b[0].c": 1, "d": "x", "e": True}}]
    update = {
        "traffic": "linear",
        "percent": 25,
        "alarms": alarms,
        "while_busy": "refuse",
        "trial": trial,
        "keep": 2,
    }
    for call in calls(deployment(update=update)).values():
        operation = call.operation
        assert not list(violations(operation.service, operation.name, operation.request))


def name_of(**fields: Any) -> Any:
    return calls(deployment(**fields))["deploy.model"].operation.request["ModelName"]


def test_names_follow_from_what_is_deployed() -> None:
    assert name_of() == name_of(tags={"team": "search"})
    others = [
        name_of(),
        name_of(image="image:2"),
        name_of(instance_count=5),
        name_of(environment={"MODE": "fast"}),
        name_of(enable_network_isolation=True),
        name_of(model_data=parameter("bucket")),
        name_of(extra_request={"CreateEndpointConfig": {"KmsKeyId": "key"}}),
    ]
    assert all(a != b for i, a in enumerate(others) for b in others[:i])


def test_the_guide_s_pipeline_is_a_canary_with_three_alarms(tmp_path: Path) -> None:
    [text, *_] = shown(DEPLOYMENT, "yaml")
    (tmp_path / "shop.yaml").write_text(text, encoding="utf-8")
    steps = list(all_steps(Pipeline.load(tmp_path / "shop.yaml").lower().graph))
    (update,) = [s for s in steps if isinstance(s, Call) and s.name == "deploy.update"]
    config: Any = update.operation.request["DeploymentConfig"]
    routing = config["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    assert routing["CanarySize"] == {"Type": "CAPACITY_PERCENT", "Value": 25}
    assert len(config["AutoRollbackConfiguration"]["Alarms"]) == 3


def test_models_are_kept_only_for_an_endpoint_whose_name_is_known() -> None:
    assert problems(update={"keep": 3}, endpoint_name=parameter("bucket")) == {
        "update.keep": "endpoints whose names only a run knows share their models' names, and "
        "one's could be deleted for another; write the endpoint_name out"
    }
    assert problems(update={"keep": 3}, endpoint_name="shop") == {}
    assert name_of(endpoint_name="shop") != name_of(endpoint_name="other")


def alarms_of(**fields: Any) -> list[tuple[Any, Any]]:
    """Return the alarm that a stage makes, and what its update names, for each of two runs."""
    update = {"traffic": "rolling", "instances": 1, "alarms": {"errors_percent": 5}}
    steps = calls(deployment(update=update, instance_count=2, **fields))
    made = steps["deploy.alarm_5xx"].operation.request["AlarmName"]
    configs: list[Any] = [
        step.operation.request["DeploymentConfig"]
        for step in steps.values()
        if "DeploymentConfig" in step.operation.request
    ]
    (named,) = configs[0]["AutoRollbackConfiguration"]["Alarms"]
    found = {"fingerprint": "etag", "variant": "main", "config": ""}
    results = {name: found for name in steps}
    values = [
        Values(results, {"bucket": bucket, "role": "role"}, "0123456789ab")
        for bucket in ("one", "two")
    ]
    return [(evaluate(made, each), evaluate(named["AlarmName"], each)) for each in values]


@pytest.mark.parametrize(
    "fields",
    [
        {"endpoint_name": parameter("bucket")},
        {
            "endpoint_name": "all",
            "inference_component": {
                "memory_mib": 1024,
                "copies": 2,
                "name": parameter("bucket"),
            },
        },
    ],
)
def test_what_only_a_run_names_shares_no_alarm(fields: dict[str, Any]) -> None:
    (one, watched), (two, also_watched) = alarms_of(**fields)
    assert (one, two) == (watched, also_watched)
    assert one != two
    assert one.startswith("shop-deploy-")
    assert one.endswith("-5xx")


def test_a_configuration_is_deleted_with_its_alarms_and_its_model() -> None:
    update = {"keep": 3, "alarms": {"errors_percent": 1, "latency_ms": 250}}
    names = [name for name in calls(deployment(update=update)) if ".delete_" in name]
    assert names == [
        "deploy.delete_5xx",
        "deploy.delete_latency",
        "deploy.delete_endpointconfig",
        "deploy.delete_model",
    ]


def test_parts_that_nothing_watches_are_warned_about() -> None:
    parts = {"traffic": "canary", "percent": 10}
    (warning,) = deployment(update=parts).warnings()
    assert warning.field == "update.alarms"
    assert list(deployment(update={**parts, "alarms": {"latency_ms": 5}}).warnings()) == []
