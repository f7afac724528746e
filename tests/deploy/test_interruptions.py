"""A deployment of everything there is, cut off at every call: the next one ends it right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from orchestration import (
    Cluster,
    DataStaging,
    Pipeline,
    S3Destination,
    Source,
    TrainingJob,
)
from orchestration.deploy import Resource, destruction, plan, step_functions
from orchestration.deploy.events.missed import Missed
from orchestration.deploy.sources import SourceFolder
from orchestration.local import EmbeddedAws
from tests.deploy import pipelines
from tests.deploy.pipelines import ACCOUNT, IMAGE
from tests.deploy.test_destroying import CutOff, Cutting
from tests.local.conftest import ROLE

pytestmark = pytest.mark.slow  # starts the embedded AWS

TOPIC = ACCOUNT.arn("sns", "alerts")
PARAMETERS = {"role": ROLE, "bucket": "workspace", "data": "s3://incoming/set"}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as embedded:
        s3, sns = embedded.client("s3"), embedded.client("sns")
        for bucket in ("workspace", "incoming"):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket="incoming", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        services = [f"{name}.amazonaws.com" for name in ("events", "cloudwatch")]
        publish = {"Effect": "Allow", "Action": "sns:Publish", "Resource": TOPIC}
        policy = {"Statement": [{**publish, "Principal": {"Service": services}}]}
        sns.create_topic(Name="alerts")
        sns.set_topic_attributes(
            TopicArn=TOPIC, AttributeName="Policy", AttributeValue=json.dumps(policy)
        )
        embedded.provide(roles=[ROLE])
        yield embedded


def everything(code: Path, **fields: Any) -> Pipeline:
    """A pipeline whose deployment makes every kind of resource that there is."""
    role = f"arn:aws:iam::{ACCOUNT.id}:role/all-us-east-1-"
    synced = S3Destination(copy_by="datasync", datasync_role=f"{role}datasync")
    listed = S3Destination(
        copy_by="batch", manifest="s3://lists/digits.csv", batch_role=f"{role}batch"
    )
    train = TrainingJob(
        name="train",
        image=IMAGE,
        source=Source.at(pipelines.source_folder(code), "train.py"),
        cluster=Cluster(instance_type="ml.c5.xlarge"),
    )
    copies = tuple(
        DataStaging(name=name, source="s3://incoming/set", destination=destination)
        for name, destination in (("synced", synced), ("listed", listed))
    )
    given: dict[str, Any] = {
        "name": "all",
        "stages": (*copies, train),
        "schedule": {"cron": "30 6 * * *"},
        "trigger": {"s3": {"bucket": "incoming", "prefix": "new/"}},
        "notify": {"on_failure": {"sns_topic": TOPIC}, "on_success": {"sns_topic": TOPIC}},
        "step_functions": {
            "logging": {"level": "ERROR", "retention_days": 30},
            "tracing": True,
            "alarms": {"sns_topic": TOPIC},
            "alias": {"name": "live"},
        },
    }
    return pipelines.copying(**{**given, **fields})


def cut_everywhere(aws: EmbeddedAws, act: Callable[[Cutting], object]) -> list[str]:
    """Act until it is not cut off any more; return the calls that changed something."""
    cutting = Cutting(aws)
    try:
        for _ in range(100):
            try:
                act(cutting)
            except CutOff:
                continue
            return cutting.made
        raise AssertionError(f"it does not end: {cutting.made}")
    finally:
        cutting.release()


def deploying(pipeline: Pipeline, **more: Any) -> Callable[[Any], Any]:
    return lambda session: step_functions(
        pipeline, session=session, parameters=PARAMETERS, sleep=lambda _: None, **more
    )


def test_every_kind_of_resource_is_destroyed_or_told(aws: EmbeddedAws, tmp_path: Path) -> None:
    made = deploying(everything(tmp_path))(aws).changes
    assert {type(change.subject) for change in made} == {*get_args(Resource)} - {Missed}
    role = aws.client("iam").create_role(RoleName="mine", AssumeRolePolicyDocument="{}")["Role"]
    aws.client("stepfunctions").update_state_machine(
        stateMachineArn=ACCOUNT.arn("states", "stateMachine:all"), roleArn=role["Arn"]
    )
    found = destruction("all", session=aws, logs=True)
    gone = {(change.resource, change.name) for change in found.changes}
    kept = {("source", each.name) for each in made if isinstance(each.subject, SourceFolder)}
    assert gone == {(change.resource, change.name) for change in made} - kept
    assert found.stays == ("role mine",)
    found.apply(sleep=lambda _: None)
    assert destruction("all", session=aws, logs=True).changes == ()
    aws.client("iam").delete_role(RoleName="mine")


@pytest.mark.thorough
def test_deploying_changing_renaming_and_destroying_may_be_cut_off_at_every_call(
    aws: EmbeddedAws, tmp_path: Path
) -> None:
    deploying(everything(tmp_path))(aws)
    changed = {
        "schedule": {"cron": "45 6 * * *", "parameters": {"data": "s3://other/set"}},
        "trigger": {"s3": {"bucket": "incoming", "prefix": "newer/"}},
        "tags": {"team": "vision"},
        "step_functions": {
            "logging": {"level": "ALL", "retention_days": 60},
            "alarms": {"sns_topic": TOPIC},
            "alias": {"name": "prod"},
        },
    }
    second = everything(tmp_path, **changed)
    updates = cut_everywhere(aws, deploying(second))
    assert len(updates) >= 20
    assert plan(second, session=aws, parameters=PARAMETERS).deployment.changes == ()
    third = everything(tmp_path, **changed, name="every")
    calls = cut_everywhere(aws, deploying(third, renamed_from="all"))
    assert len(calls) >= 60
    assert plan(third, session=aws, parameters=PARAMETERS).deployment.changes == ()
    destruction("all", session=aws, logs=True).apply(sleep=lambda _: None)
    assert destruction("all", session=aws, logs=True).changes == ()
    destroyed = cut_everywhere(
        aws,
        lambda session: destruction("every", session=session, logs=True).apply(
            sleep=lambda _: None
        ),
    )
    assert len(destroyed) >= 30
    assert destruction("every", session=aws, logs=True).changes == ()
