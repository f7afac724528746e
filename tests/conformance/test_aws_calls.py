"""``aws_call`` does the same on every backend."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, run
from tests.conformance.test_conformance import BACKENDS

pytestmark = pytest.mark.slow

TRUST: dict[str, Any] = {"Version": "2012-10-17", "Statement": []}
PIPELINE: dict[str, Any] = {
    "name": "calls",
    "region": "us-east-1",
    "workspace": "s3://bucket/runs",
    "parameters": {"topic": {}},
    "stages": {
        "ask": {
            "kind": "aws_call",
            "service": "athena",
            "operation": "StartQueryExecution",
            "request": {
                "QueryString": "SELECT 'it''s {{ ds }} {% $x %}'",
                "ResultConfiguration": {"OutputLocation": "s3://bucket/results"},
            },
            "results": {"id": "QueryExecutionId"},
            "poll": {
                "operation": "GetQueryExecution",
                "request": {"QueryExecutionId": {"ref": "ask.id"}},
                "status": "QueryExecution.Status.State",
                "success": ["SUCCEEDED"],
                "failure": ["FAILED", "CANCELLED"],
                "outputs": {"sql": "QueryExecution.Query"},
                "stop": {
                    "operation": "StopQueryExecution",
                    "request": {"QueryExecutionId": {"ref": "ask.id"}},
                },
            },
        },
        "tell": {
            "kind": "aws_call",
            "service": "sns",
            "operation": "Publish",
            "request": {
                "TopicArn": {"parameter": "topic"},
                "Message": {"join": ["asked: ", {"ref": "ask.sql"}]},
            },
            "results": {"message": "MessageId"},
        },
    },
}


def topic_of(aws: EmbeddedAws) -> str:
    arn: str = aws.client("sns").create_topic(Name="news")["TopicArn"]
    return arn


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_calls_are_made_in_order_with_literal_texts(on: On, airflow: LocalAirflow) -> None:
    pipeline = Pipeline.parse(PIPELINE)
    # No stage has a job, so nobody must give a role.
    required = [spec.name for spec in pipeline.parameter_specs() if spec.default is None]
    assert required == ["topic"]
    with EmbeddedAws(time_scale=0.001) as aws:
        # The first creation succeeds, and its response is lost: the token recognises the second.
        lost = Fault("athena", "StartQueryExecution", "InternalServerException", "lost", status=500)
        aws.inject(lost)
        parameters = {"topic": topic_of(aws)}
        report = run(pipeline, on=on, aws=aws, airflow=airflow, parameters=parameters)
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    calls = [call for call in report.calls if call.service in ("athena", "sns")]
    names = [call.operation for call in calls]
    starts = names.count("StartQueryExecution")
    assert names == [
        *["StartQueryExecution"] * starts,
        *["GetQueryExecution"] * (len(names) - starts - 1),
        "Publish",
    ]
    assert len({json.dumps(call.request) for call in calls[:starts]}) == 1
    outputs: Any = report.outputs
    assert outputs["ask"]["sql"] == "SELECT 'it''s {{ ds }} {% $x %}'"
    assert outputs["tell"]["message"]


NOBODYS: dict[str, Any] = {
    "kind": "aws_call",
    "service": "sagemaker",
    "operation": "ListModels",
    "request": {"NameContains": "nobody-s"},
    "results": {"name": "Models[0].ModelName"},
}
LACKING: dict[str, Any] = {
    "pick": NOBODYS,
    "polled": {
        **NOBODYS,
        "poll": {
            "operation": "DescribeModel",
            "request": {"ModelName": {"ref": "polled.name"}},
            "status": "ModelName",
            "success": ["one"],
            "failure": ["two"],
        },
    },
    "unasked": {
        **NOBODYS,
        "poll": {
            "operation": "DescribeModel",
            "request": {"ModelName": "another"},
            "status": "ModelName",
            "success": ["one"],
            "failure": ["two"],
        },
    },
    "ask": {
        **PIPELINE["stages"]["ask"],
        "poll": {
            **PIPELINE["stages"]["ask"]["poll"],
            "outputs": {"type": "QueryExecution.SubstatementType"},
        },
    },
}


@pytest.mark.parametrize("on", BACKENDS)
@pytest.mark.parametrize(
    ("stage", "lacks"),
    [
        ("pick", "stage pick: sagemaker:ListModels returned no Models[0].ModelName"),
        ("polled", "stage polled: sagemaker:ListModels returned no Models[0].ModelName"),
        ("unasked", "stage unasked: sagemaker:ListModels returned no Models[0].ModelName"),
        ("ask", "stage ask: athena:GetQueryExecution returned no QueryExecution.SubstatementType"),
    ],
)
def test_a_response_without_what_a_stage_gives_ends_all_runs_alike(
    on: On, stage: str, lacks: str, airflow: LocalAirflow
) -> None:
    output = "type" if stage == "ask" else "name"
    tell = {**PIPELINE["stages"]["tell"]}
    tell["request"] = {**tell["request"], "Message": {"ref": f"{stage}.{output}"}}
    stages = {stage: LACKING[stage], "tell": tell}
    pipeline = Pipeline.parse({**PIPELINE, "stages": stages})
    with EmbeddedAws(time_scale=0.001) as aws:
        parameters = {"topic": topic_of(aws)}
        report = run(pipeline, on=on, aws=aws, airflow=airflow, parameters=parameters)
    assert (report.state, report.error, report.cause) == ("failed", "MissingOutput", lacks)
    # A job without a result that the call itself gives is not waited for.
    assert "DescribeModel" not in {call.operation for call in report.calls}


LISTED: dict[str, Any] = {
    "look": {
        "kind": "aws_call",
        "service": "s3",
        "operation": "ListObjectsV2",
        "request": {"Bucket": "lists", "Prefix": {"parameter": "below"}, "MaxKeys": 2},
        "results": {"keys": "Contents[].Key"},
    },
    "tell": {
        **PIPELINE["stages"]["tell"],
        "after": [],
        "for_each": {"items": {"ref": "look.keys"}},
        "request": {
            "TopicArn": {"parameter": "topic"},
            "Message": {"join": [{"each": "item"}, " for ", {"arn_name": {"parameter": "topic"}}]},
        },
    },
}


def test_a_list_in_a_response_is_gone_through_and_never_a_part_of_it(airflow: LocalAirflow) -> None:
    parameters: dict[str, Any] = {"topic": {}, "below": {}}
    pipeline = Pipeline.parse({**PIPELINE, "parameters": parameters, "stages": LISTED})
    with EmbeddedAws(time_scale=0.001) as aws:
        s3 = aws.client("s3")
        s3.create_bucket(Bucket="lists")
        for key in ("a/one", "a/two", "b/1", "b/2", "b/3"):
            s3.put_object(Bucket="lists", Key=key, Body=b"")
        for on in BACKENDS:
            for below, count in (("a/", 2), ("none/", 0), ("b/", None)):
                given: dict[str, Any] = {"topic": topic_of(aws), "below": below}
                report = run(pipeline, on=on, aws=aws, airflow=airflow, parameters=given)
                if count is None:
                    assert (report.state, report.error) == ("failed", "MoreResults")
                    assert "ListObjectsV2 has more results than one" in str(report.cause)
                    continue
                assert (report.state, report.cause) == ("succeeded", None)
                outputs: Any = report.outputs
                assert len(outputs["look"]["keys"]) == len(outputs["tell"]["message"]) == count
                sent = {c.request["Message"] for c in report.calls if c.operation == "Publish"}
                assert sent == {f"{key} for news" for key in outputs["look"]["keys"]}


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_a_refusal_fails_the_run_in_the_service_s_words(on: On, airflow: LocalAirflow) -> None:
    stages = {"tell": {**PIPELINE["stages"]["tell"], "request": {"Message": "m"}}}
    stages["tell"]["request"]["TopicArn"] = "arn:aws:sns:us-east-1:123456789012:nothing"
    with EmbeddedAws(time_scale=0.001) as aws:
        pipeline = Pipeline.parse({**PIPELINE, "parameters": {}, "stages": stages})
        report = run(pipeline, on=on, aws=aws, airflow=airflow)
    assert report.state == "failed"
    assert (report.error, "does not exist" in str(report.cause)) == ("NotFound", True)


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_what_is_deleted_is_waited_for_until_it_is_gone(on: On, airflow: LocalAirflow) -> None:
    deletion = {
        "kind": "aws_call",
        "service": "cloudformation",
        "operation": "DeleteStack",
        "request": {"StackName": "lake"},
        "poll": {
            "operation": "DescribeStacks",
            "request": {"StackName": "lake"},
            "status": "Stacks[0].StackStatus",
            "success": ["DELETE_COMPLETE"],
            "failure": ["DELETE_FAILED"],
            "gone": {"code": "ValidationError", "message": "does not exist"},
        },
    }
    pipeline = Pipeline.parse({**PIPELINE, "parameters": {}, "stages": {"remove": deletion}})
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {}}}}
    with EmbeddedAws(time_scale=0.001) as aws:
        stacks = aws.client("cloudformation")
        stacks.create_stack(StackName="lake", TemplateBody=json.dumps(template))
        report = run(pipeline, on=on, aws=aws, airflow=airflow)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    calls = [call for call in report.calls if call.service == "cloudformation"]
    assert calls[0].operation == "DeleteStack"
    assert calls[-1].error_code == "ValidationError"


FOR_EACH: dict[str, Any] = {"for_each": {"items": {"parameter": "items"}, "at_most": 2}}


def sent_or_not(
    call: dict[str, Any],
    place: str,
    read: Callable[[], bytes],
    where: dict[str, Any],
    item: Callable[[Any], Any] = lambda data: data,
) -> None:
    """Run a call for an item with bytes: a number, and a text, which Step Functions quotes."""
    put = {"kind": "aws_call", **call}
    pipeline = Pipeline.parse(
        {
            "name": "elements",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {"items": {"type": "array"}},
            "stages": {"put": put},
        }
    )
    number = run(pipeline, **where, parameters={"items": [item(2.5)]})
    assert number.state == "succeeded", number.cause
    assert read() == b"2.5"
    text = run(pipeline, **where, parameters={"items": [item("a")]})
    if where["on"] != "step-functions":
        assert text.state == "succeeded", text.cause
        assert read() == b"a"
        return
    operation = f"{call['service']}:{call['operation']}"
    said = f"stage put: {operation}: {place} is text, which Step Functions sends as JSON"
    assert text.state == "failed"
    assert said in str(text.cause)
    assert read() == b"2.5"


@pytest.mark.parametrize("on", BACKENDS)
def test_an_element_is_sent_as_the_bytes_that_it_is_or_not_at_all(
    on: On, airflow: LocalAirflow
) -> None:
    call = {
        "service": "s3",
        "operation": "PutObject",
        "request": {"Bucket": "bucket", "Key": "element", "Body": {"each": "item"}},
        **FOR_EACH,
    }
    with EmbeddedAws(time_scale=0.005) as aws:
        s3 = aws.client("s3")
        s3.create_bucket(Bucket="bucket")
        sent_or_not(
            call,
            "Body",
            lambda: s3.get_object(Bucket="bucket", Key="element")["Body"].read(),
            {"on": on, "aws": aws, "airflow": airflow},
        )


@pytest.mark.parametrize("on", BACKENDS)
@pytest.mark.parametrize("name", ["all", "all.$"])
def test_bytes_inside_of_others_are_sent_as_they_are_or_not_at_all(
    on: On, name: str, airflow: LocalAirflow
) -> None:
    attribute = {"L": [{"S": "text"}, {"B": {"each": "item"}}]}
    call = {
        "service": "dynamodb",
        "operation": "PutItem",
        "request": {"TableName": "elements", "Item": {"id": {"S": "1"}, name: attribute}},
        **FOR_EACH,
    }
    with EmbeddedAws(time_scale=0.005) as aws:
        tables = aws.client("dynamodb")
        tables.create_table(
            TableName="elements",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

        def stored() -> bytes:
            item = tables.get_item(TableName="elements", Key={"id": {"S": "1"}})["Item"]
            return bytes(item[name]["L"][1]["B"])

        where = {"on": on, "aws": aws, "airflow": airflow}
        sent_or_not(call, f"Item.{name}.L[1].B", stored, where)


@pytest.mark.parametrize("on", BACKENDS)
@pytest.mark.parametrize(
    ("records", "place"),
    [
        ({"Records": {"parameter": "items"}}, "Records[].Data"),
        ({"Records": [{"each": "item"}], **FOR_EACH}, "Records[0].Data"),
    ],
)
def test_bytes_of_what_is_given_whole_are_sent_as_they_are_or_not_at_all(
    on: On, records: dict[str, Any], place: str, airflow: LocalAirflow
) -> None:
    given = dict(records)
    request = {"StreamName": "whole", "Records": given.pop("Records")}
    call = {"service": "kinesis", "operation": "PutRecords", "request": request, **given}
    with EmbeddedAws(time_scale=0.005) as aws:
        streams = aws.client("kinesis")
        streams.create_stream(StreamName="whole", ShardCount=1)

        def stored() -> bytes:
            [shard] = streams.describe_stream(StreamName="whole")["StreamDescription"]["Shards"]
            position = streams.get_shard_iterator(
                StreamName="whole", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )
            put = streams.get_records(ShardIterator=position["ShardIterator"])["Records"]
            return bytes(put[-1]["Data"])

        where = {"on": on, "aws": aws, "airflow": airflow}
        sent_or_not(call, place, stored, where, lambda data: {"PartitionKey": "key", "Data": data})
