"""Which errors are sent again, and what becomes of a job that is in doubt."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError
from botocore.retries.standard import ThrottledRetryableChecker, TransientRetryableChecker
from botocore.session import Session

from orchestration.backends.stepfunctions.calls.recognition import passing
from orchestration.backends.stepfunctions.integrations import services
from orchestration.errors import RunError
from orchestration.execution.effects import ServiceError, Trouble
from orchestration.execution.sending import PASSING, service_error
from orchestration.graph import Alternative, Call, ErrorPattern, Fallback, Operation, Retry
from tests.performances.scripted import Answer
from tests.performances.test_steps import DONE, RUNS, THROTTLED, edge, job, run

FAILURES = re.compile(
    "Internal(Error|Failure|Server|ServerError|Service|ServiceError)?|Server|Service(Failure)?"
)
ABSENT = ErrorPattern("ValidationException", "not found")
DENIED = ServiceError("AccessDeniedException", "not authorized")
MISSING = ServiceError("ValidationException", "Requested resource not found.")
DOUBTFUL = replace(job(until={"absent": (ABSENT,)}), retry=Retry(attempts=2))


def falling_back() -> Call:
    other = job("train.other")
    assert other.until is not None
    alternative = Alternative(label="b", operation=other.operation, poll=other.until.poll)
    refusals = (ErrorPattern("ResourceLimitExceeded", "training job usage"),)
    return replace(
        DOUBTFUL,
        fallback=Fallback(label="a", alternatives=(alternative,), refusals=refusals),
    )


def answered(code: str, status: int = 400) -> ServiceError:
    response = {
        "Error": {"Code": code, "Message": "m"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return service_error(ClientError(response, "CreateTrainingJob"))


def test_what_the_table_lists_passes_with_and_without_exception() -> None:
    for row in PASSING:
        for code in row.codes:
            assert answered(code).passing, code
            assert answered(f"{code}Exception").passing, code
        for status in row.statuses:
            assert answered("Unknown", int(status.ljust(3, "0"))).passing
        assert "20" in row.source, f"{row.kind}: the source has no date"


def test_every_code_that_botocore_sends_again_passes() -> None:
    throttled = ThrottledRetryableChecker._THROTTLED_ERROR_CODES
    codes = {*throttled, *TransientRetryableChecker._TRANSIENT_ERROR_CODES}
    assert len(codes) > 15
    assert [code for code in sorted(codes) if not answered(code).passing] == []
    statuses = TransientRetryableChecker._TRANSIENT_STATUS_CODES
    assert all(answered("Unknown", status).passing for status in statuses)


def test_what_a_model_declares_as_retryable_passes() -> None:
    session, found = Session(), set()
    for service in services.known():
        for shape in session.get_service_model(service).error_shapes:
            if shape.metadata.get("retryable"):
                found.add(shape.error_code)
                status = shape.metadata.get("error", {}).get("httpStatusCode", 400)
                assert answered(shape.error_code, status).passing, shape.error_code
    assert "ReplicatedWriteConflictException" in found


@pytest.mark.parametrize(
    ("service", "operation", "name"),
    [
        ("sagemaker-runtime", "InvokeEndpoint", "SageMakerRuntime.ModelNotReadyException"),
        ("lambda", "Invoke", "Lambda.EC2UnexpectedException"),
        ("dynamodb", "PutItem", "DynamoDb.ReplicatedWriteConflictException"),
    ],
)
def test_a_state_machine_names_what_passes_by_its_status(
    service: str, operation: str, name: str
) -> None:
    assert name in passing(Operation(service, operation, {}))


@pytest.mark.parametrize("code", ["AccessDeniedException", "ValidationException", "ResourceInUse"])
def test_a_refusal_does_not_pass_and_no_name_of_it_is_retried(code: str) -> None:
    assert not answered(code).passing
    for service in services.known():
        names = passing(Operation(service, "Create", {}))
        assert not [name for name in names if code.removesuffix("Exception") in str(name)]


def test_failures_of_a_service_that_its_model_declares_are_retried_by_name() -> None:
    session, names = Session(), set()
    for service in services.known():
        known = services.service(service)
        retried = passing(Operation(service, "Create", {}))
        for shape in session.get_service_model(service).error_shapes:
            base = shape.name.removesuffix("Exception")
            if known.named_errors is None and FAILURES.fullmatch(base):
                names.add(f"{known.prefix}.{base}Exception")
                assert f"{known.prefix}.{base}Exception" in retried
    assert {"Lambda.ServiceException", "Ecs.ServerException"} < names
    assert "Sns.InternalErrorException" in names


def test_names_that_step_functions_gives_are_declared_by_the_models() -> None:
    session = Session()
    for name in services.known():
        listed = services.service(name).named_errors
        if listed is not None:
            shapes = session.get_service_model(name).error_shapes
            declared = {shape.name.removesuffix("Exception") for shape in shapes}
            assert listed <= declared, name


def test_a_job_in_doubt_is_followed() -> None:
    aws, scope = run(DOUBTFUL, edge=edge(CreateTrainingJob=THROTTLED, DescribeTrainingJob=DONE))
    assert aws.operations == ["CreateTrainingJob"] * 2 + ["DescribeTrainingJob"]
    assert scope.results["train.job"] == {"model": "s3://b/model"}


def test_a_job_in_doubt_that_does_not_exist_fails_with_the_error_of_its_call() -> None:
    aws = edge(CreateTrainingJob=THROTTLED, DescribeTrainingJob=MISSING)
    with pytest.raises(Trouble) as caught:
        run(DOUBTFUL, edge=aws)
    assert caught.value.error == "Throttling"
    assert caught.value.cause == "CreateTrainingJob train.job: Rate exceeded"
    assert "StopTrainingJob" not in aws.operations


def test_a_job_in_doubt_that_cannot_be_asked_for_is_stopped() -> None:
    aws = edge(CreateTrainingJob=THROTTLED, DescribeTrainingJob=DENIED)
    with pytest.raises(RunError) as caught:
        run(DOUBTFUL, edge=aws)
    assert caught.value.error == "JobNotFollowed"
    assert aws.operations[-1] == "StopTrainingJob"


def test_a_refused_job_is_not_asked_for() -> None:
    aws = edge(CreateTrainingJob=DENIED)
    with pytest.raises(RunError, match="not authorized"):
        run(DOUBTFUL, edge=aws)
    assert aws.operations == ["CreateTrainingJob"]


def test_a_job_that_runs_is_stopped_when_it_can_no_longer_be_asked_for() -> None:
    polls: list[Answer] = [RUNS, DENIED]
    aws = edge(DescribeTrainingJob=polls)
    with pytest.raises(RunError) as caught:
        run(job(), edge=aws)
    begin = "DescribeTrainingJob of CreateTrainingJob train.job: not authorized"
    assert caught.value.cause == f"{begin}; it was told to stop"
    assert aws.operations[-1] == "StopTrainingJob"


def test_a_poll_without_a_status_is_sent_again() -> None:
    polls: list[Answer] = [{}, RUNS, {"TrainingJobName": "x"}, DONE]
    aws, _ = run(job(), edge=edge(DescribeTrainingJob=polls))
    assert aws.operations.count("DescribeTrainingJob") == 4


def test_a_job_that_cannot_be_looked_for_after_a_quota_is_stopped() -> None:
    aws = edge(
        CreateTrainingJob=ServiceError("ResourceLimitExceeded", "training job usage"),
        DescribeTrainingJob=DENIED,
    )
    with pytest.raises(RunError) as caught:
        run(falling_back(), edge=aws)
    assert caught.value.error == "JobNotFollowed"
    assert aws.operations == ["CreateTrainingJob", "DescribeTrainingJob", "StopTrainingJob"]
