"""What a deployment's model runs on, and what is kept of its requests."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from pydantic import ValidationError

from orchestration import Deployment
from orchestration.checks.requests import violations
from orchestration.expressions import Result, evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import all_steps
from orchestration.stages.stage import SAMPLE
from tests.stages.test_endpoint_updates import calls, deployment, pipeline, problems

SCALED = {"max_instances": 4, "invocations_per_minute": 100}
SERVERLESS: dict[str, Any] = {"instance_type": None, "instance_count": 1, "serverless": {}}


def config(stage: Deployment) -> dict[str, Any]:
    request: Any = calls(stage)["deploy.config"].operation.request
    return dict(request)


def test_a_serverless_endpoint_has_no_instances_anywhere() -> None:
    serverless = {"memory_mb": 4096, "max_concurrency": 3, "provisioned_concurrency": 2}
    update = {"trial": {"cases": [{"request": 1}], "after": True}}
    stage = deployment(**{**SERVERLESS, "serverless": serverless, "update": update})
    steps = calls(stage)
    operations: list[Any] = [step.operation for step in steps.values()]
    variants = [
        each.request["ProductionVariants"][0]
        for each in operations
        if each.name == "CreateEndpointConfig"
    ]
    wanted = {"MemorySizeInMB": 4096, "MaxConcurrency": 3, "ProvisionedConcurrency": 2}
    assert [each["ServerlessConfig"] for each in variants] == [wanted] * 3
    assert not any("InstanceType" in each for each in variants)
    assert "DeploymentConfig" not in steps["deploy.update"].operation.request


def test_a_model_and_that_of_its_trial_have_the_network_of_the_stage() -> None:
    vpc = {"subnets": ["subnet-1"], "security_groups": ["sg-1"]}
    update = {"trial": [{"request": 1}]}
    made = calls(deployment(vpc=vpc, enable_network_isolation=True, update=update))
    model = made["deploy.model"].operation.request
    assert model["VpcConfig"] == {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
    assert model["EnableNetworkIsolation"] is True
    [tried] = cast(Any, made["deploy.trial_config"].operation.request["ProductionVariants"])
    assert tried["ModelName"] == model["ModelName"]


def test_captured_data_is_kept_as_text_where_it_is() -> None:
    capture = {"uri": "s3://b/captured", "percent": 20, "capture": "input", "kms_key": "key"}
    made = config(deployment(data_capture=capture))["DataCaptureConfig"]
    assert (made["InitialSamplingPercentage"], made["KmsKeyId"]) == (20, "key")
    assert made["CaptureOptions"] == [{"CaptureMode": "Input"}]
    assert "application/json" in made["CaptureContentTypeHeader"]["JsonContentTypes"]


@pytest.mark.parametrize("update", [{}, {"alarms": {"latency_ms": 5}}])
def test_scaling_follows_the_load_and_an_update_keeps_its_instances(update: Any) -> None:
    steps = calls(deployment(autoscaling={**SCALED, "min_instances": 2}, update=update))
    bounds = steps["deploy.scaling"].operation.request
    assert (bounds["MinCapacity"], bounds["MaxCapacity"]) == (2, 4)
    policy: Any = steps["deploy.scaling_policy"].operation.request
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 100
    assert "RetainAllVariantProperties" in steps["deploy.update"].operation.request


def test_who_scales_may_do_what_scaling_does_in_its_name() -> None:
    workflow = pipeline(deployment(autoscaling=SCALED, endpoint_name="shop")).lower()
    actions = {action for each in workflow.permissions["deploy"] for action in each.actions}
    assert {"iam:CreateServiceLinkedRole", "cloudwatch:PutMetricAlarm"} <= actions


MORNING = {"cron": "0 7 * * MON-FRI", "timezone": "Europe/Berlin", "min_instances": 3}


def test_bounds_change_at_certain_times() -> None:
    scaled = {"max_instances": 4, "scheduled": {"morning": MORNING, "night": {"cron": "0 0 * * *"}}}
    steps = calls(deployment(autoscaling=scaled, endpoint_name="shop"))
    action: Any = steps["deploy.scheduled_morning"].operation.request
    assert (action["Schedule"], action["Timezone"]) == ("cron(0 7 ? * MON-FRI *)", "Europe/Berlin")
    assert action["ScalableTargetAction"] == {"MinCapacity": 3, "MaxCapacity": 4}
    night: Any = steps["deploy.scheduled_night"].operation.request
    assert night["ScalableTargetAction"] == {"MinCapacity": 1, "MaxCapacity": 4}
    assert "deploy.scaling_policy" not in steps


def test_what_is_scaled_by_time_alone_needs_no_alarms() -> None:
    scaled = {"max_instances": 4, "scheduled": {"morning": MORNING}}
    workflow = pipeline(deployment(autoscaling=scaled, endpoint_name="shop")).lower()
    actions = {action for each in workflow.permissions["deploy"] for action in each.actions}
    assert "application-autoscaling:PutScheduledAction" in actions
    assert not {"cloudwatch:PutMetricAlarm", "application-autoscaling:PutScalingPolicy"} & actions


@pytest.mark.parametrize(
    ("scheduled", "message"),
    [
        ({"cron": "0 7 * *"}, "cron: '0 7 * *' has 4 fields"),
        ({"cron": "0 7 * * *", "timezone": "Mars/Base"}, "timezone: expected an IANA time zone"),
    ],
)
def test_times_that_never_come_are_an_error(scheduled: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        deployment(autoscaling={"max_instances": 4, "scheduled": {"morning": scheduled}})


QUEUED: dict[str, Any] = {
    "asynchronous": {
        "output_uri": "s3://b/answers",
        "failure_uri": "s3://b/failures",
        "max_concurrency": 4,
        "error_topic": "arn:aws:sns:us-east-1:111122223333:failures",
    },
    "autoscaling": {"min_instances": 0, "max_instances": 4, "backlog_per_instance": 5},
}


def test_requests_that_wait_are_what_an_asynchronous_endpoint_scales_by() -> None:
    stage = deployment(**QUEUED, endpoint_name="shop")
    assert config(stage)["AsyncInferenceConfig"] == {
        "OutputConfig": {
            "S3OutputPath": "s3://b/answers",
            "S3FailurePath": "s3://b/failures",
            "NotificationConfig": {"ErrorTopic": "arn:aws:sns:us-east-1:111122223333:failures"},
        },
        "ClientConfig": {"MaxConcurrentInvocationsPerInstance": 4},
    }
    policy: Any = calls(stage)["deploy.scaling_policy"].operation.request
    followed = policy["TargetTrackingScalingPolicyConfiguration"]["CustomizedMetricSpecification"]
    assert followed["MetricName"] == "ApproximateBacklogSizePerInstance"
    assert followed["Dimensions"] == [{"Name": "EndpointName", "Value": "shop"}]
    assert not list(stage.check())


def test_the_first_instance_is_started_by_an_alarm_on_requests_that_wait() -> None:
    scaling = {**QUEUED["autoscaling"], "from_zero": True}
    stage = deployment(**{**QUEUED, "autoscaling": scaling, "endpoint_name": "shop"})
    made: Any = calls(stage)
    policy = made["deploy.from_zero"].operation.request
    assert (policy["PolicyType"], policy["ResourceId"]) == (
        "StepScaling",
        made["deploy.scaling"].operation.request["ResourceId"],
    )
    steps = policy["StepScalingPolicyConfiguration"]["StepAdjustments"]
    assert steps == [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}]
    alarm = made["deploy.from_zero_alarm"].operation.request
    assert alarm["AlarmActions"] == [Result("deploy.from_zero", "arn")]
    assert alarm["Dimensions"] == [{"Name": "EndpointName", "Value": "shop"}]
    assert not list(stage.check())
    assert not violations("application-autoscaling", "PutScalingPolicy", policy)
    assert not violations("cloudwatch", "PutMetricAlarm", alarm)


@pytest.mark.parametrize(
    ("scaling", "field", "message"),
    [
        ({"max_instances": 4, "backlog_per_instance": 5}, "from_zero", "there is always an"),
        (
            {"max_instances": 4, "scheduled": {"n": {"cron": "0 2 * * *", "min_instances": 0}}},
            "backlog_per_instance",
            "is needed with from_zero",
        ),
    ],
)
def test_what_never_rests_is_not_started(scaling: Any, field: str, message: str) -> None:
    found = problems(**{**QUEUED, "autoscaling": {**scaling, "from_zero": True}})
    assert found[f"autoscaling.{field}"].startswith(message)


def test_a_failure_is_looked_for_again_and_again_while_an_answer_is_awaited() -> None:
    stage = deployment(**QUEUED, smoke_test={"request": 1})
    made = {name: call for name, call in calls(stage).items() if "answer" in name}
    waits = [call.retry.busy_timeout_s for call in made.values()]
    assert (waits, sum(waits)) == ([30, 60, 120, 240, 450], 900)
    looks = [name for name in calls(stage) if "failure" in name]
    assert len(looks) == len(waits)
    allowed = {
        evaluate(resource, Values({}, {}, ""))
        for permission in stage.lower(SAMPLE).permissions
        if permission.actions == ("s3:ListBucket",)
        for resource in permission.resources
    }
    assert allowed == {"arn:{partition}:s3:::b"}
    without = {"output_uri": "s3://b/answers"}
    alone = calls(deployment(**{**QUEUED, "asynchronous": without}, smoke_test={"request": 1}))
    assert [call.retry.busy_timeout_s for n, call in alone.items() if "answer" in n] == [900]


@pytest.mark.parametrize(
    ("scaling", "warned"),
    [
        ({"min_instances": 0, "backlog_per_instance": 5}, True),
        ({"scheduled": {"night": {"cron": "0 22 * * *", "min_instances": 0}}}, True),
        ({"min_instances": 0, "backlog_per_instance": 0.5}, False),
        ({"min_instances": 0, "backlog_per_instance": 5, "from_zero": True}, False),
        ({"min_instances": 1, "backlog_per_instance": 5}, False),
    ],
)
def test_a_test_that_one_request_alone_cannot_wake_is_a_warning(
    scaling: dict[str, Any], warned: bool
) -> None:
    fields = {**QUEUED, "autoscaling": {"max_instances": 4, **scaling}}
    assert not list(deployment(**fields, smoke_test=None).warnings())
    stage = deployment(**fields, smoke_test={"request": 1})
    assert not list(stage.check())
    assert [each.field for each in stage.warnings()] == ["smoke_test"] * warned


LIMITS = {
    "startup_timeout_s": 900,
    "download_timeout_s": 600,
    "routing": "least_outstanding_requests",
}


def test_a_trial_has_the_time_and_the_key_that_the_endpoint_has() -> None:
    update = {"trial": {"cases": [{"request": 1}], "after": True}}
    stage = deployment(**LIMITS, volume_kms_key="alias/volumes", update=update)
    configs: list[Any] = [
        step.operation.request
        for step in calls(stage).values()
        if step.operation.name == "CreateEndpointConfig"
    ]
    assert len(configs) == 3
    for made in configs:
        [variant] = made["ProductionVariants"]
        assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] == 900
        assert variant["ModelDataDownloadTimeoutInSeconds"] == 600
        assert variant["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
        assert made["KmsKeyId"] == "alias/volumes"


def test_a_key_that_does_not_encrypt_local_storage_is_a_warning() -> None:
    stage = deployment(volume_kms_key="key", instance_type="ml.g5.xlarge")
    [warning] = stage.warnings()
    assert warning.field == "volume_kms_key"
    assert warning.message.startswith("ml.g5.xlarge has local storage")
    assert not list(deployment(volume_kms_key="key").warnings())


def test_tags_of_ones_own_are_put_on_an_endpoint_that_exists() -> None:
    steps = calls(deployment(tags={"team": "shop"}))
    tagged: Any = steps["deploy.tagged"].operation.request
    assert tagged["Tags"] == [{"Key": "team", "Value": "shop"}]
    assert "deploy.tagged" not in calls(deployment())


POOLS: dict[str, Any] = {"fallbacks": ["ml.m5.xlarge", "ml.c5.xlarge"], "capacity_timeout_s": 900}


def test_fallbacks_are_pools_of_instances_in_their_order() -> None:
    others = {"champion": {"weight": 9}, "small": {"instance_type": "ml.t2.medium"}}
    stage = deployment(**POOLS, variant="new", variants=others, update={"trial": [{"request": 1}]})
    pools = [
        {"InstanceType": "ml.m5.large", "Priority": 1},
        {"InstanceType": "ml.m5.xlarge", "Priority": 2},
        {"InstanceType": "ml.c5.xlarge", "Priority": 3},
    ]
    trial: Any = calls(stage)["deploy.trial_config"].operation.request
    champion, small, new = config(stage)["ProductionVariants"]
    for variant in (champion, new, *trial["ProductionVariants"]):
        assert variant["InstancePools"] == pools
        assert variant["VariantInstanceProvisionTimeoutInSeconds"] == 900
        assert "InstanceType" not in variant
    assert (small["InstanceType"], "InstancePools" in small) == ("ml.t2.medium", False)


def test_an_endpoint_of_components_has_the_fallbacks() -> None:
    component = {"memory_mib": 1024}
    stage = deployment(**POOLS, endpoint_name="all", inference_component=component, update={})
    [variant] = config(stage)["ProductionVariants"]
    assert [each["Priority"] for each in variant["InstancePools"]] == [1, 2, 3]
    assert variant["VariantInstanceProvisionTimeoutInSeconds"] == 900


def test_a_fallback_that_needs_another_container_is_an_error() -> None:
    framework = {"name": "pytorch", "version": "2.6"}
    found = problems(image=None, framework=framework, fallbacks=["ml.c5.xlarge", "ml.g5.xlarge"])
    message = "needs another image than instance_type; give the stage an image for both"
    assert found == {"fallbacks.1": message}


@pytest.mark.parametrize(
    "fields",
    [
        {**POOLS, "update": {"trial": [{"request": 1}]}},
        {"autoscaling": SCALED, "data_capture": {"uri": "s3://b/c"}, "update": {}},
        {**SERVERLESS, "update": {"keep": 3}},
        {"autoscaling": {"max_instances": 4, "scheduled": {"morning": MORNING}}},
        {**QUEUED, "smoke_test": {"request": {"text": "hi"}}},
        {**LIMITS, "volume_kms_key": "key", "update": {}, "tags": {"team": "shop"}},
    ],
)
def test_every_request_is_well_formed(fields: dict[str, Any]) -> None:
    for call in calls(deployment(**fields)).values():
        operation = call.operation
        assert not list(violations(operation.service, operation.name, operation.request))


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"instance_type": None}, "instance_type", "is needed; or serverless: {memory_mb: 2048}"),
        (
            {"autoscaling": {**SCALED, "min_instances": 5}},
            "autoscaling.max_instances",
            "expected at least min_instances (5), got 4",
        ),
        (
            {"autoscaling": {"max_instances": 2, "scheduled": {"m": MORNING}}},
            "autoscaling.scheduled.m.max_instances",
            "expected at least min_instances (3), got 2",
        ),
        (
            {"autoscaling": {"max_instances": 4}},
            "autoscaling.invocations_per_minute",
            "is needed; or scheduled bounds",
        ),
        (
            {"autoscaling": {**SCALED, "min_instances": 0}},
            "autoscaling.min_instances",
            "only an asynchronous endpoint can wait without instances; change it",
        ),
        (
            {**QUEUED, "autoscaling": {**SCALED, "backlog_per_instance": 5}},
            "autoscaling.backlog_per_instance",
            "the number follows invocations_per_minute already; remove one of them",
        ),
        (
            {**QUEUED, "update": {"trial": {"cases": [{"request": 1}], "after": True}}},
            "update.trial.after",
            "an asynchronous endpoint answers into S3; use smoke_test",
        ),
        (
            {**SERVERLESS, "asynchronous": QUEUED["asynchronous"]},
            "asynchronous",
            "a serverless endpoint has no queue; remove it",
        ),
        (
            {**SERVERLESS, "startup_timeout_s": 90},
            "startup_timeout_s",
            "a serverless endpoint has no instances; remove it",
        ),
        (
            {"fallbacks": ["ml.m5.xlarge", "ml.m5.large"]},
            "fallbacks.1",
            "ml.m5.large stands before it already; remove it",
        ),
        (
            {**SERVERLESS, "fallbacks": ["ml.m5.large"]},
            "fallbacks",
            "a serverless endpoint has no instances; remove it",
        ),
        (
            {**SERVERLESS, "routing": "random"},
            "routing",
            "a serverless endpoint has no instances; remove it",
        ),
        (
            {**SERVERLESS, "serverless": {"provisioned_concurrency": 9}},
            "serverless.provisioned_concurrency",
            "expected at most max_concurrency (5), got 9",
        ),
        (
            {**SERVERLESS, "instance_type": "ml.m5.large"},
            "instance_type",
            "a serverless endpoint has no instances; remove it",
        ),
        (
            {**SERVERLESS, "autoscaling": SCALED},
            "autoscaling",
            "a serverless endpoint scales by itself; remove it",
        ),
        (
            {"data_capture": {"uri": "s3://"}},
            "data_capture.uri",
            "expected an S3 URI, got 's3://'; write s3://bucket/prefix",
        ),
        (
            {**QUEUED, "asynchronous": {"output_uri": "s3:///answers"}},
            "asynchronous.output_uri",
            "expected an S3 URI, got 's3:///answers'; write s3://bucket/prefix",
        ),
        (
            {**SERVERLESS, "data_capture": {"uri": "s3://b/c"}},
            "data_capture",
            "a serverless endpoint captures nothing; remove it",
        ),
        (
            {**SERVERLESS, "enable_network_isolation": True},
            "enable_network_isolation",
            "a serverless endpoint has a network; remove it",
        ),
        (
            {**SERVERLESS, "update": {"alarms": {"latency_ms": 5}}},
            "update.alarms",
            "a serverless endpoint changes over all at once, and nothing watches it; remove it",
        ),
    ],
)
def test_what_sagemaker_does_not_combine_is_an_error(
    fields: dict[str, Any], field: str, message: str
) -> None:
    found = {each.field: each.message for each in deployment(**fields).check()}
    assert found[field] == message


def test_nothing_is_scaled_that_does_not_ask_for_it() -> None:
    names = {step.name for step in all_steps(pipeline(deployment(update={})).lower().graph)}
    assert not {"deploy.scaling", "deploy.scaling_policy"} & names
