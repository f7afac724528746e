"""Names of errors and texts of their causes, said once for every backend.

A text has named holes, ``"{subject} ended as {status}"``: :func:`filled` puts plain text into
them, :func:`parts` takes the text apart, for a backend that writes an expression in its own
language around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Final, TypeVar

from orchestration.graph import (
    JOB_FAILED,
    MAX_REPORT_BYTES,
    NO_CAPACITY,
    RUN_FAILED,
    RUN_SUCCEEDED,
    TIMED_OUT,
    Call,
    Until,
    stage_of,
)

__all__ = ["JOB_FAILED", "NO_CAPACITY", "TIMED_OUT", "filled", "parts"]

T = TypeVar("T")

JOB_NOT_FOLLOWED: Final = "JobNotFollowed"
"""The error of a job that may run and could not be asked for, so that it was told to stop."""
INVALID_INPUT: Final = "InvalidInput"
"""The error of a run that was started with wrong parameters."""
UNKNOWN_FIELD: Final = "UnknownField"
"""The error of a run one of whose requests has a field that the installed botocore lacks."""
REGION_MISMATCH: Final = "RegionMismatch"
"""The error of a run whose pipeline has another region than the connection to AWS."""
SUPERSEDED: Final = "Superseded"
"""The error of a run that a newer one has taken the place of (``overlap: stop_older``)."""
BY_NEWER: Final = "A newer run took its place: {newer}"
MISSING_OUTPUT: Final = "MissingOutput"
"""The error of a response that lacks a value the step gives."""
WRONG_OUTPUT: Final = "WrongOutput"
"""The error of a response whose value has another type than the step gives."""
DATA_LIMIT_EXCEEDED: Final = "DataLimitExceeded"
"""The error of a response, or of a loop's results, with more bytes than Step Functions carries."""
EXPRESSION_ERROR: Final = "ExpressionError"
"""The error of an expression that has no value with what a run has."""
REPORT_MISSING: Final = "ReportMissing"
"""The error of a report that the job did not write."""
REPORT_NOT_USABLE: Final = "ReportNotUsable"
"""The error of a report that is not a JSON object in UTF-8, or larger than
:data:`~orchestration.graph.MAX_REPORT_BYTES`."""
METRIC_MISSING: Final = "MetricMissing"
"""The error of a report without the number that the step takes from it."""
METRIC_NOT_FINITE: Final = "MetricNotFinite"
"""The error of a report whose number is NaN or infinite."""
METRIC_NOT_NUMBER: Final = "MetricNotNumber"
"""The error of a report that has something else where a number must stand."""

ENDED: Final = "{subject} ended as {status}"
BEFORE_REASON: Final = ": "
ENDED_WITH_REASON: Final = f"{ENDED}{BEFORE_REASON}{{reason}}"
LIMIT: Final = "{word} ({setting})"
"""The reason of a job that ran out of its own time: AWS's word, and the stage's field."""
LATE: Final = "{subject} did not end within {limit}"
"""``limit`` is one of the next two."""
OWN_LIMIT: Final = "{seconds} s"
LIMIT_OF_STAGE: Final = "the {seconds} s of stage {stage}"
TOLD_TO_STOP: Final = "; it was told to stop"
LATE_AND_STOPPED: Final = f"{LATE}{TOLD_TO_STOP}"
NOT_STARTED: Final = "{subject} was not started: {limit} are over"
UNANSWERED: Final = "{subject}: nobody answered within {limit}"
ASKED: Final = "{operation} of {subject}"
CALL_REFUSED: Final = f"{{subject}}{BEFORE_REASON}{{message}}"
POLL_REFUSED: Final = f"{ASKED}{BEFORE_REASON}{{message}}"
POLL_REFUSED_AND_STOPPED: Final = f"{POLL_REFUSED}{TOLD_TO_STOP}"
WITH_VALUE: Final = "{message}; {field} is {value!r}"
"""The refusal of a text by botocore, whose message has the length instead of the text."""
OF_PARAMETER: Final = "{field}, the run's parameter {name},"
REFUSED: Final = "{subject} was refused: {code}: {message}"
"""The refusal of one of several requests, for lack of capacity or quota."""
REFUSED_BEFORE: Final = "{subject} was refused before"
LACKING: Final = "{label}: {words}"
"""The failure of one of several requests, after the machines that it requested."""
NOTHING_HAD_CAPACITY: Final = "nothing had capacity{waiting}: {requests}"
"""``waiting`` is empty where nothing was waited for, else one of the next two."""
IN_VAIN: Final = " in {hours} h of waiting"
FUTILE: Final = ", and waiting does not raise a quota of 0"
REMEDIED: Final = "{cause}; {remedy}"
"""The cause of a failure that says what is left, and what to do about it."""
SEPARATOR: Final = "; "
"""Between what several requests met, and between several problems of an input."""

UNSWEPT: Final = (
    "{driver} nothing deletes what a run keeps for later ones; run it on Step Functions, which has "
    "a sweep, or leave keep_for_h out"
)
"""The refusal of a graph that leaves something to a sweep; ``driver``: ``on Airflow``."""

OTHER_REGION: Final = (
    "pipeline {pipeline} runs in {region}, and {place} is for {other}; use one for {region}, or "
    "change the region of the pipeline"
)

NO_REGION: Final = (
    "pipeline {pipeline} names no region, so its ARNs are those of partition aws, and {place} is "
    "for {other} in partition {partition}; give the pipeline `region: {other}`"
)

INPUT_NOT_OBJECT: Final = "the input is not an object"
PARAMETER_MISSING: Final = "parameter {name} is missing"
PARAMETER_TYPE: Final = "parameter {name} is not of type {type}"
PARAMETER_NOT_URI: Final = "parameter {name}: expected an S3 URI (s3://bucket/key), got '{value}'"
PARAMETER_ELEMENTS: Final = (
    "parameter {name}: expected a list of texts, numbers, true or false, or of objects of these; "
    "its element {numbers} is none"
)
"""``numbers`` count from 1, with commas between them."""
PARAMETER_UNKNOWN: Final = "there is no parameter {name}"

NO_VALUE: Final = "{source} has no {path}"
"""``source`` is the step's name, and the URI of what it read; ``path`` is the value's place."""
NOT_A: Final = "{source}: no {kind} {path}"
"""The value has another kind, or is missing: Step Functions does not tell the two apart."""
NOT_JSON: Final = "{source} is not JSON"

TOO_LARGE_RESPONSE: Final = (
    "{source}: the response has more than {limit} bytes, the most that Step Functions carries; ask "
    "for less at a time"
)
TOO_LARGE_RESULTS: Final = (
    "{source}: the results have more than {limit} bytes, the most that Step Functions carries; "
    "keep less of each element, or loop over fewer"
)

BROKEN_REPORT: Final = "{step}: {uri} {problem}"
"""``problem`` is one of the next five."""
ABSENT_REPORT: Final = "does not exist: the job ended well without it; let its script write it"
UNREAD_REPORT: Final = "cannot be read: {message}"
UNUSABLE_REPORT: Final = f"is not a JSON object in UTF-8 of at most {MAX_REPORT_BYTES} bytes"
ABSENT_VALUE: Final = "has no {path}; let the script write it there, or correct the name"
WRONG_VALUE: Final = "has no {kind} at {path}"
NOT_FINITE_VALUE: Final = "has NaN or infinity at {path}"


def ending(failure: tuple[str, str] | None) -> dict[str, str]:
    """Return how a run ended, as the stages after its end read it: state, error and cause."""
    if failure is None:
        return {"state": RUN_SUCCEEDED, "error": "", "cause": ""}
    error, cause = failure
    return {"state": RUN_FAILED, "error": error, "cause": cause}


def late(until: Until) -> str:
    """Return the text of the cause where something took too long."""
    if until.person is not None:
        return UNANSWERED
    return LATE if until.stop is None else LATE_AND_STOPPED


def own_limit(until: Until) -> str:
    """Return the time that a job itself has, in words."""
    return filled(OWN_LIMIT, seconds=number(until.timeout_s))


def limit_of_stage(call: Call) -> str:
    """Return the time that a call has together with others of its stage, in words."""
    seconds = 0.0 if call.within is None else call.within.seconds
    return filled(LIMIT_OF_STAGE, seconds=number(seconds), stage=stage_of(call.name))


_OBJECTS: Final[Mapping[str, str]] = {
    "dynamodb": "TableName",
    "secretsmanager": "SecretId",
    "sns": "TopicArn",
    "sqs": "QueueUrl",
}
"""Services that say "it does not exist", and the field with what does not."""


def place(service: str, request: Mapping[str, T]) -> tuple[str | T, ...]:
    """Return what a request is about, in pieces, where the service's messages name no object.

    >>> place("s3", {"Bucket": "data", "Prefix": "set/"})
    (' of s3://', 'data', '/', 'set/')
    """
    if service in _OBJECTS and _OBJECTS[service] in request:
        return (" of ", request[_OBJECTS[service]])
    if service != "s3" or "Bucket" not in request:
        return ()
    pieces = (("Bucket", " of s3://"), ("Key", "/"), ("Prefix", "/"), ("CopySource", " from s3://"))
    return tuple(
        each for name, before in pieces if name in request for each in (before, request[name])
    )


def number(value: float) -> str:
    """Return a number as people write it.

    >>> number(2_592_000.0), number(0.5)
    ('2592000', '0.5')
    """
    return f"{value:.15g}"


def filled(text: str, **values: object) -> str:
    """Return a text with its holes filled.

    >>> filled(ENDED, subject="CreateTrainingJob digits", status="Failed")
    'CreateTrainingJob digits ended as Failed'
    """
    return text.format(**values)


def parts(text: str, **values: T) -> Iterator[str | T]:
    """Yield the pieces of a text in order: plain pieces as text, holes as the values given.

    >>> list(parts(ENDED, subject=1, status=2))
    [1, ' ended as ', 2]
    """
    for literal, hole, _, _ in Formatter().parse(text):
        if literal:
            yield literal
        if hole is not None:
            yield values[hole]
