"""The last lines of a SageMaker job's log, for the log of the task that waited for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from orchestration.execution.effects import Request, ServiceError
from orchestration.expressions import Json

# https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html
LOG_GROUPS: Final[Mapping[str, tuple[str, str, str]]] = {
    "DescribeTrainingJob": ("TrainingJobName", "/aws/sagemaker/TrainingJobs", "/"),
    "DescribeProcessingJob": ("ProcessingJobName", "/aws/sagemaker/ProcessingJobs", "/"),
    "DescribeTransformJob": ("TransformJobName", "/aws/sagemaker/TransformJobs", "/"),
    # Its training jobs have its name and more.
    "DescribeHyperParameterTuningJob": (
        "HyperParameterTuningJobName",
        "/aws/sagemaker/TrainingJobs",
        "-",
    ),
}
"""By the poll of a job: the field with its name, its log group, and what follows the name there."""

MOST_STREAMS: Final = 4
"""A job has a stream for each host; the first few tell what went wrong with most."""
MOST_LINES: Final = 20
"""The lines shown of a stream, more where a traceback is longer."""
_READ_LINES: Final = 200
_TRACEBACK: Final = "Traceback (most recent call last):"


def last_lines(poll: Request, send: Callable[[Request], Json]) -> Iterator[str]:
    """Yield the last lines of each stream, after the stream's name.

    Never an error: what cannot be read (there may be no permission) is said in a line.
    """
    if poll.operation not in LOG_GROUPS:
        return
    field, group, following = LOG_GROUPS[poll.operation]
    name = poll.parameters[field]
    streams: dict[str, Json] = {
        "logGroupName": group,
        "logStreamNamePrefix": f"{name}{following}",
        "limit": MOST_STREAMS,
    }
    try:
        for stream in _list(send(Request("logs", "DescribeLogStreams", streams)), "logStreams"):
            yield f"the last lines of {group} {stream['logStreamName']}:"
            asked: dict[str, Json] = {
                "logGroupName": group,
                "logStreamName": stream["logStreamName"],
            }
            events = send(Request("logs", "GetLogEvents", {**asked, "limit": _READ_LINES}))
            yield from end_of([str(event["message"]).rstrip() for event in _list(events, "events")])
    except ServiceError as error:
        if error.code.removesuffix("Exception") == "ResourceNotFound":
            yield f"{name} has logged nothing"
            return
        yield f"the log of {name} ({group}) cannot be read: {error}"


def end_of(lines: list[str]) -> list[str]:
    """Return the last lines, from the last traceback on where that begins earlier."""
    traceback = next((at for at in range(len(lines))[::-1] if _TRACEBACK in lines[at]), len(lines))
    return lines[min(traceback, max(0, len(lines) - MOST_LINES)) :]


def _list(response: Json, key: str) -> list[Any]:
    return cast("list[Any]", cast("Mapping[str, Any]", response).get(key, []))
