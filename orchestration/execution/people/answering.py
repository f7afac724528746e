"""An answer to a question of a run, given once and by one person.

It replaces the question only while that is unanswered, so that of two answers the first one counts.
On Step Functions the token of the waiting state is returned then; where that fails, the run sees
the answer at its next poll, within the hour.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

from orchestration.errors import StartError
from orchestration.execution.effects import Note, Pause, Performance, Request, ServiceError
from orchestration.execution.sending import sent
from orchestration.expressions import Json
from orchestration.graph import ErrorPattern, Retry
from orchestration.stages.people.places import ASKED, QUESTION, STATE, TOKEN, Decision

_RETRY: Final = Retry()
_CHANGED: Final = ErrorPattern("PreconditionFailed")
_ABSENT: Final = ("NoSuchKey", "NoSuchBucket", "404")
_SPENT: Final = ("InvalidToken", "TaskDoesNotExist", "TaskTimedOut")
_TRIES: Final = 4
_AGAIN_S: Final = 2.0
"""A token of the state that waited before may be there still, between a poll and the next wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, as it stands in S3."""

    state: Decision
    by: str
    at: str
    comment: str = ""


def answered(run: str, stage: str, answer: Answer, *, wakes: bool = True) -> Performance[bool]:
    """Answer the question of a stage; returns whether a state machine was woken.

    ``run`` is the S3 URI of the run: ``s3://bucket/runs/0a1b2c3d4e5f``; ``wakes``: whether a state
    machine may wait. Raises
    :class:`~orchestration.errors.StartError` if there is no question, or another answer.
    """
    bucket, _, prefix = run.removeprefix("s3://").rstrip("/").partition("/")
    place: dict[str, Json] = {"Bucket": bucket, "Key": f"{prefix}/{stage}/{QUESTION}"}
    asked, etag = yield from _question(run, stage, place)
    document = {**{k: v for k, v in asked.items() if k != STATE}, **asdict(answer)}
    request: dict[str, Json] = {
        **place,
        "Body": json.dumps(document, ensure_ascii=False),
        "ContentType": "application/json",
        "Metadata": {STATE: answer.state},
        "IfMatch": etag,
    }
    try:
        yield from sent(Request("s3", "PutObject", request), _RETRY)
    except ServiceError as error:
        if not _CHANGED.matches(error.code, error.message):
            raise
        # Its own first attempt may have got through, and the response been lost.
        stands, _ = yield from _read(place)
        if stands != document:
            raise _answered(run, stage, stands) from error
    if not wakes:
        return False
    return (yield from _woken({**place, "Key": f"{prefix}/{stage}/{TOKEN}"}))


def _question(
    run: str, stage: str, place: Mapping[str, Json]
) -> Performance[tuple[Mapping[str, Json], str]]:
    try:
        asked, etag = yield from _read(place)
    except ServiceError as error:
        if error.code not in _ABSENT:
            raise
        raise StartError(
            f"stage {stage} of run {run} has not asked for an answer (yet); nothing is at "
            f"s3://{place['Bucket']}/{place['Key']}"
        ) from error
    if asked.get(STATE) != ASKED:
        raise _answered(run, stage, asked)
    return asked, etag


def _read(place: Mapping[str, Json]) -> Performance[tuple[Mapping[str, Json], str]]:
    response: Any = yield from sent(Request("s3", "GetObject", dict(place)), _RETRY)
    return cast("Mapping[str, Json]", json.loads(response["Body"])), response["ETag"]


def _answered(run: str, stage: str, answer: Mapping[str, Json]) -> StartError:
    return StartError(
        f"stage {stage} of run {run} was {answer.get(STATE)} by {answer.get('by')} at "
        f"{answer.get('at')}; the first answer counts"
    )


def _woken(place: Mapping[str, Json]) -> Performance[bool]:
    for _ in range(_TRIES):
        try:
            kept, _etag = yield from _read(place)
            parameters: dict[str, Json] = {"taskToken": kept["token"], "output": "{}"}
            yield from sent(Request("stepfunctions", "SendTaskSuccess", parameters), _RETRY)
        except ServiceError as error:
            if error.code in _ABSENT:
                return False
            if error.code not in _SPENT:
                # Without s3:ListBucket, S3 says so too where nothing is there.
                yield Note(f"the answer stands, and no state machine was woken: {error}")
                return False
        else:
            return True
        yield Pause(_AGAIN_S)
    return False
