"""Updates of an endpoint end alike on every backend, and leave a model that serves."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration import Pipeline, Source
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run
from tests.conformance.sites import wait

pytestmark = pytest.mark.slow

BACKENDS = ("direct", "step-functions", "airflow")
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/conformance:1"
ROLE = "arn:aws:iam::123456789012:role/SageMakerExecution"
CODE = """
import json
import os
import pathlib
import time

def model_fn(folder):
    return pathlib.Path(folder, "name").read_text()

def predict_fn(data, model):
    if isinstance(data, dict) and "someone_else" in data:
        import boto3
        getattr(boto3.client("sagemaker"), data["someone_else"])(**data["request"])
    if data == 15:
        time.sleep(0.5)
    if model == "bad" or data == 13:
        raise ValueError("this model answers nothing")
    if model == "turns":
        # Right on the temporary endpoint, whose name is the run's, and wrong on the other.
        model = "turned" if os.environ["ENDPOINT_NAME"].startswith("shop-") and (
            "deploy" not in os.environ["ENDPOINT_NAME"]
        ) else "two"
    return {"name": model, "asked": data}

def output_fn(prediction, accept):
    if prediction["asked"] == 14:
        return "a text", accept
    return json.dumps({"name": prediction["name"]}), accept
"""
CANARY = {"traffic": "canary", "instances": 1, "baking_s": 120}
WATCHED = {**CANARY, "alarms": {"errors_percent": 20}}
# Long enough for requests that fail on a busy machine, too; an alarm ends it early.
DOOMED = {**WATCHED, "baking_s": 1200}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.005) as started:
        started.client("s3").create_bucket(Bucket="models")
        for name in ("one", "two", "bad"):
            put(started, name, name)
        started.provide(roles=[ROLE])
        yield started


def put(aws: EmbeddedAws, folder: str, name: str) -> None:
    for key, text in (("name", name), ("code/inference.py", CODE)):
        aws.client("s3").put_object(Bucket="models", Key=f"{folder}/{key}", Body=text.encode())


class Shop:
    """An endpoint, and runs that deploy to it."""

    def __init__(self, on: On, aws: EmbeddedAws, airflow: LocalAirflow) -> None:
        self.on, self.aws, self.airflow = on, aws, airflow
        self.name = f"shop-{on}"
        self.client, self.runtime = aws.client("sagemaker"), aws.client("sagemaker-runtime")

    def deploy(
        self,
        model: str,
        update: dict[str, Any] | None,
        run_id: str | None = None,
        machines: int | None = None,
        **more: Any,
    ) -> RunReport:
        number: dict[str, Any] = {} if machines is None else {"machines": {"type": "number"}}
        given = {} if machines is None else {"machines": machines}
        deploy = {
            "kind": "deployment",
            "model_data": {"join": ["s3://models/", {"parameter": "model"}]},
            **({} if "framework" in more else {"image": IMAGE}),
            "instance_type": "ml.m5.large",
            "instance_count": 1 if "serverless" in more else 2,
            **more,
            "endpoint_name": self.name,
            "update": update,
        }
        pipeline = Pipeline.parse(
            {
                "name": self.name,
                "region": "us-east-1",
                "workspace": "s3://models/runs",
                "parameters": {"model": {"default": model}, **number},
                "stages": {"deploy": {k: v for k, v in deploy.items() if v is not None}},
            }
        )
        return run(
            pipeline,
            on=self.on,
            aws=self.aws,
            airflow=self.airflow,
            run_id=run_id,
            parameters=given,
        )

    def judgements(self) -> int:
        """Return how many scripts have judged answers."""
        jobs = self.client.list_processing_jobs(NameContains=f"{self.name}-deploy")
        return len(jobs["ProcessingJobSummaries"])

    def serve(self, model: str, variant: str = "main") -> str:
        """Create the endpoint, as someone else would."""
        name = self.make(f"{self.name}-{model}-{variant}", model, variant)
        self.client.create_endpoint(EndpointName=self.name, EndpointConfigName=name)
        wait(lambda: self.describe()["EndpointStatus"] == "InService")
        return name

    def make(self, name: str, model: str, variant: str) -> str:
        """Create a model and its configuration."""
        source = {
            "S3Uri": f"s3://models/{model}/",
            "S3DataType": "S3Prefix",
            "CompressionType": "None",
        }
        container = {"Image": IMAGE, "ModelDataSource": {"S3DataSource": source}}
        self.client.create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=ROLE)
        shape = {"InstanceType": "ml.m5.large", "InitialInstanceCount": 2}
        self.client.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[{"VariantName": variant, "ModelName": name, **shape}],
        )
        return name

    def describe(self) -> dict[str, Any]:
        return dict(self.client.describe_endpoint(EndpointName=self.name))

    def ask(self, **of: str) -> str:
        try:
            answer = self.runtime.invoke_endpoint(EndpointName=self.name, Body=b"1", **of)
        except ClientError as error:
            return str(error)
        return str(json.loads(answer["Body"].read())["name"])

    @contextmanager
    def asked(self, **of: str) -> Iterator[set[str]]:
        """Keep asking, a few times within each of the simulated minutes; yield the answers."""
        stop, answers = threading.Event(), set[str]()

        def keep() -> None:
            while not stop.wait(0.05):
                answers.add(self.ask(**of))

        thread = threading.Thread(target=keep)
        thread.start()
        try:
            yield answers
        finally:
            stop.set()
            thread.join()

    def close(self) -> None:
        listed = self.client.list_endpoints(NameContains=self.name)["Endpoints"]
        if listed:
            wait(lambda: self.describe()["EndpointStatus"] not in ("Creating", "Updating"))
            self.client.delete_endpoint(EndpointName=self.name)
        for each in self.client.list_endpoint_configs(NameContains=self.name)["EndpointConfigs"]:
            self.client.delete_endpoint_config(EndpointConfigName=each["EndpointConfigName"])
        for each in self.client.list_models(NameContains=self.name)["Models"]:
            self.client.delete_model(ModelName=each["ModelName"])


@pytest.fixture(params=BACKENDS)
def shop(aws: EmbeddedAws, airflow: LocalAirflow, request: pytest.FixtureRequest) -> Iterator[Shop]:
    shop = Shop(request.param, aws, airflow)
    yield shop
    shop.close()


def count(report: RunReport, operation: str) -> int:
    return sum(call.operation == operation for call in report.calls)


def test_a_canary_moves_traffic_and_what_serves_already_is_left_alone(shop: Shop) -> None:
    first = shop.deploy("one", WATCHED)
    assert (first.state, first.cause) == ("succeeded", None)
    with shop.asked() as answers:
        wait(lambda: "one" in answers)
        second = shop.deploy("two", WATCHED)
        wait(lambda: "two" in answers)
    assert (second.state, second.cause) == ("succeeded", None)
    assert answers == {"one", "two"}
    again = shop.deploy("two", WATCHED)
    assert (again.state, again.outputs) == ("succeeded", second.outputs)
    assert [count(each, "UpdateEndpoint") for each in (first, second, again)] == [0, 1, 0]


def test_an_update_of_each_kind_by_a_run_loses_no_request(shop: Shop) -> None:
    shop.serve("one")
    half = {"instances": 1, "baking_s": 120}
    _changes_over(shop, "one", "two", None)
    _changes_over(shop, "two", "one", {"baking_s": 0, "termination_wait_s": 120})
    _changes_over(shop, "one", "two", CANARY)
    _changes_over(shop, "two", "one", {"traffic": "linear", **half})
    _changes_over(shop, "one", "two", {"traffic": "rolling", **half})


def _changes_over(shop: Shop, before: str, after: str, update: dict[str, Any] | None) -> None:
    """Update while requests are sent, none of which is lost: that would be among the answers."""
    with shop.asked() as answers:
        wait(lambda: before in answers)
        report = shop.deploy(after, update)
        wait(lambda: after in answers)
    assert (report.state, report.cause) == ("succeeded", None)
    assert count(report, "UpdateEndpoint") == 1
    assert answers == {before, after}


@pytest.mark.parametrize("shop", BACKENDS[:1], indirect=True)
def test_files_that_changed_at_their_place_are_deployed(shop: Shop) -> None:
    put(shop.aws, shop.name, "one")
    shop.deploy(shop.name, {})
    assert shop.ask() == "one"
    put(shop.aws, shop.name, "two")
    shop.deploy(shop.name, {})
    assert shop.ask() == "two"


def test_a_rollback_fails_the_run_and_names_the_alarm(shop: Shop) -> None:
    before = shop.serve("one")
    with shop.asked():
        report = shop.deploy("bad", DOOMED)
    assert (report.state, report.error) == ("failed", "EndpointRolledBack")
    config = shop.client.list_endpoint_configs(NameContains=f"{shop.name}-deploy-")
    (made,) = (each["EndpointConfigName"] for each in config["EndpointConfigs"])
    assert report.cause == (
        f"stage deploy: it serves {before} instead of {made}: SageMaker gives no reason; "
        f"alarms that are on: [{made}-5xx]"
    )
    assert shop.ask() == "one"
    if shop.on != "direct":
        return
    # A second try starts with an alarm that has forgotten the first.
    with shop.asked():
        again = shop.deploy("bad", DOOMED)
    assert (again.error, again.cause) == (report.error, report.cause)


def orders(aws: EmbeddedAws, state: str) -> None:
    """Set the state of an alarm on another metric, ``orders``."""
    watch = aws.client("cloudwatch")
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
    turn(aws, state)


def turn(aws: EmbeddedAws, state: str) -> None:
    """Set its state, and keep what it was before in its history."""
    reason = {"StateValue": state, "StateReason": "as the test says"}
    aws.client("cloudwatch").set_alarm_state(AlarmName="orders", **reason)


def test_an_alarm_that_is_off_again_once_the_old_model_serves_is_named(shop: Shop) -> None:
    before = shop.serve("one")
    orders(shop.aws, "OK")

    def drop() -> None:
        wait(lambda: shop.describe()["EndpointStatus"] == "Updating")
        turn(shop.aws, "ALARM")
        wait(lambda: shop.describe()["EndpointStatus"] != "Updating")
        turn(shop.aws, "OK")

    dropping = threading.Thread(target=drop)
    dropping.start()
    watched = {**CANARY, "baking_s": 1200, "alarms": {"named": ["orders"], "errors_percent": 20}}
    report = shop.deploy("two", watched)
    dropping.join()
    assert (report.state, report.error) == ("failed", "EndpointRolledBack")
    told = rf"stage deploy: it serves {before} instead of \S+: SageMaker gives no reason; "
    off = rf"{told}alarms that went off: \[orders\]"
    assert re.fullmatch(off, str(report.cause)), report.cause


def test_what_would_be_refused_or_rolled_back_anyhow_changes_nothing(shop: Shop) -> None:
    shop.serve("one")
    orders(shop.aws, "ALARM")
    missing = shop.deploy("two", {**CANARY, "alarms": {"named": ["orders", "no-such-alarm"]}})
    assert (missing.state, missing.error) == ("failed", "AlarmMissing")
    assert missing.cause == "2 alarms are named, and these exist: [orders]"
    active = shop.deploy("two", {**CANARY, "alarms": {"named": ["orders"]}})
    assert (active.state, active.error) == ("failed", "AlarmActive")
    assert active.cause == "alarms are on, and would roll any update back: [orders]"
    assert count(missing, "CreateModel") == count(active, "CreateModel") == 0
    assert shop.ask() == "one"


def test_a_number_of_instances_that_the_run_is_given_must_change_over_in_parts(shop: Shop) -> None:
    shop.serve("one")
    report = shop.deploy("two", CANARY, instance_count={"parameter": "machines"}, machines=1)
    assert (report.state, report.error) == ("failed", "UpdateNotPossible")
    told = "canary traffic, 1 at a time, needs at least 2 and at most 100 instances, got 1"
    assert report.cause == told
    assert (count(report, "CreateModel"), shop.ask()) == (0, "one")
    steps = {"traffic": "linear", "instances": 1, "baking_s": 600}
    given: dict[str, Any] = {"instance_count": {"parameter": "machines"}, "timeout_s": 1800}
    late = shop.deploy("two", steps, **given, machines=8)
    told = "linear traffic, 1 at a time, 600 s each within 1800 s, needs at least 2 and at most 2"
    assert (late.error, late.cause) == ("UpdateNotPossible", f"{told} instances, got 8")
    assert count(late, "CreateModel") == 0


def test_another_deployment_is_refused_or_waited_for(shop: Shop) -> None:
    before = shop.serve("one")
    orders(shop.aws, "OK")
    routing = {
        "Type": "LINEAR",
        "WaitIntervalInSeconds": 3600,
        "LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": 10},
    }
    shop.client.update_endpoint(
        EndpointName=shop.name,
        EndpointConfigName=before,
        DeploymentConfig={
            "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing},
            "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "orders"}]},
        },
    )
    report = shop.deploy("two", {"while_busy": "refuse"})
    assert (report.state, report.error) == ("failed", "EndpointBusy")
    assert report.cause == (
        f"endpoint {shop.name} is Updating: another deployment of it is under way; run again "
        "when it has ended, or give while_busy: wait"
    )
    # The other deployment would take minutes, and this ends it while the run waits for it.
    end = threading.Timer(1, orders, (shop.aws, "ALARM"))
    end.start()
    waiting = shop.deploy("two", {"while_busy": "wait", "baking_s": 0})
    end.join()
    assert (waiting.state, waiting.cause) == ("succeeded", None)
    assert shop.ask() == "two"


def test_the_name_of_the_variant_and_scaled_instances_are_kept(shop: Shop) -> None:
    shop.serve("one", variant="AllTraffic")
    scaling = shop.aws.client("application-autoscaling")
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{shop.name}/variant/AllTraffic",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling.register_scalable_target(MinCapacity=1, MaxCapacity=9, **target)
    shop.client.update_endpoint_weights_and_capacities(
        EndpointName=shop.name,
        DesiredWeightsAndCapacities=[{"VariantName": "AllTraffic", "DesiredInstanceCount": 7}],
    )
    report = shop.deploy("two", {**CANARY, "while_busy": "refuse"})
    assert (report.state, report.cause) == ("succeeded", None)
    (variant,) = shop.describe()["ProductionVariants"]
    assert (variant["VariantName"], variant["CurrentInstanceCount"]) == ("AllTraffic", 7)
    scaling.deregister_scalable_target(**target)


def test_a_fleet_that_the_load_has_left_too_small_does_not_change_over_in_parts(
    shop: Shop,
) -> None:
    shop.serve("one")
    shop.aws.client("application-autoscaling").register_scalable_target(
        ServiceNamespace="sagemaker",
        ResourceId=f"endpoint/{shop.name}/variant/main",
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        MinCapacity=1,
        MaxCapacity=9,
    )
    shop.client.update_endpoint_weights_and_capacities(
        EndpointName=shop.name,
        DesiredWeightsAndCapacities=[{"VariantName": "main", "DesiredInstanceCount": 1}],
    )
    report = shop.deploy("two", CANARY)
    assert (report.state, report.error) == ("failed", "UpdateNotPossible")
    told = "canary traffic, 1 at a time, needs at least 2 and at most 100 instances, got 1"
    assert report.cause == told
    assert (count(report, "UpdateEndpoint"), shop.ask()) == (0, "one")


def test_old_models_are_deleted_but_for_what_is_needed(shop: Shop) -> None:
    before = shop.serve("one")
    prefix = f"{shop.name}-deploy-{hashlib.sha256(shop.name.encode()).hexdigest()[:4]}-"
    others = [f"{prefix}{number}" for number in range(3)]
    foreign = f"my-{prefix}0"
    for name in (foreign, *others):
        shop.make(name, "one", "main")
    report = shop.deploy("two", {"baking_s": 0, "keep": 2})
    assert (report.state, report.cause) == ("succeeded", None)
    made = str(shop.describe()["EndpointConfigName"])
    configs = shop.client.list_endpoint_configs(NameContains=shop.name)["EndpointConfigs"]
    models = shop.client.list_models(NameContains=shop.name)["Models"]
    left = {before, foreign, others[-1], made}
    assert {each["EndpointConfigName"] for each in configs} == left
    assert {each["ModelName"] for each in models} == left


def test_a_new_model_is_tried_before_it_gets_any_traffic(shop: Shop) -> None:
    shop.serve("one")
    good = [{"request": 1, "expected": {"name": "two"}}, {"request": {"a": 1}}]
    refused = {"request": 13, "status": 500}
    good.append(refused)
    bad = [refused, {"request": 1, "expected": {"name": "three", "tags[0]": "x"}}]
    report = shop.deploy("two", {"baking_s": 0, "trial": bad})
    assert (report.state, report.error) == ("failed", "TrialFailed")
    assert report.cause == (
        "case 2; expected three as name, got two; expected x as tags[0], got null; the endpoint "
        "is as it was"
    )
    assert count(report, "DeleteEndpoint") == 1
    assert (count(report, "UpdateEndpoint"), shop.ask()) == (0, "one")
    if shop.on != "airflow":
        report = shop.deploy("two", {"baking_s": 0, "trial": good})
        assert (report.state, report.cause) == ("succeeded", None)
        assert shop.ask() == "two"
    listed = shop.client.list_endpoints()["Endpoints"]
    assert [each["EndpointName"] for each in listed] == [shop.name]


def test_an_answer_that_comes_too_late_fails_the_trial(shop: Shop) -> None:
    shop.serve("one")
    # Nobody who asks for 15 is answered in less than half a second.
    cases = [
        {"request": 15, "max_latency_ms": 60_000, "expected": {"name": "two"}},
        {"request": 13, "status": 500, "max_latency_ms": 60_000},
        {"request": 15, "max_latency_ms": 499},
    ]
    report = shop.deploy("two", {"baking_s": 0, "trial": cases})
    assert (report.state, report.error) == ("failed", "TrialTooSlow")
    told = r"case 3; expected an answer within 499 ms, got it after (\d+) ms; the endpoint is .*"
    late = re.fullmatch(told, str(report.cause))
    assert late is not None, report.cause
    assert 500 <= int(late.group(1)) <= 60_000
    assert (count(report, "UpdateEndpoint"), shop.ask()) == (0, "one")


JUDGE = """
import argparse
import json
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--answers", type=pathlib.Path)
parser.add_argument("--output", type=pathlib.Path)
told = parser.parse_args()
records = [json.loads(file.read_text()) for file in sorted(told.answers.iterdir())]
names = [json.loads(each["answer"])["name"] for each in records]
requests = [each["request"] for each in records]
verdict = {"passed": names == ["one", "one"], "reason": f"{requests} got {names}"}
(told.output / "verdict.json").write_text(json.dumps(verdict))
"""


def test_a_script_judges_all_answers_together(shop: Shop, tmp_path: Path) -> None:
    before = shop.serve("one")
    (tmp_path / "judge.py").write_text(JUDGE)
    judge = Source.at(tmp_path, "judge.py").model_dump(exclude_defaults=True)
    cases = [{"request": 1}, {"request": 13, "status": 500}, {"request": {"a": "x"}}]
    report = shop.deploy("two", {"baking_s": 0, "trial": cases}, judge=judge)
    assert (report.state, report.error) == ("failed", "TrialFailed")
    told = "judge.py refuses the answers: [1, {'a': 'x'}] got ['two', 'two']"
    assert report.cause == f"{told}; the endpoint is as it was"
    assert shop.describe()["EndpointConfigName"] == before
    if shop.on == "airflow":
        return
    put(shop.aws, f"{shop.name}-same", "one")
    after = {"baking_s": 0, "trial": {"cases": cases, "after": True}}
    report = shop.deploy(f"{shop.name}-same", after, judge=judge)
    assert (report.state, report.cause) == ("succeeded", None)
    assert shop.describe()["EndpointConfigName"] != before
    assert count(report, "CreateProcessingJob") == 2


@pytest.mark.parametrize("shop", BACKENDS[:1], indirect=True)
def test_a_further_attempt_judges_other_answers_anew(shop: Shop, tmp_path: Path) -> None:
    shop.serve("one")
    (tmp_path / "judge.py").write_text(JUDGE)
    judge = Source.at(tmp_path, "judge.py").model_dump(exclude_defaults=True)
    model, mended = f"{shop.name}-mended", tmp_path / "mended"
    put(shop.aws, model, "two")
    now = (
        f'model = "one" if os.path.exists({str(mended)!r}) else "two"\n    return {{"name": model,'
    )
    code = CODE.replace('return {"name": model,', now).encode()
    shop.aws.client("s3").put_object(Bucket="models", Key=f"{model}/code/inference.py", Body=code)
    trial = {"baking_s": 0, "trial": [{"request": 1}, {"request": 2}]}
    before = shop.judgements()
    for _ in range(2):
        report = shop.deploy(model, trial, run_id="judged again", judge=judge)
        assert report.error == "TrialFailed"
    # The second attempt had the same answers, and paid nothing.
    assert shop.judgements() == before + 1
    mended.touch()
    report = shop.deploy(model, trial, run_id="judged again", judge=judge)
    assert (report.state, report.cause) == ("succeeded", None)
    assert shop.judgements() == before + 2


UPDATE = "UpdateEndpoint deploy.update"


@pytest.mark.thorough
def test_an_answer_that_is_not_json_fails_the_trial(shop: Shop) -> None:
    shop.serve("one")
    # The first expects nothing of the answer but that there is one.
    cases = [{"request": 14}, {"request": 14, "expected": {"name": "two"}}]
    report = shop.deploy("two", {"baking_s": 0, "trial": cases})
    assert (report.state, report.error) == ("failed", "TrialFailed")
    told = "Body of deploy.trial_2 is not JSON; case 2; the endpoint is as it was"
    assert report.cause == told
    assert (count(report, "UpdateEndpoint"), shop.ask()) == (0, "one")


CASES = [
    {"request": 1, "expected": {"name": "two"}, "max_latency_ms": 60_000},
    {"request": 13, "status": 500},
]


def test_an_endpoint_goes_back_where_it_answers_wrongly_after_its_update(shop: Shop) -> None:
    before = shop.serve("one")
    # The temporary endpoint has the same model, so what is wrong has to be wrong on the other.
    check = {"baking_s": 0, "trial": {"cases": CASES, "after": True}}
    if shop.on != "direct":
        well = shop.deploy("two", check)
        assert (well.state, well.cause) == ("succeeded", None)
        assert shop.ask() == "two"
    serves = shop.describe()["EndpointConfigName"]
    assert (serves == before) is (shop.on == "direct")
    put(shop.aws, f"{shop.name}-turns", "turns")
    report = shop.deploy(f"{shop.name}-turns", check)
    assert (report.state, report.error) == ("failed", "CheckFailed")
    assert report.cause is not None
    assert report.cause.endswith(
        f"case 1; expected two as name, got turned; the endpoint goes back to what it served "
        f"before: [{serves}]"
    )
    now = "one" if shop.on == "direct" else "two"
    assert (shop.ask(), shop.describe()["EndpointConfigName"]) == (now, serves)
    configs = shop.client.list_endpoint_configs(NameContains=f"{shop.name}-deploy")
    assert len(configs["EndpointConfigs"]) == (1 if shop.on == "direct" else 2)


@pytest.mark.parametrize("shop", BACKENDS[:1], indirect=True)
def test_a_further_attempt_still_knows_what_served_before(shop: Shop) -> None:
    before = shop.serve("one")
    put(shop.aws, f"{shop.name}-turns", "turns")
    denied: dict[str, Any] = {"matching": {"EndpointConfigName": before}, "status": 403}
    shop.aws.inject(Fault("sagemaker", "UpdateEndpoint", "AccessDeniedException", **denied))
    check = {"baking_s": 0, "trial": {"cases": CASES, "after": True}}
    first = shop.deploy(f"{shop.name}-turns", check, run_id="again")
    assert (first.error, shop.ask()) == ("CheckFailed", "turned")
    again = shop.deploy(f"{shop.name}-turns", check, run_id="again")
    assert (again.error, shop.ask()) == ("CheckFailed", "one")
    assert shop.describe()["EndpointConfigName"] == before


CHANGES = {"CreateModel", "CreateEndpointConfig", "CreateEndpoint", "UpdateEndpoint"}


def test_code_beside_the_model_serves_it_and_the_same_again_changes_nothing(
    shop: Shop, tmp_path: Path
) -> None:
    (tmp_path / "inference.py").write_text(CODE)
    shop.aws.client("s3").put_object(Bucket="models", Key=f"{shop.name}-bare/name", Body=b"bare")
    source = Source.at(tmp_path, "inference.py").model_dump(exclude_defaults=True)
    framework = {"name": "pytorch", "version": "2.6", "processor": "cpu"}
    bare: dict[str, Any] = {"source": source, "framework": framework}
    report, again = (shop.deploy(f"{shop.name}-bare", None, **bare) for _ in range(2))
    assert (report.state, report.cause) == ("succeeded", None)
    assert shop.ask() == "bare"
    assert (again.state, again.outputs) == ("succeeded", report.outputs)
    assert not CHANGES & {call.operation for call in again.calls if call.error_code is None}


def test_instances_follow_the_load_and_requests_are_captured(shop: Shop) -> None:
    hosting: dict[str, Any] = {
        "autoscaling": {
            "max_instances": 9,
            "invocations_per_minute": 50,
            "scheduled": {"noon": {"cron": "0 12 * * *", "min_instances": 6}},
        },
        "startup_timeout_s": 900,
        "routing": "least_outstanding_requests",
        "volume_kms_key": "alias/volumes",
        "tags": {"team": "shop"},
        "data_capture": {"uri": f"s3://models/captured-{shop.on}"},
    }
    report = shop.deploy("one", None, **hosting)
    assert (report.state, report.cause) == ("succeeded", None)
    scaling = shop.aws.client("application-autoscaling")
    resource = f"endpoint/{shop.name}/variant/main"
    listed = scaling.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=resource)
    [policy] = listed["ScalingPolicies"]
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 50
    listed = scaling.describe_scheduled_actions(ServiceNamespace="sagemaker", ResourceId=resource)
    [noon] = listed["ScheduledActions"]
    assert noon["ScalableTargetAction"] == {"MinCapacity": 6, "MaxCapacity": 9}
    endpoint = shop.describe()["EndpointArn"]
    shop.client.add_tags(ResourceArn=endpoint, Tags=[{"Key": "by", "Value": "hand"}])
    shop.client.update_endpoint_weights_and_capacities(
        EndpointName=shop.name,
        DesiredWeightsAndCapacities=[{"VariantName": "main", "DesiredInstanceCount": 7}],
    )
    hosting["tags"] = {"team": "store", "stage": "live"}
    scales = "Cannot update in-progress endpoint"
    busy = Fault("sagemaker", "UpdateEndpoint", "ValidationException", scales, times=3)
    shop.aws.inject(busy)
    updated = shop.deploy("two", None, **hosting)
    assert (updated.state, updated.cause) == ("succeeded", None)
    assert (shop.ask(), count(updated, "UpdateEndpoint")) == ("two", 4)
    tags = {t["Key"]: t["Value"] for t in shop.client.list_tags(ResourceArn=endpoint)["Tags"]}
    assert {"by": "hand", "team": "store", "stage": "live"}.items() <= tags.items()
    config = shop.client.describe_endpoint_config(
        EndpointConfigName=shop.describe()["EndpointConfigName"]
    )
    assert config["KmsKeyId"] == "alias/volumes"
    [variant] = config["ProductionVariants"]
    assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] == 900
    assert variant["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert shop.describe()["ProductionVariants"][0]["CurrentInstanceCount"] == 7
    s3, place = shop.aws.client("s3"), f"captured-{shop.on}/{shop.name}/main/"
    [written] = s3.list_objects_v2(Bucket="models", Prefix=place)["Contents"]
    body = s3.get_object(Bucket="models", Key=written["Key"])["Body"].read()
    captured = json.loads(body)["captureData"]
    assert json.loads(captured["endpointOutput"]["data"]) == {"name": "two"}
    assert captured["endpointInput"]["data"] == "1"


def test_a_queue_is_answered_into_s3_and_tells_topics(shop: Shop) -> None:
    sns, sqs = shop.aws.client("sns"), shop.aws.client("sqs")
    topic = sns.create_topic(Name=f"failures-{shop.on}")["TopicArn"]
    queue = sqs.create_queue(QueueName=f"failures-{shop.on}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn["QueueArn"])
    trial = {"trial": [{"request": 1, "expected": {"name": "one"}}], "baking_s": 0}
    report = shop.deploy(
        "one",
        trial,
        asynchronous={"output_uri": f"s3://models/answers-{shop.on}", "error_topic": topic},
        autoscaling={"min_instances": 0, "max_instances": 2, "backlog_per_instance": 5},
        smoke_test={"request": {"text": "hi"}},
    )
    assert (report.state, report.cause) == ("succeeded", None)
    outputs: Any = report.outputs
    assert outputs["deploy"]["answer"] == {"name": "one"}
    s3, runtime = shop.aws.client("s3"), shop.aws.client("sagemaker-runtime")

    def answer(request: bytes, key: str) -> bytes:
        s3.put_object(Bucket="models", Key=f"requests-{shop.on}", Body=request)
        given = runtime.invoke_endpoint_async(
            EndpointName=shop.name,
            InputLocation=f"s3://models/requests-{shop.on}",
            ContentType="application/json",
        )
        place = given[key].removeprefix("s3://models/")
        wait(lambda: s3.list_objects_v2(Bucket="models", Prefix=place)["KeyCount"] == 1)
        return bytes(s3.get_object(Bucket="models", Key=place)["Body"].read())

    assert json.loads(answer(b"1", "OutputLocation")) == {"name": "one"}
    assert b"this model answers nothing" in answer(b"13", "FailureLocation")
    received = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"]
    told = json.loads(json.loads(received[0]["Body"])["Message"])
    assert told["invocationStatus"] == "Failed"


@pytest.mark.parametrize(
    ("failures", "error", "cause"),
    [
        (None, "AnswerMissing", "the endpoint serves, and has not answered the smoke_test"),
        (
            *("s3://models/failures", "AnswerFailed"),
            "stage deploy: the endpoint serves, and answered the smoke_test with an error: ",
        ),
    ],
)
def test_a_smoke_test_from_a_queue_that_is_not_answered_fails_the_run(
    failures: str | None, error: str, cause: str, shop: Shop
) -> None:
    queue = {"output_uri": "s3://models/answers", "failure_uri": failures}
    report = shop.deploy(
        "one",
        {"baking_s": 0},
        asynchronous={name: uri for name, uri in queue.items() if uri is not None},
        smoke_test={"request": 13},
    )
    assert (report.state, report.error) == ("failed", error)
    assert report.cause is not None
    assert cause in report.cause
    assert ("this model answers nothing" in report.cause) is (failures is not None)
    assert shop.describe()["EndpointStatus"] == "InService"


def test_a_request_starts_the_first_instance_of_an_endpoint_that_rests(shop: Shop) -> None:
    hosting: dict[str, Any] = {
        "asynchronous": {"output_uri": "s3://models/rested"},
        "autoscaling": {
            "min_instances": 0,
            "max_instances": 2,
            "backlog_per_instance": 5,
            "from_zero": True,
        },
    }
    assert shop.deploy("one", {"baking_s": 0}, **hosting).cause is None
    shop.client.update_endpoint_weights_and_capacities(
        EndpointName=shop.name,
        DesiredWeightsAndCapacities=[{"VariantName": "main", "DesiredInstanceCount": 0}],
    )
    report = shop.deploy("two", {"baking_s": 0}, **hosting, smoke_test={"request": 1})
    assert (report.state, report.cause) == ("succeeded", None)
    outputs: Any = report.outputs
    assert outputs["deploy"]["answer"] == {"name": "two"}
    assert shop.describe()["ProductionVariants"][0]["CurrentInstanceCount"] == 1
    cloudwatch = shop.aws.client("cloudwatch")
    [alarm] = cloudwatch.describe_alarms(AlarmNames=[f"{shop.name}-from-zero"])["MetricAlarms"]
    assert alarm["MetricName"] == "HasBacklogWithoutCapacity"


def test_an_endpoint_without_instances_serves(shop: Shop) -> None:
    serverless: dict[str, Any] = {"instance_type": None, "serverless": {"memory_mb": 1024}}
    for model in ("one", "two"):
        report = shop.deploy(model, {}, **serverless)
        assert (report.state, report.cause) == ("succeeded", None)
        assert shop.ask() == model


def test_a_quota_that_does_not_suffice_has_a_name_of_its_own(shop: Shop) -> None:
    told = "The account-level service limit 'ml.m5.large for endpoint usage' is 2 Instances."
    first = Fault("sagemaker", "CreateEndpoint", "ResourceLimitExceeded", told, status=400)
    shop.aws.inject(first)
    created = shop.deploy("one", {"baking_s": 0})
    shop.serve("one")
    shop.aws.inject(Fault("sagemaker", "UpdateEndpoint", "ResourceLimitExceeded", told, status=400))
    updated = shop.deploy("two", {"baking_s": 0})
    for report, step in ((created, "CreateEndpoint deploy.create"), (updated, UPDATE)):
        assert (report.state, report.error) == ("failed", "EndpointQuotaExceeded")
        assert report.cause is not None
        assert report.cause.startswith(f"{step}: {told}; what served before serves on; ")
    assert shop.ask() == "one"


def test_machines_that_are_not_available_are_replaced_by_the_next_type(shop: Shop) -> None:
    pools: dict[str, Any] = {"fallbacks": ["ml.m5.xlarge"], "capacity_timeout_s": 300}
    lacking = Fault.capacity(shop.name, instance_type="ml.m5.large")
    shop.aws.inject(lacking)
    assert shop.deploy("one", {"baking_s": 0}, **pools).state == "succeeded"
    [variant] = shop.describe()["ProductionVariants"]
    counts = {
        each["InstanceType"]: each["CurrentInstanceCount"] for each in variant["InstancePools"]
    }
    assert counts == {"ml.m5.large": 0, "ml.m5.xlarge": 2}
    for each in (lacking, Fault.capacity(shop.name, instance_type="ml.m5.xlarge")):
        shop.aws.inject(each)
    report = shop.deploy("two", {"baking_s": 0}, **pools)
    assert (report.state, report.error) == ("failed", "EndpointRolledBack")
    assert shop.ask() == "one"


CONTAINER = """
import http.server
import json
import os
import pathlib
import sys

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/ping" and "mute" not in sys.argv else 503)
        self.end_headers()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        folder = pathlib.Path(os.environ["SAGEMAKER_BASE_DIR"], "model")
        self.wfile.write(json.dumps({"name": "own " + (folder / "name").read_text()}).encode())

port = int(os.environ["SAGEMAKER_BIND_TO_PORT"])
http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers).serve_forever()
"""


def test_a_container_of_ones_own_serves_and_one_that_never_answers_ping_changes_nothing(
    shop: Shop, tmp_path: Path
) -> None:
    (tmp_path / "serve.py").write_text(CONTAINER)

    def container(*arguments: str) -> dict[str, Any]:
        command = [sys.executable, "serve.py", *arguments]
        local = {"command": command, "directory": str(tmp_path)}
        return {"local": local, "startup_timeout_s": 60}

    # The endpoint of a creation that failed can only be deleted.
    created = shop.deploy("one", {"baking_s": 0}, **container("mute"))
    assert (created.state, created.error) == ("failed", "EndpointFailed")
    unanswered = "did not pass the ping health check. it did not answer GET /ping within 60 s"
    assert unanswered in str(created.cause)
    assert str(created.cause).endswith("; delete it, and run again")
    again = shop.deploy("one", {"baking_s": 0}, **container("mute"))
    assert (again.state, again.error) == ("failed", "EndpointNotUsable")
    told = f"endpoint {shop.name} is Failed and can't be updated: "
    assert str(again.cause).startswith(told)
    assert str(again.cause).endswith("; delete it, and run again")
    shop.close()

    assert shop.deploy("one", {"baking_s": 0}, **container()).state == "succeeded"
    updated = shop.deploy("two", {"baking_s": 0}, **container("mute"))
    assert (updated.state, updated.error) == ("failed", "EndpointRolledBack")
    assert shop.ask() == "own one"


@pytest.mark.parametrize("shop", BACKENDS[:2], indirect=True)
def test_a_model_that_does_not_start_fails_its_trial(shop: Shop) -> None:
    shop.serve("one")
    shop.aws.client("s3").put_object(Bucket="models", Key=f"{shop.name}-empty/name", Body=b"none")
    report = shop.deploy(f"{shop.name}-empty", {"baking_s": 0, "trial": [{"request": 1}]})
    assert (report.state, report.error) == ("failed", "TrialFailed")
    assert "missing code/inference.py" in str(report.cause)
    assert count(report, "UpdateEndpoint") == 0
    listed = shop.client.list_endpoints()["Endpoints"]
    assert [each["EndpointName"] for each in listed] == [shop.name]


@pytest.mark.parametrize("shop", BACKENDS[:2], indirect=True)
def test_an_update_whose_response_is_lost_is_done_once(shop: Shop) -> None:
    shop.serve("one")
    lost = Fault(
        "sagemaker", "UpdateEndpoint", "InternalFailure", "lost", status=500, after_effect=True
    )
    shop.aws.inject(lost)
    report = shop.deploy("two", CANARY)
    assert (report.state, report.cause) == ("succeeded", None)
    assert shop.ask() == "two"


IN_PROGRESS = "Cannot update in-progress endpoint"


def test_an_endpoint_that_someone_else_updates_meanwhile_is_theirs(shop: Shop) -> None:
    before = shop.serve("one")
    theirs = shop.make(f"{shop.name}-theirs", "one", "main")
    request = {"EndpointName": shop.name, "EndpointConfigName": theirs}
    meanwhile = {"request": {"someone_else": "update_endpoint", "request": request}}
    # Theirs may be over by the time of this run's, which has a field more.
    own = {"EndpointName": shop.name, "RetainAllVariantProperties": None}
    shop.aws.inject(
        Fault("sagemaker", "UpdateEndpoint", "ValidationException", IN_PROGRESS, matching=own)
    )
    report = shop.deploy("two", {"trial": [meanwhile]})
    assert (report.state, report.error) == ("failed", "EndpointTaken")
    assert report.cause is not None
    assert report.cause.startswith(
        f"stage deploy: endpoint {shop.name} serves {theirs}, which another deployment gave it "
        "meanwhile, "
    )
    assert (shop.describe()["EndpointConfigName"], shop.ask()) == (theirs, "one")
    assert before != theirs


def test_an_endpoint_that_someone_else_scales_is_updated_afterwards(shop: Shop) -> None:
    shop.serve("one")
    busy = Fault("sagemaker", "UpdateEndpoint", "ValidationException", IN_PROGRESS)
    shop.aws.inject(busy)
    report = shop.deploy("two", {"baking_s": 0})
    assert (report.state, report.cause) == ("succeeded", None)
    assert (count(report, "UpdateEndpoint"), shop.ask()) == (2, "two")
