"""Estimates against arithmetic done by hand, on pipelines in one region with listed prices."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.catalog import prices, rate
from orchestration.errors import PipelineError
from orchestration.pricing import Assumptions, Estimate, Expected, Line, estimate
from orchestration.pricing.assumptions import parse

IMAGE = "111122223333.dkr.ecr.us-west-2.amazonaws.com/training:1"
REGION = "us-west-2"
M5 = prices()["ml.m5.xlarge"].usd_per_hour
"""Of this region, so that it is no estimate."""
GRACE_H = 120 / 3600
SUBNET = {"subnet": "subnet-0123456789abcdef0", "security_groups": ["sg-0123456789abcdef0"]}


def job(**further: Any) -> dict[str, Any]:
    return {
        "kind": "training_job",
        "image": IMAGE,
        "cluster": {"instance_type": "ml.m5.xlarge", "instance_count": 2},
        "max_runtime_s": 7200,
        **further,
    }


def estimated(
    stages: dict[str, Any], parameters: dict[str, Any] | None = None, **assumed: Any
) -> Estimate:
    data = {
        "name": "costs",
        "region": REGION,
        "role": "arn:aws:iam::111122223333:role/r",
        "workspace": "s3://bucket/costs",
        "parameters": {name: {} for name in parameters or {}},
        "stages": stages,
    }
    workflow = Pipeline.parse(data).lower()
    return estimate(workflow, Assumptions(**assumed), region=REGION, parameters=parameters or {})


def line(found: Estimate, what: str) -> Line:
    [match] = [line for line in found.lines if line.what.startswith(what)]
    return match


def test_a_job_costs_at_most_its_limit_on_all_its_machines() -> None:
    found = line(estimated({"train": job()}), "2 x ml.m5.xlarge")
    assert found.most_usd == pytest.approx(2 * (2 + GRACE_H) * M5)
    assert found.expected_usd is None
    assert "--assume train.hours" in found.lacks


def test_expected_hours_come_from_assumptions_before_plans() -> None:
    planned = {"train": Expected(1.5, "planned")}
    found = line(estimated({"train": job()}, expected=planned), "2 x")
    assert found.expected_usd == pytest.approx(2 * 1.5 * M5)
    assert "1.5 h planned" in found.notes
    given = estimated({"train": job()}, expected=planned, values={"train.hours": 0.5})
    assert line(given, "2 x").expected_usd == pytest.approx(2 * 0.5 * M5)


def test_logs_count_as_much_as_somebody_says() -> None:
    stages = {"train": job(), "again": job()}
    silent = estimated(stages, values={"train.log_gb": 4})
    [logs] = [each for each in silent.lines if each.what == "logs"]
    assert (logs.stage, logs.expected_usd) == ("train", 2.0)
    assert logs.most_usd == pytest.approx(2.2)
    assert silent.outside[0] == ("what jobs of again log: $0.5 a GB; --assume STAGE.log_gb=NUMBER")
    both = estimated(stages, values={"train.log_gb": 4, "again.log_gb": 0})
    assert not any("log" in text for text in both.outside)


def test_spot_saves_what_is_expected_and_nothing_at_most() -> None:
    spot = job(spot={"max_wait_s": 10_000}, checkpoints={})
    found = line(estimated({"t": spot}, values={"t.hours": 1}, spot_saving=0.6), "2 x")
    assert found.what.endswith(", spot")
    assert found.expected_usd == pytest.approx(2 * 1 * M5 * 0.4)
    assert found.most_usd == pytest.approx(2 * (2 + GRACE_H) * M5)


def test_further_tries_are_paid_at_most() -> None:
    found = line(estimated({"t": job(retry={"attempts": 3})}, values={"t.hours": 1}), "2 x")
    assert found.expected_usd == pytest.approx(2 * M5)
    assert found.most_usd == pytest.approx(3 * 2 * (2 + GRACE_H) * M5)


def test_a_dearer_fallback_counts_at_most_only() -> None:
    other = {"instance_type": "ml.m5.4xlarge", "instance_count": 2}
    cluster = {
        "instance_type": "ml.m5.xlarge", "instance_count": 2, "fallbacks": [other]
    }  # fmt: skip
    found = estimated({"t": job(cluster=cluster)}, values={"t.hours": 1})
    small, large = line(found, "2 x ml.m5.xlarge"), line(found, "2 x ml.m5.4xlarge")
    dear = prices()["ml.m5.4xlarge"].usd_per_hour
    assert [small.expected_usd, small.most_usd] == pytest.approx([2 * M5, 0])
    assert [large.expected_usd, large.most_usd] == pytest.approx([0, 2 * (2 + GRACE_H) * dear])


def test_machines_of_a_parameter_are_known_when_it_is_given() -> None:
    cluster = {"instance_type": {"parameter": "machine"}, "instance_count": 2}
    data = {"train": job(cluster=cluster)}
    assert line(estimated(data, {"machine": "ml.m5.xlarge"}), "2 x ml.m5.xlarge").most_usd
    unknown = estimated(data, {"machine": None})
    assert "-p" in line(unknown, "2 x ?").lacks
    assert unknown.run.most_usd is None


def test_no_price_is_no_zero() -> None:
    found = estimated({"train": job(cluster={"instance_type": "ml.r5.xlarge"})})
    assert line(found, "1 x ml.r5.xlarge").lacks == "no price is known for ml.r5.xlarge"
    assert found.run.most_usd is None
    assert found.run.known_most_usd >= 0


def test_a_call_without_a_price_is_named() -> None:
    call = {"kind": "aws_call", "service": "lambda", "operation": "Invoke",
            "request": {"FunctionName": "f"}}  # fmt: skip
    found = estimated({"call": call})
    assert found.unpriced == ("lambda:Invoke",)


def test_a_loop_over_a_list_is_paid_for_each_element() -> None:
    cluster = {"instance_type": {"each": "item"}, "instance_count": 1}
    loop = {"items": ["ml.m5.xlarge", "ml.m5.2xlarge"]}
    found = estimated({"t": job(cluster=cluster, for_each=loop)}, values={"t.hours": 1})
    assert line(found, "1 x ml.m5.xlarge").expected_usd == pytest.approx(M5)
    dear = prices()["ml.m5.2xlarge"].usd_per_hour
    assert line(found, "1 x ml.m5.2xlarge").expected_usd == pytest.approx(dear)


def test_a_file_system_costs_while_it_may_exist() -> None:
    staging = {
        "kind": "data_staging", "source": "s3://source/data",
        "destination": {"kind": "fsx_lustre", **SUBNET},
    }  # fmt: skip
    channel = {"kind": "fsx_lustre", "file_system": {"ref": "staging.file_system"}, "path": "/a"}
    train = job(
        channels={"training": channel},
        vpc={"subnets": [SUBNET["subnet"]], "security_groups": SUBNET["security_groups"]},
    )
    found = line(estimated({"staging": staging, "train": train}, values={"train.hours": 1}), "FSx")
    scratch = rate("lustre.SCRATCH_2", REGION)
    assert scratch is not None
    assert found.expected_usd == pytest.approx(1200 * 1 / 730 * scratch.usd)
    assert found.most is not None
    # The job's own two hours, and those that creating, importing and deleting may take.
    assert found.most * 730 / 1200 > 2 + 1 + 4


def test_an_endpoint_is_paid_by_the_month_between_the_bounds_of_its_scaling() -> None:
    deploy = {
        "kind": "deployment", "model_data": "s3://bucket/model.tar.gz", "model_archive": True,
        "image": IMAGE,
        "instance_type": "ml.m5.xlarge",
        "autoscaling": {"min_instances": 1, "max_instances": 4, "invocations_per_minute": 100},
    }  # fmt: skip
    found = estimated({"deploy": deploy}, runs_per_month=10)
    endpoint = line(found, "endpoint, 1 to 4 x ml.m5.xlarge")
    assert endpoint.expected_usd == pytest.approx(730 * M5)
    assert endpoint.most_usd == pytest.approx(4 * 730 * M5)
    assert found.month is not None
    assert found.month.most_usd == pytest.approx(
        10 * (found.run.most_usd or 0) + (found.standing.most_usd or 0)
    )


def test_a_dearer_type_that_an_endpoint_falls_back_to_counts_at_most_only() -> None:
    deploy = {
        "kind": "deployment", "model_data": "s3://bucket/model.tar.gz", "model_archive": True,
        "image": IMAGE,
        "instance_type": "ml.m5.xlarge",
        "fallbacks": ["ml.m5.large", "ml.m5.4xlarge"],
    }  # fmt: skip
    found = estimated({"deploy": deploy})
    small, large = line(found, "endpoint, 1 x ml.m5.xlarge"), line(found, "endpoint, 1 x ml.m5.4x")
    dear = prices()["ml.m5.4xlarge"].usd_per_hour
    assert [small.expected_usd, small.most_usd] == pytest.approx([730 * M5, 0])
    assert [large.expected_usd, large.most_usd] == pytest.approx([0, 730 * dear])


def test_an_endpoint_that_rests_costs_its_alarms_at_least() -> None:
    scaling = {"min_instances": 0, "max_instances": 2, "backlog_per_instance": 5}
    deploy: dict[str, Any] = {
        "kind": "deployment", "model_data": "s3://bucket/model.tar.gz", "model_archive": True,
        "image": IMAGE, "instance_type": "ml.m5.xlarge",
        "asynchronous": {"output_uri": "s3://bucket/answers"},
        "autoscaling": {**scaling, "from_zero": True},
    }  # fmt: skip
    found = estimated({"deploy": deploy})
    endpoint = line(found, "endpoint, 0 to 2 x ml.m5.xlarge")
    assert endpoint.expected_usd == 0
    assert endpoint.most_usd == pytest.approx(2 * 730 * M5)
    # Two of target tracking, and the one that starts the first instance.
    assert line(found, "CloudWatch alarm").expected == 3
    tracking = {**deploy, "autoscaling": scaling}
    assert line(estimated({"deploy": tracking}), "CloudWatch alarm").expected == 2


def test_each_element_of_a_loop_has_an_endpoint_of_its_own() -> None:
    deploy = {
        "kind": "deployment", "model_data": {"each": "uri"}, "model_archive": True, "image": IMAGE,
        "instance_type": {"each": "type"}, "endpoint_name": {"each": "name"},
        "update": {"alarms": {"errors_percent": 1}},
        "for_each": {"items": [
            {"uri": "s3://bucket/a.tar.gz", "type": "ml.m5.xlarge", "name": "a"},
            {"uri": "s3://bucket/b.tar.gz", "type": "ml.m5.xlarge", "name": "b"},
        ], "fields": {"uri": "string", "type": "string", "name": "string"}, "key": "name"},
    }  # fmt: skip
    found = estimated({"deploy": deploy})
    assert line(found, "endpoint, 1 x ml.m5.xlarge").expected_usd == pytest.approx(2 * 730 * M5)
    assert line(found, "CloudWatch alarm").expected == 2


def test_bounds_of_some_hours_are_within_those_of_a_month() -> None:
    scheduled = {"morning": {"cron": "0 7 * * *", "min_instances": 3, "max_instances": 9}}
    deploy = {
        "kind": "deployment", "model_data": "s3://bucket/model.tar.gz", "model_archive": True,
        "image": IMAGE,
        "instance_type": "ml.m5.xlarge",
        "autoscaling": {"max_instances": 4, "scheduled": scheduled},
    }  # fmt: skip
    endpoint = line(estimated({"deploy": deploy}), "endpoint, 1 to 9 x ml.m5.xlarge")
    assert endpoint.most_usd == pytest.approx(9 * 730 * M5)


def test_a_serverless_endpoint_is_paid_while_it_answers() -> None:
    deploy = {
        "kind": "deployment", "model_data": "s3://bucket/model.tar.gz", "model_archive": True,
        "image": IMAGE,
        "serverless": {"memory_mb": 2048},
    }  # fmt: skip
    assert "deploy.hours" in line(estimated({"deploy": deploy}), "serverless").lacks
    found = line(estimated({"deploy": deploy}, values={"deploy.hours": 3}), "serverless")
    assert found.expected_usd == pytest.approx(3 * 3600 * 2 * 0.00002)


def test_a_search_is_paid_for_all_its_jobs_within_its_own_time() -> None:
    tune: dict[str, Any] = {
        **job(), "kind": "tuning_job",
        "objective": {"metric": "loss", "direction": "min"},
        "metrics": {"loss": "loss=([0-9.]+)"},
        "ranges": {"lr": {"continuous": [0.1, 1.0]}},
        "limits": {"jobs": 10, "parallel": 2},
    }  # fmt: skip
    found = line(estimated({"tune": tune}, values={"tune.hours": 0.5}), "2 x")
    assert found.expected_usd == pytest.approx(10 * 0.5 * 2 * M5)
    assert found.most_usd == pytest.approx(10 * (2 + GRACE_H) * 2 * M5)
    tune["limits"] = {"jobs": 10, "parallel": 2, "runtime_s": 3600}
    bounded = line(estimated({"tune": tune}), "2 x")
    assert bounded.most_usd == pytest.approx(2 * (1 + GRACE_H) * 2 * M5)


def test_transfers_are_paid_by_what_they_copy() -> None:
    destination = {
        "kind": "s3", "copy_by": "datasync",
        "datasync_role": "arn:aws:iam::111122223333:role/d",
    }  # fmt: skip
    staging = {"kind": "data_staging", "source": "s3://source/data", "destination": destination}
    assert line(estimated({"staging": staging}), "DataSync, enhanced mode, data").most is None
    found = estimated({"staging": staging}, values={"staging.gb": 200})
    data = line(found, "DataSync, enhanced mode, data")
    assert data.expected_usd == pytest.approx(200 * 0.015)
    assert data.rate is not None
    assert data.rate.estimate
    assert data.most_usd == pytest.approx(200 * 0.015 * 1.1)


def test_transitions_are_those_that_runs_were_seen_to_have() -> None:
    """The README's examples took 83 to 86 and 100 to 106 (benchmarks/README.md).

    That was with a state more for each evaluation, of which there are four and two, and with
    four fewer for the deployment of digits, which asks first what is served.
    """
    for name, elements, seen in (
        ("digits", {"staging.elements": 3.0, "evaluate.elements": 4.0}, (75, 86)),
        ("llm_fsx", {"evaluate.elements": 2.0}, (38, 104)),
    ):
        workflow = Pipeline.load(f"dags/{name}.yaml").lower()
        found = estimate(
            workflow, Assumptions(values=elements), region=REGION, parameters={},
            definition=stepfunctions.render(workflow),
        )  # fmt: skip
        transitions = line(found, "Step Functions")
        assert transitions.expected is not None
        assert seen[0] <= transitions.expected * 1000 <= seen[1]


def test_all_mistakes_in_assumptions_are_told() -> None:
    pairs = ["train.hours=1", "trian.hours=1", "train.days=2", "train.gb=-1", "train"]
    with pytest.raises(PipelineError) as caught:
        parse(pairs, {"train"})
    messages = [problem.message for problem in caught.value.problems]
    assert "did you mean 'train'?" in messages[0]
    assert "unknown quantity 'days'" in messages[1]
    assert "a number from 0 on" in messages[2]
    assert "STAGE.QUANTITY=NUMBER" in messages[3]
