"""Fields have their names of Step Functions in definitions, and the API's own everywhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.integrations import services, spelling
from orchestration.checks.requests import operation_model, operation_names
from orchestration.checks.shapes import Shape
from orchestration.errors import UnsupportedError
from orchestration.expressions import Result, Tree, parameter
from orchestration.graph import (
    Adopt,
    Call,
    ErrorPattern,
    Fold,
    Operation,
    Output,
    Pages,
    ParameterSpec,
    Path,
    Person,
    Until,
)
from orchestration.local.engine.tasks import values
from orchestration.local.engine.tasks.fields import unknown
from tests.backends import definitions
from tests.backends.workflows import loop, put, workflow

# Services whose fields begin with small letters, or with acronyms, or with both.
SERVICES = (
    *("batch", "bedrock", "codebuild", "dynamodb", "ec2", "ecr", "ecs", "emr", "emr-serverless"),
    *("fsx", "glue", "iam", "lambda", "logs", "s3", "s3control", "secretsmanager", "ssm"),
    "stepfunctions",
)


@pytest.mark.parametrize(
    ("api", "here"),
    [
        # As public definitions have them that run on AWS.
        ("stateMachineArn", "StateMachineArn"),
        ("jobRunId", "JobRunId"),
        ("s3MonitoringConfiguration", "S3MonitoringConfiguration"),
        ("awsvpcConfiguration", "AwsvpcConfiguration"),
        ("DBInstanceIdentifier", "DbInstanceIdentifier"),
        ("TTL", "Ttl"),
        ("BOOL", "Bool"),
        ("ETag", "ETag"),
        ("S3Uri", "S3Uri"),
        ("JobName", "JobName"),
        # As the AWS SDK for Java has them.
        ("SSEKMSKeyId", "SsekmsKeyId"),
        ("VPCId", "VpcId"),
        ("vpcId", "VpcId"),
        ("ARN", "Arn"),
        ("iPAddress", "IpAddress"),
        ("equals", "EqualsValue"),
        ("Return", "ReturnValue"),
        ("NULL", "NullValue"),
    ],
)
def test_a_name_is_that_of_java_with_a_capital_letter(api: str, here: str) -> None:
    assert spelling.spelled(api) == here


def states(*steps: Any, **more: Any) -> dict[str, Any]:
    return definitions.states(stepfunctions.render(workflow(*steps, **more)))


TASK = Call(
    name="spark",
    operation=Operation(
        "ecs",
        "RunTask",
        {
            "taskDefinition": "spark:1",
            "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-1"]}},
            "overrides": {"containerOverrides": [{"name": "main", "command": ["--dryRun"]}]},
            "tags": [{"key": "ownedBy", "value": "us"}],
        },
    ),
    outputs={"arn": Output(("tasks", 0, "taskArn"), kind="string")},
    until=Until(
        poll=Operation("ecs", "DescribeTasks", {"tasks": [Result("spark", "arn")]}),
        status=("tasks", 0, "lastStatus"),
        success=frozenset({"STOPPED"}),
        failure=frozenset({"DEPROVISIONING"}),
        reason=("tasks", 0, "stoppedReason"),
        stop=Operation("ecs", "StopTask", {"task": Result("spark", "arn")}),
        outputs={"exit": Output(("tasks", 0, "containers", 0, "exitCode"), kind="number")},
    ),
)


def test_a_job_is_started_followed_and_stopped_by_the_names_of_step_functions() -> None:
    made = states(TASK, put("end", Result("spark", "exit")))
    assert made["spark"]["Arguments"] == {
        "TaskDefinition": "spark:1",
        "NetworkConfiguration": {"AwsvpcConfiguration": {"Subnets": ["subnet-1"]}},
        "Overrides": {"ContainerOverrides": [{"Name": "main", "Command": ["--dryRun"]}]},
        "Tags": [{"Key": "ownedBy", "Value": "us"}],
    }
    assert "$states.result.Tasks[0].TaskArn" in str(made["spark"]["Assign"])
    # People read the API's own name.
    assert "spark: no string tasks.0.taskArn" in str(made["spark"]["Assign"])
    assert made["spark-Poll"]["Arguments"] == {"Tasks": ["{% $spark.arn %}"]}
    done, failed = made["spark-Status"]["Choices"][:2]
    assert done["Condition"] == "{% $states.input.Tasks[0].LastStatus = 'STOPPED' %}"
    assert "$states.input.Tasks[0].Containers[0].ExitCode" in str(done["Assign"])
    assert failed["Output"]["Reason"] == "{% [$states.input.Tasks[0].StoppedReason] %}"
    assert made["spark-Stop"]["Arguments"] == {"Task": "{% $spark.arn %}"}


def _rag(equals: str, key: str, value: str) -> dict[str, Any]:
    """Return a filter by a document, deep in a request of Bedrock."""
    names = ["knowledgeBaseConfig", "retrieveConfig", "knowledgeBaseRetrievalConfiguration"]
    names += ["vectorSearchConfiguration", "filter"]
    config: dict[str, Any] = {equals: {key: "k", value: {"jobName": 1}}}
    for name in reversed(names):
        config = {name if equals == "equals" else spelling.spelled(name): config}
    return config


@pytest.mark.parametrize(
    ("service", "operation", "api", "here"),
    [
        (
            # The keys of maps are the user's own.
            "batch",
            "SubmitJob",
            {"jobName": "j", "parameters": {"inputPath": "p"}, "tags": {"costCentre": "1"}},
            {"JobName": "j", "Parameters": {"inputPath": "p"}, "Tags": {"costCentre": "1"}},
        ),
        (
            # Their values are the API's.
            "emr-serverless",
            "CreateApplication",
            {"initialCapacity": {"dRIVER": {"workerConfiguration": {"cpu": "2 vCPU"}}}},
            {"InitialCapacity": {"dRIVER": {"WorkerConfiguration": {"Cpu": "2 vCPU"}}}},
        ),
        (
            # What the API takes as text or as bytes has no fields.
            "stepfunctions",
            "StartExecution",
            {"input": {"jobName": [{"a": 1}]}},
            {"Input": {"jobName": [{"a": 1}]}},
        ),
        ("s3", "PutObject", {"Body": {"VPCId": 1}}, {"Body": {"VPCId": 1}}),
        (
            # A document has none either.
            "bedrock",
            "CreateEvaluationJob",
            {"inferenceConfig": {"ragConfigs": [_rag("equals", "key", "value")]}},
            {"InferenceConfig": {"RagConfigs": [_rag("EqualsValue", "Key", "Value")]}},
        ),
        (
            "cloudformation",
            "ListStacks",
            {"StackStatusFilter": ["ROLLBACK_FAILED"]},
            {"StackStatusFilters": ["ROLLBACK_FAILED"]},
        ),
        (
            "dynamodb",
            "PutItem",
            {"Item": {"isNew": {"BOOL": True}, "tags": {"L": [{"NULL": True}]}}},
            {"Item": {"isNew": {"Bool": True}, "tags": {"L": [{"Nul": True}]}}},
        ),
    ],
)
def test_only_fields_are_renamed(service: str, operation: str, api: Any, here: Any) -> None:
    asked = Call(name="ask", operation=Operation(service, operation, api))
    assert spelling.call(asked).operation.request == here


def test_what_rendering_does_not_know_it_leaves() -> None:
    asked = Call(name="ask", operation=Operation("s4", "Do", {"a": {"b": 1}}))
    assert spelling.call(asked) == asked


def test_columns_keep_the_names_that_others_read_them_by() -> None:
    jobs = Output(("jobSummaryList",), kind="list", columns=("jobId", "status"), default=[])
    asked = Operation("batch", "ListJobs", {"jobQueue": "q"})
    listing = Call(name="jobs", operation=asked, outputs={"jobs": replace(jobs, texts=("jobId",))})
    assigned = str(states(listing, loop("each", Result("jobs", "jobs")))["jobs"]["Assign"])
    assert assigned.count("$states.result.JobSummaryList") == assigned.count("'status': Status")
    assert "[$v.{'jobId': JobId, 'status': Status}]" in assigned
    assert "$type(JobId) = 'string'" in assigned


def test_a_listing_asks_with_the_token_of_the_page_before() -> None:
    ids = Output(("jobSummaryList", 0, "jobId"), kind="string", default="")
    listing = Call(
        name="jobs",
        operation=Operation("batch", "ListJobs", {"jobQueue": "q"}),
        outputs={"id": ids},
        pages=Pages(
            token=("nextToken",),
            field="nextToken",
            most=5,
            folds={"id": Fold(start="", then=Result("jobs", "id"))},
        ),
    )
    made = states(listing)["jobs"]
    assert "{'NextToken': $jobs.Next}" in made["Arguments"]
    assert "'JobQueue': 'q'" in made["Arguments"]
    assert "$exists($states.result.NextToken)" in str(made["Assign"])


def test_names_are_adopted_and_people_are_waited_for_under_their_own_fields() -> None:
    start = Operation("stepfunctions", "StartExecution", {"name": "n", "stateMachineArn": "m"})
    asked = Operation("stepfunctions", "DescribeExecution", {"executionArn": "e"})
    person = Person(question="?", token=start, field="input")
    made = spelling.call(
        Call(
            name="run",
            operation=start,
            adopt=Adopt(exists=ErrorPattern("ExecutionAlreadyExists"), name_field="name"),
            until=Until(
                poll=asked,
                status=("status",),
                success=frozenset({"SUCCEEDED"}),
                failure=frozenset(),
                counts=("mapRunArn",),
                counted={"x": "of them"},
                limit=("cause",),
                person=person,
            ),
        )
    )
    assert made.adopt is not None
    assert made.until is not None
    assert made.until.person is not None
    assert (made.adopt.name_field, made.until.person.field) == ("Name", "Input")
    assert (made.until.status, made.until.limit) == (("Status",), ("Cause",))


def test_objects_that_no_definition_can_rename_are_refused() -> None:
    overrides = Operation("ecs", "RunTask", {"overrides": parameter("overrides")})
    tasks = {"tasks": Output(("tasks",), kind="list"), "arn": Output(("tasks", 0, "taskArn"))}
    tags = replace(tasks["tasks"], columns=("taskArn", "tags"))
    specs = (ParameterSpec(name="overrides"),)
    calls = (
        Call(name="run", operation=overrides, outputs=tasks),
        Call(name="tags", operation=Operation("ecs", "RunTask", {}), outputs={"all": tags}),
    )
    with pytest.raises(UnsupportedError) as refused:
        stepfunctions.render(workflow(*calls, parameters=specs))
    assert [str(problem) for problem in refused.value.problems] == [
        "run: overrides is known only when the pipeline runs, and Step Functions has other names"
        " for its fields; write its fields out, with references for their values",
        "run: output tasks holds fields of ecs:RunTask that Step Functions has other names for;"
        " take texts, numbers or columns out of it",
        "tags: output all holds fields of ecs:RunTask that Step Functions has other names for;"
        " take texts, numbers or columns out of it",
    ]


# Keys of maps that would be fields elsewhere.
KEYS = ("jobName", "VPCId", "Name", "a b")


@st.composite
def of(draw: st.DrawFn, shape: Shape | None, depth: int = 0) -> Any:
    """Draw a value that has some of a shape's fields."""
    if shape is None:
        return {}
    match shape.type_name:
        case "structure":
            members = sorted(shape.members)
            if not members or depth > 4:
                return {"aDocument": 1} if shape.metadata.get("document") else {}
            names = draw(st.lists(st.sampled_from(members), unique=True, max_size=3))
            return {name: draw(of(shape.members[name], depth + 1)) for name in names}
        case "list":
            return [draw(of(shape.member, depth + 1))]
        case "map":
            return {draw(st.sampled_from(KEYS)): draw(of(shape.value, depth + 1))}
        case "blob":
            return {"jobName": 1}
        case other:
            return other


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        yield from leaves(value[0], (*path, 0))
    else:
        yield path, value


@cache
def shapes(service: str, operation: str) -> tuple[Any, Any]:
    """Return botocore's own shapes, which the engine uses."""
    model = service_of(service).operation_model(operation)
    return model.input_shape, model.output_shape


@cache
def service_of(name: str) -> Any:
    import botocore.session

    return botocore.session.Session().get_service_model(name)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_engine_reads_what_rendering_writes(data: st.DataObject) -> None:
    service = data.draw(st.sampled_from(SERVICES))
    operation = data.draw(st.sampled_from(operation_names(service)))
    model = operation_model(service, operation)
    assert model is not None
    taken, given_back = shapes(service, operation)

    request: dict[str, Tree] = data.draw(of(model.input_shape))
    asked = Operation(service, operation, request)
    sent = spelling.call(Call(name="ask", operation=asked)).operation.request
    assert list(unknown(sent, taken)) == []
    assert values.to_member_names(sent, taken) == request
    if sent != request:
        assert list(unknown(request, taken))

    response = data.draw(of(model.output_shape))
    result = values.from_member_names(response, given_back)
    for path, value in leaves(response):
        inner = result
        for part in spelling.place(asked, Output(path)).path:
            inner = inner[part]
        assert inner == value


@pytest.mark.parametrize("service", services.known())
def test_no_two_fields_of_a_structure_have_one_name(service: str) -> None:
    for name in operation_names(service):
        model = operation_model(service, name)
        assert model is not None
        for shape in (model.input_shape, model.output_shape):
            if shape is not None:
                names = [spelling.spelled(member, shape.name) for member in shape.members]
                assert len(set(names)) == len(names)
