"""The last lines of a failed job's log stand in the task's."""

from __future__ import annotations

from typing import Any

from orchestration.execution.effects import Request, ServiceError
from orchestration.execution.reading.job_logs import MOST_LINES, last_lines
from orchestration.expressions import Json

POLL = Request("sagemaker", "DescribeTrainingJob", {"TrainingJobName": "digits"})


def test_the_last_lines_of_every_host_are_told() -> None:
    sent: list[Request] = []

    def send(request: Request) -> Json:
        sent.append(request)
        if request.operation == "DescribeLogStreams":
            return {"logStreams": [{"logStreamName": f"digits/algo-{n}"} for n in (1, 2)]}
        stream = request.parameters["logStreamName"]
        return {"events": [{"message": f"{stream}: nan\n"}]}

    lines = list(last_lines(POLL, send))
    assert [line for line in lines if line.endswith("nan")] == [
        "digits/algo-1: nan",
        "digits/algo-2: nan",
    ]
    assert sent[0].parameters["logStreamNamePrefix"] == "digits/"


def test_a_long_traceback_is_told_whole() -> None:
    before, after = [f"step {n}" for n in range(90)], [f"  frame {n}" for n in range(40)]
    traceback = ["Traceback (most recent call last):", *after, "ValueError: nan"]
    for lines, shown in (
        ([*before, *traceback, "bye"], [*traceback, "bye"]),
        (before, before[-MOST_LINES:]),
        ([*before, *traceback, *before], [*traceback, *before]),
        (before[:3], before[:3]),
    ):

        def send(request: Request, lines: list[str] = lines) -> Json:
            if request.operation == "DescribeLogStreams":
                return {"logStreams": [{"logStreamName": "digits/algo-1"}]}
            return {"events": [{"message": line} for line in lines]}

        assert list(last_lines(POLL, send))[1:] == shown


def test_what_cannot_be_read_is_no_error() -> None:
    def send(request: Request) -> Any:
        raise ServiceError("AccessDeniedException", "not allowed")

    [line] = last_lines(POLL, send)
    assert "cannot be read: AccessDeniedException" in line


def test_a_job_that_never_ran_has_logged_nothing() -> None:
    def send(request: Request) -> Any:
        raise ServiceError("ResourceNotFoundException", "The specified log group does not exist.")

    assert list(last_lines(POLL, send)) == ["digits has logged nothing"]


def test_what_is_no_job_has_no_log() -> None:
    def send(request: Request) -> Any:
        raise AssertionError("asked for a log")

    assert list(last_lines(Request("fsx", "DescribeFileSystems", {}), send)) == []
