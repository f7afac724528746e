"""Requests that botocore's models refuse get the service's error where moto would take them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError

from orchestration.local import EmbeddedAws
from orchestration.local.server.decoding import decode
from tests.local.conftest import ROLE

_TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "states.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
)
_MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:nightly"
_TOPIC = "arn:aws:sns:us-east-1:123456789012:topic"


def _start(aws: EmbeddedAws) -> Any:
    return aws.client("stepfunctions").start_execution(stateMachineArn=_MACHINE, name="a" * 81)


def _machine(aws: EmbeddedAws) -> Any:
    return aws.client("stepfunctions").create_state_machine(
        name="a" * 81, definition="{}", roleArn=ROLE
    )


def _role(**more: Any) -> Callable[[EmbeddedAws], Any]:
    asked = {"RoleName": "formed", "AssumeRolePolicyDocument": _TRUST, **more}
    return lambda aws: aws.client("iam").create_role(**asked)


def _targets(*ids: str) -> Callable[[EmbeddedAws], Any]:
    targets = [{"Id": each, "Arn": _TOPIC} for each in ids]
    return lambda aws: aws.client("events").put_targets(Rule="rule", Targets=targets)


def _schedule(**more: Any) -> Callable[[EmbeddedAws], Any]:
    target = {"Arn": _MACHINE, "RoleArn": ROLE, **more}
    return lambda aws: aws.client("scheduler").create_schedule(
        Name="nightly",
        ScheduleExpression="rate(1 hour)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )


def _group(name: str) -> Callable[[EmbeddedAws], Any]:
    return lambda aws: aws.client("logs").create_log_group(logGroupName=name)


_CONFIGURED = (
    '<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{}'
    "</CreateBucketConfiguration>"
)
_PLACED = _CONFIGURED.format("<LocationConstraint>eu-west-1</LocationConstraint>")
_DIRECTORY = _CONFIGURED.format(
    "<Location><Type>AvailabilityZone</Type><Name>use1-az4</Name></Location>"
    "<Bucket><Type>Directory</Type></Bucket>"
)

_LENGTH = "have length less than or equal to"
_PATTERN = "satisfy regular expression pattern:"


@pytest.mark.parametrize(
    ("sent", "code", "place", "rule"),
    [
        (_start, "ValidationException", "'aaa", f"'name' … {_LENGTH} 80"),
        (_machine, "ValidationException", "'aaa", f"'name' … {_LENGTH} 80"),
        (_role(RoleName="a" * 65), "ValidationError", "'aaa", f"'roleName' … {_LENGTH} 64"),
        (_role(RoleName="my role"), "ValidationError", "'my role'", f"'roleName' … {_PATTERN} "),
        (
            _role(Description="a — dash"),
            "ValidationError",
            "'a — dash'",
            f"'description' … {_PATTERN} ",
        ),
        (
            _role(Tags=[{"Key": "team", "Value": "R&D"}]),
            "ValidationError",
            "'R&D'",
            f"'tags.1.member.value' … {_PATTERN} ",
        ),
        # The next two are recorded: LocalStack's test_events.snapshot.json.
        (
            _targets("first", "!@#$@!#$"),
            "ValidationException",
            "'!@#$@!#$'",
            f"'targets.2.member.id' … {_PATTERN} [\\.\\-_A-Za-z0-9]+",
        ),
        (
            _targets("a" * 65),
            "ValidationException",
            "'aaa",
            f"'targets.1.member.id' … {_LENGTH} 64",
        ),
        (
            _schedule(RetryPolicy={"MaximumRetryAttempts": 186}),
            "ValidationException",
            "'186'",
            "'target.retryPolicy.maximumRetryAttempts' … have value less than or equal to 185",
        ),
        (_group("a b"), "InvalidParameterException", "'a b'", f"'logGroupName' … {_PATTERN} "),
    ],
)
def test_what_has_another_form_is_refused_in_aws_s_words(
    aws: EmbeddedAws, sent: Callable[[EmbeddedAws], Any], code: str, place: str, rule: str
) -> None:
    with pytest.raises(ClientError) as caught:
        sent(aws)
    error = caught.value.response["Error"]
    begin, end = rule.split(" … ")
    assert error["Code"] == code
    assert error["Message"].startswith(f"1 validation error detected: Value {place}")
    assert f" at {begin} failed to satisfy constraint: Member must {end}" in error["Message"]


def test_the_words_of_two_errors_stand_beside_each_other(aws: EmbeddedAws) -> None:
    with pytest.raises(
        ClientError, match=r"2 validation errors detected: Value 'a b' at .*; Value"
    ):
        aws.client("events").put_rule(Name="a b", EventPattern="{}", Description="x" * 513)


def test_bytes_of_a_message_count_as_they_are_and_not_in_base64(aws: EmbeddedAws) -> None:
    sns = aws.client("sns")
    topic = sns.create_topic(Name="bytes")["TopicArn"]
    # With the text, the name and the type, it is the longest message.
    attributes = {"about": {"DataType": "Binary", "BinaryValue": b"\0" * 262_132}}
    assert sns.publish(TopicArn=topic, Message="x", MessageAttributes=attributes)["MessageId"]


def test_an_error_shows_no_more_of_a_value_than_fits_into_a_message(aws: EmbeddedAws) -> None:
    definition = "x" * (1024 * 1024 + 1)
    with pytest.raises(ClientError) as caught:
        aws.client("stepfunctions").create_state_machine(
            name="large", definition=definition, roleArn=ROLE
        )
    message = caught.value.response["Error"]["Message"]
    assert "Value 'xxx" in message
    assert "x…' at 'definition' failed to satisfy constraint" in message
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("target", "service", "wrong"),
    [
        ("AWSEvents.PutRule", "events", {"Name": "r", "ScheduleExpression": 5}),
        ("AmazonSSM.PutParameter", "ssm", {"Name": 5, "Value": "x"}),
        ("AmazonSSM.PutParameter", "ssm", {"Name": "a", "Value": 5}),
        ("AmazonSSM.PutParameter", "ssm", {"Value": "x"}),
        ("AWSStepFunctions.StartExecution", "states", {"stateMachineArn": "m", "input": 5}),
    ],
)
def test_values_of_another_type_are_refused(
    aws: EmbeddedAws, target: str, service: str, wrong: dict[str, Any]
) -> None:
    with pytest.raises(HTTPError) as caught:
        urlopen(_raw(aws, "/", service, wrong, {"X-Amz-Target": target}))
    assert caught.value.code == 400
    assert json.load(caught.value)["__type"] == "ValidationException"


@pytest.mark.parametrize("wrong", [{"StartDate": []}, {"Target": "x"}, {"Target": None}])
def test_values_of_another_type_are_refused_of_schedules(
    aws: EmbeddedAws, wrong: dict[str, Any]
) -> None:
    body = {
        "ScheduleExpression": "rate(1 hour)",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": _MACHINE, "RoleArn": ROLE},
        **wrong,
    }
    with pytest.raises(HTTPError) as caught:
        urlopen(_raw(aws, "/schedules/nightly", "scheduler", body, {}))
    assert caught.value.code == 400
    assert json.load(caught.value)["__type"] == "ValidationException"


def _raw(
    aws: EmbeddedAws, path: str, service: str, body: Any, headers: dict[str, str]
) -> HttpRequest:
    scope = f"AWS4-HMAC-SHA256 Credential=AKID/20261127/us-east-1/{service}/aws4_request"
    return HttpRequest(
        f"{aws.endpoint_url}{path}",
        data=json.dumps(body).encode(),
        headers={"Authorization": scope, "Content-Type": "application/json", **headers},
        method="POST",
    )


def _directory(aws: EmbeddedAws, body: str) -> HttpRequest:
    # botocore signs what is of such a bucket as another service, which takes any name.
    scope = "AWS4-HMAC-SHA256 Credential=AKID/20261127/us-east-1/s3/aws4_request"
    return HttpRequest(
        f"{aws.endpoint_url}/forms--use1-az4--x-s3",
        data=body.encode(),
        headers={"Authorization": scope},
        method="PUT",
    )


@pytest.mark.parametrize("body", ["", _PLACED])
def test_other_buckets_have_no_names_of_directory_buckets(aws: EmbeddedAws, body: str) -> None:
    with pytest.raises(HTTPError) as caught:
        urlopen(_directory(aws, body))
    assert caught.value.code == 400
    assert b"<Code>InvalidBucketName</Code>" in caught.value.read()


def test_directory_buckets_have_names_of_theirs(aws: EmbeddedAws) -> None:
    with urlopen(_directory(aws, _DIRECTORY)) as answer:
        assert answer.status == 200


def test_maps_of_the_query_protocol_are_decoded() -> None:
    fields = {
        "Action": "Publish",
        "Message": "text",
        "MessageAttributes.entry.1.Name": "about",
        "MessageAttributes.entry.1.Value.DataType": "String",
        "MessageAttributes.entry.1.Value.StringValue": "runs",
        "MessageAttributes.entry.2.Name": "kind",
        "MessageAttributes.entry.2.Value.DataType": "String",
    }
    scope = "AWS4-HMAC-SHA256 Credential=AKID/20261127/us-east-1/sns/aws4_request"
    environ = {
        "HTTP_AUTHORIZATION": scope,
        "QUERY_STRING": "&".join(f"{key}={value}" for key, value in fields.items()),
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
    }
    request = decode(environ, b"")
    assert request is not None
    assert request.parameters["MessageAttributes"] == {
        "about": {"DataType": "String", "StringValue": "runs"},
        "kind": {"DataType": "String"},
    }
