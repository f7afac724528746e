"""Updates of an endpoint move real traffic, lose no request of it, and go back for alarms."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from orchestration.local.sagemaker.serving.requests import statistic
from orchestration.local.sagemaker.serving.rollouts import Step, steps
from orchestration.local.sagemaker.serving.traffic import Shares
from tests.local.conftest import IMAGE, ROLE, prepare, put, tar_gz, wait

CODE = """
    import pathlib
    import time

    def model_fn(folder):
        return pathlib.Path(folder, "name").read_text()

    def predict_fn(data, model):
        if model.startswith("fails"):
            raise ValueError("this model answers nothing")
        if model == "slow":
            time.sleep(0.2)
        return model
"""
HALF = {"Type": "CAPACITY_PERCENT", "Value": 50}
TENTH = {"Type": "CAPACITY_PERCENT", "Value": 10}
WAIT_S = 120


def blue_green(kind: str, wait_s: int, **sizes: Any) -> dict[str, Any]:
    routing = {"Type": kind, "WaitIntervalInSeconds": wait_s, **sizes}
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing}}


def kinds(wait_s: int) -> dict[str, dict[str, Any]]:
    rolling = {"MaximumBatchSize": HALF, "WaitIntervalInSeconds": wait_s}
    return {
        "none": {},
        "all at once": blue_green("ALL_AT_ONCE", wait_s),
        "canary": blue_green("CANARY", wait_s, CanarySize=TENTH),
        "linear": blue_green("LINEAR", wait_s, LinearStepSize=HALF),
        "rolling": {"RollingUpdatePolicy": rolling},
    }


KINDS: Mapping[str, dict[str, Any]] = kinds(WAIT_S)
DOOMED: Mapping[str, dict[str, Any]] = kinds(3600)
"""Long enough for requests of a busy machine, and ended early by an alarm."""


class Served:
    """An endpoint of two instances, and the names of the models that answered."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws = aws
        self.client = aws.client("sagemaker")
        self.name = "served"
        self.asked: dict[str, str] = {}
        """Further fields of each request."""

    def config(self, name: str, *names: str) -> str:
        variants = []
        for number, model in enumerate(names or (name,)):
            files = {"name": model, "code/inference.py": CODE}
            if model.startswith("broken"):
                files["code/inference.py"] = "raise RuntimeError('does not load')"
            uri = put(self.aws, f"models/{model}.tar.gz", tar_gz(files))
            container = {"Image": IMAGE, "ModelDataUrl": uri}
            self.client.create_model(
                ModelName=model, PrimaryContainer=container, ExecutionRoleArn=ROLE
            )
            variants.append(
                {
                    "VariantName": "main" if number == 0 else f"other-{number}",
                    "ModelName": model,
                    "InstanceType": "ml.m5.large",
                    "InitialInstanceCount": 2,
                    "InitialVariantWeight": 3 if number == 0 else 1,
                }
            )
        self.client.create_endpoint_config(EndpointConfigName=name, ProductionVariants=variants)
        return name

    def update(self, config: str, deployment: dict[str, Any], **more: Any) -> dict[str, Any]:
        if deployment:
            more["DeploymentConfig"] = deployment
        self.client.update_endpoint(EndpointName=self.name, EndpointConfigName=config, **more)
        return self.settled()

    def describe(self) -> dict[str, Any]:
        return dict(self.client.describe_endpoint(EndpointName=self.name))

    def settled(self) -> dict[str, Any]:
        return wait(self.describe, lambda d: d["EndpointStatus"] not in ("Creating", "Updating"))

    def ask(self, runtime: Any) -> str:
        answer = runtime.invoke_endpoint(EndpointName=self.name, Body=b"1", **self.asked)
        return str(json.loads(answer["Body"].read()))

    @contextmanager
    def loaded(self, clients: int = 2) -> Iterator[Counter[str]]:
        """Keep asking; yield the counts by answer, with the lost requests by their errors."""
        stop, counts, lock = threading.Event(), Counter[str](), threading.Lock()

        def load() -> None:
            runtime = self.aws.client("sagemaker-runtime")
            while not stop.is_set():
                try:
                    answer = self.ask(runtime)
                except ClientError as error:
                    answer = f"lost: {error}"
                with lock:
                    counts[answer] += 1

        threads = [threading.Thread(target=load) for _ in range(clients)]
        for thread in threads:
            thread.start()
        try:
            wait(lambda: counts.total(), lambda total: total > 4)
            yield counts
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@pytest.fixture(scope="module")
def account() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.005) as aws:
        prepare(aws)
        yield aws


@pytest.fixture
def served(account: EmbeddedAws, request: pytest.FixtureRequest) -> Iterator[Served]:
    served = Served(account)
    served.client.create_endpoint(
        EndpointName=served.name,
        EndpointConfigName=served.config(request.node.name.replace("_", "-")[:60]),
    )
    assert served.settled()["EndpointStatus"] == "InService"
    yield served
    served.settled()
    served.client.delete_endpoint(EndpointName=served.name)


def alarm(served: Served, name: str, config: str, metric: str, **more: Any) -> dict[str, Any]:
    dimensions = {"EndpointName": served.name, "VariantName": "main", "EndpointConfigName": config}
    served.aws.client("cloudwatch").put_metric_alarm(
        AlarmName=name,
        Namespace="AWS/SageMaker",
        MetricName=metric,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        Statistic="Average",
        Period=60,
        EvaluationPeriods=1,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="ignore",
        **more,
    )
    return {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": name}]}}


def states(served: Served, name: str) -> list[str]:
    listed = served.aws.client("cloudwatch").describe_alarms(AlarmNames=[name])
    return [each["StateValue"] for each in listed["MetricAlarms"]]


def answered_once_more(counts: Counter[str], config: str) -> None:
    done = counts[config]
    wait(lambda: counts[config], lambda count: count > done)


def test_an_update_of_each_kind_under_load_loses_no_request(served: Served) -> None:
    with served.loaded() as counts:
        (before,) = counts
        for number, kind in enumerate(KINDS):
            config = served.config(f"under-load-{number}")
            after = served.update(config, KINDS[kind])
            answered_once_more(counts, config)
            assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", config)
            assert "PendingDeploymentSummary" not in after
    assert set(counts) == {before, *(f"under-load-{number}" for number in range(len(KINDS)))}


def test_a_component_is_updated_under_load_without_losing_a_request(account: EmbeddedAws) -> None:
    shared = Served(account)
    shared.name, shared.asked = "shared", {"InferenceComponentName": "component"}
    machines = {"InstanceType": "ml.m5.large", "InitialInstanceCount": 1}
    shared.client.create_endpoint_config(
        EndpointConfigName="shared",
        ExecutionRoleArn=ROLE,
        ProductionVariants=[{"VariantName": "main", **machines}],
    )
    shared.client.create_endpoint(EndpointName="shared", EndpointConfigName="shared")
    shared.settled()

    def of(model: str) -> dict[str, Any]:
        needs = {"MinMemoryRequiredInMb": 1024}
        return {
            "InferenceComponentName": "component",
            "Specification": {
                "ModelName": shared.config(model),
                "ComputeResourceRequirements": needs,
            },
        }

    def served_by(model: str) -> None:
        settled = wait(
            lambda: shared.client.describe_inference_component(InferenceComponentName="component"),
            lambda each: each["InferenceComponentStatus"] not in ("Creating", "Updating"),
        )
        serves = settled["Specification"]["ModelName"]
        assert (settled["InferenceComponentStatus"], serves) == ("InService", model)

    first = {"EndpointName": "shared", "VariantName": "main", "RuntimeConfig": {"CopyCount": 2}}
    shared.client.create_inference_component(**of("component-0"), **first)
    served_by("component-0")
    size = {"Type": "COPY_COUNT", "Value": 1}
    rolling = {"MaximumBatchSize": size, "WaitIntervalInSeconds": WAIT_S}
    deployments: tuple[dict[str, Any], ...] = (
        {},
        {"DeploymentConfig": {"RollingUpdatePolicy": rolling}},
    )
    with shared.loaded() as counts:
        for number, deployment in enumerate(deployments, start=1):
            model = f"component-{number}"
            shared.client.update_inference_component(**of(model), **deployment)
            served_by(model)
            answered_once_more(counts, model)
    assert set(counts) == {f"component-{number}" for number in range(3)}
    shared.client.delete_inference_component(InferenceComponentName="component")
    listed = shared.client.list_inference_components
    wait(lambda: listed()["InferenceComponents"], lambda left: not left)
    shared.client.delete_endpoint(EndpointName="shared")


def test_a_model_that_fails_under_load_is_rolled_back(served: Served) -> None:
    before = served.describe()["EndpointConfigName"]
    with served.loaded() as counts:
        for number, kind in enumerate(kind for kind in DOOMED if kind != "none"):
            config = served.config(f"fails-{number}")
            guard = alarm(served, config, config, "Invocation5XXErrors", Threshold=0.2)
            after = served.update(config, {**DOOMED[kind], **guard})
            assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", before)
            assert states(served, config) == ["ALARM"]
    # All errors were the new model's own answers, and none came after the rollback.
    (error,) = {answer for answer in counts if answer != before}
    assert "this model answers nothing" in error
    assert served.ask(served.aws.client("sagemaker-runtime")) == before


def test_a_model_that_answers_well_trips_no_alarm_on_errors(served: Served) -> None:
    config = served.config("healthy")
    guard = alarm(served, "healthy", config, "Invocation5XXErrors", Threshold=0.2)
    with served.loaded():
        assert served.update(config, {**KINDS["canary"], **guard})["EndpointConfigName"] == config
        wait(lambda: states(served, "healthy"), lambda found: found == ["OK"])


def test_a_slow_model_is_rolled_back_by_its_measured_latency(served: Served) -> None:
    before = served.describe()["EndpointConfigName"]
    config = served.config("slow")
    # Nobody is answered in less than 0.2 s, and nobody here waits for a minute: in microseconds.
    guard = alarm(served, "slow", config, "ModelLatency", Threshold=199_999)
    alarm(served, "slower", config, "ModelLatency", Threshold=60_000_000)
    with served.loaded() as counts:
        after = served.update(config, {**DOOMED["canary"], **guard})
        assert (states(served, "slow"), states(served, "slower")) == (["ALARM"], ["OK"])
    assert after["EndpointConfigName"] == before
    assert set(counts) <= {before, config}


def test_a_model_that_does_not_start_gets_no_request(served: Served) -> None:
    before = served.describe()["EndpointConfigName"]
    config = served.config("broken-canary")
    with served.loaded() as counts:
        after = served.update(config, KINDS["canary"])
    assert (after["EndpointStatus"], after["EndpointConfigName"]) == ("InService", before)
    assert set(counts) == {before}


def test_while_it_is_updated_an_endpoint_names_the_old_configuration_and_the_new(
    served: Served,
) -> None:
    before = served.describe()["EndpointConfigName"]
    config = served.config("pending")
    served.client.update_endpoint(
        EndpointName=served.name, EndpointConfigName=config, DeploymentConfig=KINDS["canary"]
    )
    during = served.describe()
    assert (during["EndpointStatus"], during["EndpointConfigName"]) == ("Updating", before)
    assert during["PendingDeploymentSummary"]["EndpointConfigName"] == config
    after = served.settled()
    assert after["LastDeploymentConfig"] == KINDS["canary"]


def test_capacity_is_kept_where_the_update_says_so(served: Served) -> None:
    served.client.update_endpoint_weights_and_capacities(
        EndpointName=served.name,
        DesiredWeightsAndCapacities=[{"VariantName": "main", "DesiredInstanceCount": 7}],
    )
    kept = served.update(served.config("kept"), {}, RetainAllVariantProperties=True)
    assert kept["ProductionVariants"][0]["CurrentInstanceCount"] == 7
    reset = served.update(served.config("reset"), {})
    assert reset["ProductionVariants"][0]["CurrentInstanceCount"] == 2


def test_a_deleted_endpoint_has_no_scalable_targets(account: EmbeddedAws) -> None:
    gone, scaling = Served(account), account.client("application-autoscaling")
    gone.name = "gone"
    gone.client.create_endpoint(EndpointName="gone", EndpointConfigName=gone.config("gone"))
    gone.settled()
    place = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/gone/variant/main",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling.register_scalable_target(**place, MinCapacity=1, MaxCapacity=4)
    tracked = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    followed = {"TargetValue": 10.0, "PredefinedMetricSpecification": tracked}
    scaling.put_scaling_policy(
        **place,
        PolicyName="load",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration=followed,
    )
    gone.client.delete_endpoint(EndpointName="gone")
    listed = {"ServiceNamespace": "sagemaker"}
    assert scaling.describe_scalable_targets(**listed)["ScalableTargets"] == []
    assert scaling.describe_scaling_policies(**listed)["ScalingPolicies"] == []


def test_variants_share_requests_by_weight(served: Served) -> None:
    served.update(served.config("both", "one", "two"), {})
    runtime = served.aws.client("sagemaker-runtime")
    answers = Counter(served.ask(runtime) for _ in range(8))
    assert answers == {"one": 6, "two": 2}
    aimed = runtime.invoke_endpoint(EndpointName=served.name, Body=b"1", TargetVariant="other-1")
    assert json.loads(aimed["Body"].read()) == "two"
    assert aimed["InvokedProductionVariant"] == "other-1"


def test_an_alarm_on_another_metric_rolls_back_in_the_state_that_was_set(served: Served) -> None:
    before = served.describe()["EndpointConfigName"]
    config = served.config("business")
    watch = served.aws.client("cloudwatch")
    watch.put_metric_alarm(
        AlarmName="orders",
        Namespace="Shop",
        MetricName="Orders",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="LessThanThreshold",
    )
    watch.set_alarm_state(AlarmName="orders", StateValue="ALARM", StateReason="nobody buys")
    guard = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "orders"}]}}
    after = served.update(config, {**KINDS["all at once"], **guard})
    assert after["EndpointConfigName"] == before


def test_traffic_is_shared_exactly() -> None:
    shares = Shares([("old", 90.0), ("new", 10.0)])
    assert Counter(shares.turn() for _ in range(100)) == {"old": 90, "new": 10}


@pytest.mark.parametrize(
    ("kind", "plan"),
    [
        ("none", [Step(100, 0)]),
        ("all at once", [Step(100, WAIT_S), Step(100, 0)]),
        ("canary", [Step(10, WAIT_S), Step(100, WAIT_S), Step(100, 0)]),
        ("linear", [Step(50, WAIT_S), Step(100, WAIT_S), Step(100, 0)]),
        ("rolling", [Step(50, WAIT_S), Step(100, WAIT_S)]),
    ],
)
def test_steps_of_an_update(kind: str, plan: list[Step]) -> None:
    assert steps(KINDS[kind], 2) == plan


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [statistic(name, values) for name in ("p50", "p99", "Average")] == [50, 99, 50.5]
