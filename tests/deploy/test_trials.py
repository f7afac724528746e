"""Two versions of a pipeline that get runs at once share its role, its companion and its input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.deploy import Deployment, destruction, promotion, step_functions
from orchestration.deploy.identities import identities
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws
from tests.deploy.pipelines import ACCOUNT, short_pause
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow  # starts the embedded AWS

MACHINE = ACCOUNT.arn("states", "stateMachine:telling")
CANARY = {"name": "live", "canary": {"percent": 10, "minutes": 30}}
NIGHTLY = {"cron": "30 6 * * *"}
TRIGGER = {"s3": {"bucket": "incoming"}}


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003, enforce_iam=True) as aws:
        s3 = aws.client("s3")
        for bucket in ("workspace", "incoming"):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket="incoming", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        for topic in "abc":
            aws.client("sns").create_topic(Name=topic)
        aws.provide(roles=[ROLE])
        yield aws


@pytest.fixture
def aws(embedded: EmbeddedAws) -> Iterator[EmbeddedAws]:
    yield embedded
    destruction("telling", session=embedded).apply(stop=True, sleep=short_pause)


def telling(topic: str, alias: Any = CANARY, **fields: Any) -> Pipeline:
    """A pipeline that sends a message; ``topic`` is all that its role has to allow."""
    request = {"TopicArn": ACCOUNT.arn("sns", topic), "Message": "done"}
    call = {"kind": "aws_call", "service": "sns", "operation": "Publish", "request": request}
    given: dict[str, Any] = {
        "name": "telling",
        "region": "us-east-1",
        "workspace": "s3://workspace/telling",
        "role": ROLE,
        "overlap": "allow",
        "step_functions": {"alias": alias},
        "stages": {"tell": call},
    }
    return Pipeline.parse({**given, **fields})


def deploy(aws: EmbeddedAws, made: Pipeline, **parameters: str) -> Deployment:
    return step_functions(made, session=aws, parameters=parameters, sleep=lambda _: None)


def weights(aws: EmbeddedAws) -> dict[int, int]:
    found = aws.client("stepfunctions").describe_state_machine_alias(
        stateMachineAliasArn=f"{MACHINE}:live"
    )
    return {
        int(route["stateMachineVersionArn"].rpartition(":")[2]): route["weight"]
        for route in found["routingConfiguration"]
    }


def ended(aws: EmbeddedAws, version: int) -> str:
    """The status of a run of a version."""
    states = aws.client("stepfunctions")
    begun = states.start_execution(stateMachineArn=f"{MACHINE}:{version}", input="{}")

    def run() -> dict[str, Any]:
        return dict(states.describe_execution(executionArn=begun["executionArn"]))

    return str(wait(run, lambda found: found["status"] != "RUNNING")["status"])


def topics(aws: EmbeddedAws) -> set[str]:
    """The topics that the role lets the runs tell."""
    policy = aws.client("iam").get_role_policy(
        RoleName="telling-us-east-1-states", PolicyName="orchestration"
    )["PolicyDocument"]
    allowed = [each["Resource"] for each in policy["Statement"] if "sns:" in each["Action"][0]]
    assert len({each["Sid"] for each in policy["Statement"]}) == len(policy["Statement"])
    return {arn.rpartition(":")[2] for arns in allowed for arn in arns}


def test_the_role_allows_what_both_versions_need_until_the_trial_is_over(aws: EmbeddedAws) -> None:
    deploy(aws, telling("a"))
    deploy(aws, telling("b"))
    assert (weights(aws), topics(aws)) == ({1: 90, 2: 10}, {"a", "b"})
    assert [ended(aws, version) for version in (1, 2)] == ["SUCCEEDED", "SUCCEEDED"]
    assert deploy(aws, telling("b")).changes == ()
    deploy(aws, telling("c"))
    assert (weights(aws), topics(aws)) == ({1: 90, 3: 10}, {"a", "b", "c"})
    assert deploy(aws, telling("c")).changes == ()
    promotion("telling", session=aws).apply(force=True)
    narrowed = deploy(aws, telling("c"))
    assert [each.summary for each in narrowed.changes] == [
        "update role telling-us-east-1-states: permissions"
    ]
    assert topics(aws) == {"c"}
    # Without a trial, the version before gets no more runs.
    deploy(aws, telling("a", {"name": "live"}))
    assert topics(aws) == {"a"}


def test_whoever_deploys_a_trial_may_promote_it(aws: EmbeddedAws) -> None:
    every = identities(telling("a"), ACCOUNT)
    policy = next(each.policy for each in every if each.who == "deployer")
    for topic in "ab":
        deploy(aws, telling(topic))
    role = ACCOUNT.role_arn("deployer")
    aws.provide(roles=[role])
    aws.client("iam").put_role_policy(
        RoleName="deployer", PolicyName="least", PolicyDocument=json.dumps(policy)
    )
    promotion("telling", session=aws.acting_as(role)).apply(force=True)
    assert weights(aws) == {2: 100}


def test_an_input_that_the_version_before_can_not_take_is_refused(aws: EmbeddedAws) -> None:
    kept = {"parameters": {"kept": {}}, "schedule": NIGHTLY, "trigger": TRIGGER}
    trigger = {**TRIGGER, "parameters": {"kept": "z"}}
    deploy(aws, telling("a", **{**kept, "trigger": trigger}), kept="z")
    changed = {"parameters": {"extra": {"default": "x"}}, "schedule": NIGHTLY, "trigger": TRIGGER}
    with pytest.raises(DeployError) as refused:
        deploy(aws, telling("b", **changed), extra="z")
    assert str(refused.value).splitlines() == [
        "pipeline telling can't be tried beside version 1, which gets most of the runs; deploy it "
        "without canary or linear:",
        "  - the schedule would give parameter 'extra', which it does not have",
        "  - the schedule would not give parameter 'kept', without which it does not run",
        "  - the trigger would give parameter 'extra', which it does not have",
        "  - the trigger would not give parameter 'kept', without which it does not run",
    ]
    assert (weights(aws), topics(aws)) == ({1: 100}, {"a"})
    found = aws.client("scheduler").get_schedule(Name="telling")
    assert "extra" not in json.loads(found["Target"]["Input"])
    deploy(aws, telling("b", {"name": "live"}, **changed), extra="z")
    assert weights(aws) == {2: 100}
    # A default is not given, so the version before does not hear of it.
    deploy(aws, telling("b", **{**changed, "parameters": {"more": {"default": "y"}}}))
    assert weights(aws) == {2: 90, 3: 10}


def test_a_companion_that_would_go_is_refused(aws: EmbeddedAws) -> None:
    def training(*names: str) -> dict[str, Any]:
        job = {
            "kind": "training_job",
            "image": "image",
            "cluster": {"instance_type": "ml.c5.xlarge"},
            "max_runtime_s": 1000,
        }
        return {"stages": dict.fromkeys(names, job)}

    deploy(aws, telling("a", **training("fit", "tune")))
    with pytest.raises(
        DeployError, match="telling-companion, which cleans up after its runs, would"
    ):
        deploy(aws, telling("a"))
    with pytest.raises(
        DeployError, match="telling-companion would no longer find all that its runs"
    ):
        deploy(aws, telling("a", **training("fit")))
    assert weights(aws) == {1: 100}
    deploy(aws, telling("a", **training("fit", "tune", "more")))
    assert weights(aws) == {1: 90, 2: 10}
