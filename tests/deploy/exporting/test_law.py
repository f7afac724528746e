"""Deployed, as a stack and as a Terraform configuration, a pipeline has the same resources."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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
    OWN_ROLE,
    REGION,
    TOPIC,
    VALUES,
    Case,
    batch,
    digits,
    events,
)

pytestmark = pytest.mark.slow

PLACE = {"AWS::AccountId": ACCOUNT, "AWS::Region": REGION}
STACK = {**PLACE, **VALUES, "Subnet": "subnet-0123456789abcdef0"}
KINDS = ("Role", "Rule", "Schedule", "StateMachine")


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    """An account with what the pipelines expect: buckets, a topic, a role of the user's own."""
    anyone = {"Effect": "Allow", "Action": "sts:AssumeRole"}
    services = [f"{name}.amazonaws.com" for name in ("states", "scheduler", "events")]
    trust = {"Version": "2012-10-17", "Statement": [{**anyone, "Principal": {"Service": services}}]}
    publish = {"Effect": "Allow", "Action": "sns:Publish", "Resource": TOPIC}
    told = {"Statement": [{**publish, "Principal": {"Service": "events.amazonaws.com"}}]}
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


def exported(case: Case) -> Export:
    options: dict[str, Any] = {**case.place, **case.options}
    return export(case.pipeline, parameters=case.given, **options)


@pytest.mark.parametrize("make", CASES)
def test_both_exports_are_the_deployment(
    make: Callable[[Path], Case], aws: EmbeddedAws, tmp_path: Path
) -> None:
    case = make(tmp_path)
    there, made = deployed(case, aws), exported(case)
    assert len(there) >= 2
    template = json.loads(cloudformation.template(made).text(as_json=True))
    assert resolving.compared(resolving.cloudformation(template, STACK)) == there
    configuration = json.loads(terraform.text(made))
    assert resolving.compared(resolving.terraform(configuration, STACK)) == there


def test_another_account_and_region_have_theirs(tmp_path: Path) -> None:
    """What the placeholders stand for is the account's, in names, policies and links."""
    case, place = digits(tmp_path), {"AWS::AccountId": "999999999999", "AWS::Region": "eu-west-3"}
    document = cloudformation.template(exported(case)).document
    found = resolving.cloudformation(document, {**STACK, **place})
    assert ACCOUNT not in repr(found)
    assert REGION not in repr([each for each in found if not isinstance(each, StateMachine)])
    assert "digits-eu-west-3-states" in {each.name for each in found}


def test_the_same_pipeline_gives_the_same_bytes(tmp_path: Path) -> None:
    case = events(tmp_path)

    def texts() -> list[str]:
        template = cloudformation.template(exported(case))
        return [template.text(), template.text(as_json=True), terraform.text(exported(case))]

    assert texts() == texts()


def test_no_placeholder_is_left_in_a_text(tmp_path: Path) -> None:
    for make in CASES:
        made = exported(make(tmp_path))
        texts = [cloudformation.template(made).text(), terraform.text(made)]
        assert not [c for text in texts for c in text if "\ue000" <= c <= "\uf8ff"]


@pytest.mark.parametrize("place", [{}, {"account": ACCOUNT}, {"region": REGION}])
def test_a_role_that_is_made_is_never_left_out(place: dict[str, Any], tmp_path: Path) -> None:
    """The pipeline names it with an account and a region, which a template for others has not."""
    case = batch(tmp_path)
    with pytest.raises(DeployError, match=r"names role batch-us-east-1-batch.*--account"):
        export(case.pipeline, parameters=case.given, **place)


def test_a_role_of_the_users_own_is_not_exported(tmp_path: Path) -> None:
    case = digits(tmp_path)
    made = export(case.pipeline, parameters=case.given, role_arn=OWN_ROLE)
    assert made.account == ACCOUNT
    types = {e["Type"] for e in cloudformation.template(made).document["Resources"].values()}
    assert "AWS::IAM::Role" not in types
