"""The last lines of a SageMaker job's log, for the log of the task that waited for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from orchestration.execution.effects import Request, ServiceError
from orchestration.execution.reading.tracebacks import end_of
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
_READ_LINES: Final = 500
"""After the script's traceback come the launcher's and the toolkit's repetition of both."""


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


def _list(response: Json, key: str) -> list[Any]:
    return cast("list[Any]", cast("Mapping[str, Any]", response).get(key, []))
