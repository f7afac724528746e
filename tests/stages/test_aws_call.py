"""``aws_call``: any operation of AWS, checked against botocore before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import AwsCall, Pipeline, PipelineError
from orchestration.expressions import Result
from orchestration.graph import Call, Output, Require, all_steps

GLUE: dict[str, Any] = {
    "kind": "aws_call",
    "service": "glue",
    "operation": "StartJobRun",
    "request": {"JobName": "features", "Arguments": {"--day": {"parameter": "day"}}},
    "results": {"run": "JobRunId"},
    "poll": {
        "operation": "GetJobRun",
        "request": {"JobName": "features", "RunId": {"ref": "glue.run"}},
        "status": "JobRun.JobRunState",
        "success": ["SUCCEEDED"],
        "failure": ["FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"],
        "reason": "JobRun.ErrorMessage",
        "outputs": {"seconds": "JobRun.ExecutionTime"},
        "stop": {
            "operation": "BatchStopJobRun",
            "request": {"JobName": "features", "JobRunIds": [{"ref": "glue.run"}]},
        },
    },
}


def pipeline(**stages: Any) -> Pipeline:
    return Pipeline.parse(
        {
            "name": "p",
            "workspace": "s3://bucket/runs",
            "parameters": {"day": {"default": "today"}},
            "stages": stages,
        }
    )


def problems(**fields: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(glue={**GLUE, **fields})
    return [str(problem) for problem in error.value.problems]


def call(made: Pipeline, stage: str) -> Call:
    steps = all_steps(made.lower().graph)
    return next(s for s in steps if isinstance(s, Call) and s.name == f"{stage}.call")


def test_a_job_is_started_polled_and_stopped() -> None:
    shown = {"kind": "aws_call", "service": "sns", "operation": "Publish"}
    request = {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": {"ref": "glue.run"}}
    made = pipeline(glue=GLUE, tell={**shown, "request": request})
    glue = call(made, "glue")
    assert glue.until is not None
    assert glue.until.stop is not None
    assert glue.until.poll.name == "GetJobRun"
    assert glue.until.status == ("JobRun", "JobRunState")
    assert set(made.lower().outputs["glue"]) == {"run", "seconds"}  # type: ignore[arg-type]  # a mapping


def test_outputs_are_references_by_their_names() -> None:
    tell = AwsCall(
        name="tell",
        service="sns",
        operation="Publish",
        request={"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": "m"},
        results={"message": "MessageId"},
    )
    assert repr(tell.outputs.message) == "<reference to tell.message>"
    with pytest.raises(AttributeError, match="no output 'massage'"):
        _ = tell.outputs.massage


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"operation": "StartJobRuns"},
            "stages.glue.operation: glue has no operation 'StartJobRuns'; did you mean "
            "'StartJobRun'?",
        ),
        ({"service": "gleu"}, "stages.glue.service: botocore knows no service 'gleu'"),
        (
            {"results": {"run": "JobRunID"}},
            "stages.glue.results.run: responses of StartJobRun have no 'JobRunID'; did you mean "
            "'JobRunId'?",
        ),
        (
            {"poll": {**GLUE["poll"], "status": "JobRun"}},
            "stages.glue.poll.status: 'JobRun' is a structure; name a text, number or boolean",
        ),
        (
            {"poll": {**GLUE["poll"], "success": ["SUCCEDED"]}},
            "stages.glue.poll.success[0]: JobRun.JobRunState is never 'SUCCEDED'; did you mean "
            "'SUCCEEDED'?",
        ),
        (
            {"poll": {**GLUE["poll"], "failure": ["SUCCEEDED"]}},
            "stages.glue.poll.failure[0]: SUCCEEDED is a success as well",
        ),
        (
            {"poll": {**GLUE["poll"], "outputs": {"run": "JobRun.Id"}}},
            "stages.glue.poll.outputs.run: is an output of the call itself already",
        ),
        (
            {"poll": {**GLUE["poll"], "gone": {"code": "EntityNotFound"}}},
            "stages.glue.poll.outputs: where the poll ends by `gone` there is no response",
        ),
        (
            {"exists": {"code": "ConcurrentRunsExceeded"}},
            "stages.glue.results: where the call is answered by `exists` there is no response",
        ),
        (
            {"request": {"JobName": {"ref": "glue.run"}}},
            "stages.glue.request: the call has no output 'run'",
        ),
        (
            {"poll": {**GLUE["poll"], "request": {"JobName": "f", "RunId": {"ref": "glue.rum"}}}},
            "stages.glue.poll.request: the call has no output 'rum'; did you mean 'run'?",
        ),
    ],
)
def test_mistakes_are_found_when_it_is_loaded(fields: Any, expected: str) -> None:
    assert any(problem.startswith(expected) for problem in problems(**fields))


def test_what_polls_need_is_taken_from_the_call() -> None:
    poll = {k: v for k, v in GLUE["poll"].items() if k != "request"}
    following = {**poll, "stop": "BatchStopJobRun"}
    found = problems(poll={**following, "stop": None})
    # Its name for the run is another one than that of the call's response.
    assert [p for p in found if "RunId" in p]
    athena = {
        "kind": "aws_call",
        "service": "athena",
        "operation": "StartQueryExecution",
        "request": {"QueryString": "SELECT 1"},
        "poll": {
            "operation": "GetQueryExecution",
            "status": "QueryExecution.Status.State",
            "success": ["SUCCEEDED"],
            "stop": "StopQueryExecution",
        },
    }
    made = call(pipeline(ask=athena), "ask")
    assert made.until is not None
    assert made.until.stop is not None
    wanted = {"QueryExecutionId": Result("ask.call", "QueryExecutionId")}
    assert made.until.poll.request == made.until.stop.request == wanted
    lacking = "stage ask: athena:StartQueryExecution returned no QueryExecutionId"
    assert made.outputs["QueryExecutionId"] == Output(
        ("QueryExecutionId",), kind="string", lacking=lacking
    )
    stack = {
        "kind": "aws_call",
        "service": "cloudformation",
        "operation": "DeleteStack",
        "request": {"StackName": "lake"},
        "poll": {
            "operation": "DescribeStackEvents",
            "status": "StackEvents[0].ResourceStatus",
            "success": ["DELETE_COMPLETE"],
        },
    }
    made = call(pipeline(remove=stack), "remove")
    assert made.until is not None
    assert made.until.poll.request == {"StackName": "lake"}


def test_a_list_is_read_whole_or_one_field_of_each_element() -> None:
    listed = {
        "kind": "aws_call",
        "service": "s3",
        "operation": "ListObjectsV2",
        "request": {"Bucket": "b"},
        "results": {"keys": "Contents[].Key", "count": "KeyCount"},
    }
    tell = {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": {"each": "item"}},
        "for_each": {"items": {"ref": "look.keys"}},
    }
    made = pipeline(look=listed, tell=tell)
    look, complete = made.lower().graph.steps[:2]
    assert isinstance(look, Call)
    assert look.outputs["keys"] == Output(
        ("Contents",), kind="list", columns=("Key",), texts=("Key",), default=()
    )
    assert isinstance(complete, Require)
    assert (complete.name, complete.error) == ("look.complete", "MoreResults")
    with pytest.raises(PipelineError, match=r"is a list, and one value is expected|are no texts"):
        pipeline(look=listed, staged={"kind": "data_staging", "source": {"ref": "look.keys"}})
    for place, message in {
        "Contents": r"name a text, number or boolean, or all of them: <place>\[\]",
        "Contents[]": "are no texts or numbers",
        "Contents[].Kex": "responses of ListObjectsV2 have no",
        "Contents[].LastModified": "are no texts or numbers",
    }.items():
        with pytest.raises(PipelineError, match=message):
            pipeline(look={**listed, "results": {"keys": place}})


def test_a_request_is_checked_as_all_requests_are() -> None:
    [problem] = problems(request={"JobName": "f", "Argumets": {}})
    assert "Argumets" in problem
    assert "did you mean 'Arguments'?" in problem


def test_an_output_that_nobody_named_is_refused() -> None:
    tell = {"kind": "aws_call", "service": "sns", "operation": "Publish"}
    request = {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": {"ref": "glue.runn"}}
    with pytest.raises(PipelineError, match=r"stage 'glue' has no output 'runn'; did you mean"):
        pipeline(glue=GLUE, tell={**tell, "request": request})


def test_a_stage_that_can_not_be_read_has_unknown_outputs() -> None:
    tell = {"kind": "aws_call", "service": "sns", "operation": "Publish"}
    request = {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": {"ref": "glue.run"}}
    with pytest.raises(PipelineError) as error:
        pipeline(glue={**GLUE, "results": []}, tell={**tell, "request": request})
    assert {problem.stage for problem in error.value.problems} == {"glue"}


def test_a_token_is_filled_in_where_the_service_takes_one() -> None:
    start = {"kind": "aws_call", "service": "athena", "operation": "StartQueryExecution"}
    made = pipeline(ask={**start, "request": {"QueryString": "SELECT 1"}})
    assert "ClientRequestToken" in call(made, "ask").operation.request
    assert made.warnings() == []
    own = {"QueryString": "SELECT 1", "ClientRequestToken": "t" * 32}
    assert call(pipeline(ask={**start, "request": own}), "ask").operation.request == own


def job_warnings(stage: dict[str, Any]) -> str:
    request = {
        "TransformJobName": "t",
        "ModelName": "m",
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://a"}}
        },
        "TransformOutput": {"S3OutputPath": "s3://a/b"},
        "TransformResources": {"InstanceType": "ml.m5.large", "InstanceCount": 1},
    }
    return " ".join(w.message for w in pipeline(job={**stage, "request": request}).warnings())


def test_a_call_that_may_be_made_twice_is_a_warning() -> None:
    [warning] = pipeline(glue=GLUE).warnings()
    assert warning.path == "stages.glue.operation"
    assert "may be done twice" in warning.message
    job = {"kind": "aws_call", "service": "sagemaker", "operation": "CreateTransformJob"}
    assert "exists" in job_warnings(job)
    assert job_warnings({**job, "exists": {"code": "ResourceInUse"}}) == ""
    listing = {"kind": "aws_call", "service": "glue", "operation": "GetJobs"}
    assert pipeline(look=listing).warnings() == []


def test_permissions_are_part_of_the_workflow() -> None:
    needs = {"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::data/*"]}
    made = pipeline(glue={**GLUE, "permissions": [needs]})
    [permission] = made.lower().permissions["glue"]
    assert permission.actions == ("s3:GetObject",)
