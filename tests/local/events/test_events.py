"""Events of S3, of the model registry and of one's own start what rules of EventBridge name."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow

PASSING = {"StartAt": "End", "States": {"End": {"Type": "Pass", "End": True}}}


class Heard:
    """A state machine that a rule starts, and the inputs that it got."""

    def __init__(self, aws: EmbeddedAws, pattern: Any, **target: Any) -> None:
        self.aws, name = aws, f"heard-{uuid.uuid4().hex[:8]}"
        created = aws.client("stepfunctions").create_state_machine(
            name=name, definition=json.dumps(PASSING), roleArn=ROLE
        )
        self.arn = created["stateMachineArn"]
        events = aws.client("events")
        events.put_rule(Name=name, EventPattern=json.dumps(pattern))
        target = {"Id": "1", "Arn": self.arn, "RoleArn": ROLE, **target}
        events.put_targets(Rule=name, Targets=[target])

    def listed(self) -> list[Any]:
        states = self.aws.client("stepfunctions")
        executions = states.list_executions(stateMachineArn=self.arn)["executions"]
        described = [
            states.describe_execution(executionArn=each["executionArn"]) for each in executions
        ]
        described.sort(key=lambda each: each["startDate"])
        return [json.loads(each["input"]) for each in described]

    def inputs(self, count: int = 1) -> list[Any]:
        return wait(self.listed, lambda found: len(found) >= count)


def bucket(aws: EmbeddedAws, *, tells: bool = True) -> str:
    name = f"incoming-{uuid.uuid4().hex[:8]}"
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=name)
    if tells:
        s3.put_bucket_notification_configuration(
            Bucket=name, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
    return name


def objects(name: str, key: Any) -> dict[str, Any]:
    return {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": [name]}, "object": {"key": [key]}},
    }


def test_new_objects_are_told_once_each_and_in_aws_s_form(aws: EmbeddedAws) -> None:
    name = bucket(aws)
    heard = Heard(aws, objects(name, {"wildcard": "new/*.csv"}))
    s3 = aws.client("s3")
    for key in ("old/a.csv", "new/a.txt", "new/a.csv"):
        s3.put_object(Bucket=name, Key=key, Body=b"1,2")
    s3.copy_object(Bucket=name, Key="new/b.csv", CopySource={"Bucket": name, "Key": "old/a.csv"})
    upload = s3.create_multipart_upload(Bucket=name, Key="new/c.csv")["UploadId"]
    place = {"Bucket": name, "Key": "new/c.csv", "UploadId": upload}
    part = s3.upload_part(**place, PartNumber=1, Body=b"1,2,3")
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    s3.complete_multipart_upload(**place, MultipartUpload={"Parts": parts})
    s3.delete_object(Bucket=name, Key="new/a.csv")
    events = heard.inputs(3)
    assert len(events) == 3
    found = {each["detail"]["object"]["key"]: each for each in events}
    reasons = {key: each["detail"]["reason"] for key, each in found.items()}
    assert reasons == {
        "new/a.csv": "PutObject",
        "new/b.csv": "CopyObject",
        "new/c.csv": "CompleteMultipartUpload",
    }
    event = found["new/a.csv"]
    assert (event["source"], event["resources"]) == ("aws.s3", [f"arn:aws:s3:::{name}"])
    assert event["detail"]["object"]["size"] == 3
    assert len({each["id"] for each in found.values()}) == 3


def test_a_bucket_that_was_not_told_to_says_nothing(aws: EmbeddedAws) -> None:
    silent, telling = bucket(aws, tells=False), bucket(aws)
    heard = Heard(aws, {"source": ["aws.s3"], "detail": {"bucket": {"name": [silent, telling]}}})
    for name in (silent, telling):
        aws.client("s3").put_object(Bucket=name, Key="a", Body=b"")
    assert [each["detail"]["bucket"]["name"] for each in heard.inputs()] == [telling]


@pytest.mark.parametrize("key", ['a"b', "a\\c"])
def test_a_text_that_leaves_no_json_starts_nothing(aws: EmbeddedAws, key: str) -> None:
    name = bucket(aws)
    transformer = {
        "InputPathsMap": {"key": "$.detail.object.key"},
        "InputTemplate": '{"key": "<key>"}',
    }
    heard = Heard(aws, objects(name, {"exists": True}), InputTransformer=transformer)
    for each in (key, "good key"):
        aws.client("s3").put_object(Bucket=name, Key=each, Body=b"")
    assert heard.inputs() == [{"key": "good key"}]


def test_a_model_package_is_told_when_it_is_made_and_approved(aws: EmbeddedAws) -> None:
    sagemaker, group = aws.client("sagemaker"), f"models-{uuid.uuid4().hex[:8]}"
    detail = {"ModelPackageGroupName": [group]}
    every = Heard(aws, {"source": ["aws.sagemaker"], "detail": detail})
    detail = {**detail, "ModelApprovalStatus": ["Approved"]}
    approved = Heard(aws, {"source": ["aws.sagemaker"], "detail": detail})
    sagemaker.create_model_package_group(ModelPackageGroupName=group)
    arn = sagemaker.create_model_package(
        ModelPackageGroupName=group, ModelApprovalStatus="PendingManualApproval"
    )["ModelPackageArn"]
    every.inputs()
    sagemaker.update_model_package(ModelPackageArn=arn, ModelApprovalStatus="Approved")
    [event] = approved.inputs()
    assert event["detail"]["ModelPackageArn"] == arn
    assert event["detail-type"] == "SageMaker Model Package State Change"
    statuses = [each["detail"]["ModelApprovalStatus"] for each in every.inputs(2)]
    assert statuses == ["PendingManualApproval", "Approved"]


def test_events_of_ones_own_start_what_listens_to_them(aws: EmbeddedAws) -> None:
    heard = Heard(aws, {"source": ["my.orders"], "detail": {"state": ["paid"]}})
    for state in ("open", "paid"):
        answer = aws.client("events").put_events(
            Entries=[
                {
                    "Source": "my.orders",
                    "DetailType": "Order",
                    "Detail": json.dumps({"state": state}),
                }
            ]
        )
        assert answer["FailedEntryCount"] == 0
    [event] = heard.inputs()
    assert event["detail"] == {"state": "paid"}
    assert event["time"].endswith("Z")
    assert "ingestion-time" not in event


def test_a_rule_of_events_may_have_an_empty_schedule(aws: EmbeddedAws) -> None:
    events, pattern = aws.client("events"), '{"source": ["my.orders"]}'
    events.put_rule(Name="without-schedule", EventPattern=pattern, ScheduleExpression="")
    assert events.describe_rule(Name="without-schedule")["EventPattern"] == pattern
    with pytest.raises(ClientError, match="EventPattern or ScheduleExpression must be specified"):
        events.put_rule(Name="without-either", ScheduleExpression="")


def test_a_rule_that_is_disabled_starts_nothing(aws: EmbeddedAws) -> None:
    off = Heard(aws, {"source": ["my.switch"]})
    rule = off.arn.rpartition(":")[2]
    aws.client("events").disable_rule(Name=rule)
    on = Heard(aws, {"source": ["my.switch"]})
    aws.client("events").put_events(
        Entries=[{"Source": "my.switch", "DetailType": "x", "Detail": "{}"}]
    )
    on.inputs()
    time.sleep(0.2)
    assert off.listed() == []
