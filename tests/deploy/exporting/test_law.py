"""Deployed, as a stack and as a Terraform configuration, a pipeline has the same resources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from orchestration.deploy import Account, StateMachine, current, names_of, step_functions
from orchestration.deploy.exporting import Export, cloudformation, export, terraform
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws
from tests.deploy.exporting import resolving
from tests.deploy.exporting.cases import (
    ACCOUNT,
    CASES,
    REGION,
    TOPIC,
    VALUES,
    Case,
    batch,
    digits,
    events,
    own_role,
)
from tests.deploy.exporting.conftest import Made, Make

pytestmark = pytest.mark.slow

PLACE = {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION}
STACK = {**PLACE, **VALUES, "Subnet": "subnet-0123456789abcdef0"}
KINDS = ("Alarm", "Alias", "LogGroup", "Role", "Rule", "Schedule", "StateMachine")


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    """An account with what the pipelines expect: buckets, a topic, a role of the user's own."""
    anyone = {"Effect": "Allow", "Action": "sts:AssumeRole"}
    services = [f"{name}.amazonaws.com" for name in ("states", "scheduler", "events")]
    trust = {"Version": "2012-10-17", "Statement": [{**anyone, "Principal": {"Service": services}}]}
    publish = {"Effect": "Allow", "Action": "sns:Publish", "Resource": TOPIC}
    publishers = [f"{name}.amazonaws.com" for name in ("events", "cloudwatch")]
    told = {"Statement": [{**publish, "Principal": {"Service": publishers}}]}
    with EmbeddedAws() as embedded:
        s3, sns = embedded.client("s3"), embedded.client("sns")
        for bucket in ("workspace", "incoming"):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket="incoming", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        sns.create_topic(Name="alerts")
        sns.set_topic_attributes(
            TopicArn=TOPIC, AttributeName="Policy", AttributeValue=json.dumps(told)
        )
        embedded.client("iam").create_role(
            RoleName="runner",
            Path="/platform/",
            AssumeRolePolicyDocument=json.dumps(trust),
        )
        yield embedded


def deployed(case: Case, aws: EmbeddedAws) -> dict[tuple[str, str], Any]:
    """What is in the account after a deployment."""
    step_functions(case.pipeline, session=aws, parameters=case.values, **case.options)
    names = replace(names_of(case.pipeline.name, Account(id=ACCOUNT, region=REGION)), sources=())
    return resolving.compared(_resources(current(aws, names)))


def _resources(value: Any) -> Iterator[Any]:
    """Every resource that a value holds."""
    if type(value).__name__ in KINDS:
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _resources(each)
    elif type(value).__name__ in ("Current", "Companion"):
        for each in fields(value):
            yield from _resources(getattr(value, each.name))


@pytest.mark.parametrize("make", CASES)
def test_both_exports_are_the_deployment(make: Make, aws: EmbeddedAws, made: Made) -> None:
    case, export = made(make)
    there = deployed(case, aws)
    assert len(there) >= 2
    template = json.loads(cloudformation.template(export).text(as_json=True))
    assert resolving.compared(resolving.cloudformation(template, STACK)) == there
    configuration = json.loads(terraform.text(export))
    assert resolving.compared(resolving.terraform(configuration, STACK)) == there


def test_another_account_and_region_have_theirs(made: Made) -> None:
    """What the placeholders stand for is the account's, in names, policies and links."""
    place = {"AWS::AccountId": "999999999999", "AWS::Region": "eu-west-3"}
    document = cloudformation.template(made(digits)[1]).document
    found = resolving.cloudformation(document, {**STACK, **place})
    assert ACCOUNT not in repr(found)
    assert REGION not in repr([each for each in found if not isinstance(each, StateMachine)])
    assert "digits-eu-west-3-states" in {each.name for each in found}


def texts(export: Export) -> list[str]:
    template = cloudformation.template(export)
    return [template.text(), template.text(as_json=True), terraform.text(export)]


def test_the_same_pipeline_gives_the_same_bytes(made: Made, tmp_path: Path) -> None:
    case = events(tmp_path)
    assert texts(made(events)[1]) == texts(export(case.pipeline, parameters=case.given))


@pytest.mark.parametrize("make", [digits, events])
def test_no_placeholder_is_left_in_a_text(make: Make, made: Made) -> None:
    every = "".join(texts(made(make)[1]))
    assert [character for character in every if "\ue000" <= character <= "\uf8ff"] == []


@pytest.mark.parametrize("place", [{}, {"account": ACCOUNT}, {"region": REGION}])
def test_a_role_that_is_made_is_never_left_out(place: dict[str, Any], made: Made) -> None:
    """The pipeline names it with an account and a region, which a template for others has not."""
    case, _ = made(batch)
    with pytest.raises(DeployError, match=r"names role batch-us-east-1-batch.*--account"):
        export(case.pipeline, parameters=case.given, **place)


def test_a_role_of_the_users_own_is_not_exported(made: Made) -> None:
    _, export = made(own_role)
    assert export.account == ACCOUNT
    types = {e["Type"] for e in cloudformation.template(export).document["Resources"].values()}
    assert "AWS::IAM::Role" not in types
