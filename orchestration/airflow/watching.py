"""What a poll's answer means for the step that waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestration.airflow.outputs import MISSING, at, defaults, taken
from orchestration.airflow.sending import told
from orchestration.errors import RunError
from orchestration.expressions import Json
from orchestration.graph import JOB_FAILED, TIMED_OUT, Fallback, Until

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError


@dataclass(frozen=True, slots=True)
class Ended:
    """What was waited for has ended well."""

    outputs: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Failed:
    """What was waited for has failed."""

    error: str
    cause: str
    lacking: bool = False
    """Whether it failed for want of capacity, so that an alternative may have some."""


def judged(
    until: Until, response: Json, subject: str, fallback: Fallback | None = None
) -> Ended | Failed | None:
    """The end that a poll's response tells of, ``None`` while it goes on.

    ``subject`` names what is waited for: ``CreateTrainingJob digits-train-0a1b``.
    """
    status = at(response, until.status)
    source = f"{until.poll.name} of {subject}"
    if status in until.success:
        try:
            return Ended(taken(until.outputs, response, source))
        except RunError as error:
            return Failed(error.error, error.cause)
    if status in until.failure:
        reason = MISSING if until.reason is None else at(response, until.reason)
        told_reason = "" if reason is MISSING else f": {reason}"
        lacking = fallback is not None and fallback.lacks(reason)
        return Failed(JOB_FAILED, f"{subject} ended as {status}{told_reason}", lacking)
    if status is MISSING:
        return Failed("MissingOutput", f"{source} has no {'.'.join(map(str, until.status))}")
    return None


def judged_error(until: Until, error: ClientError | BotoCoreError, subject: str) -> Ended | Failed:
    """The end that a poll's error tells of, one that does not pass."""
    code, message = told(error)
    if until.gone is not None and until.gone.matches(code, message):
        try:
            return Ended(defaults(until.outputs, subject))
        except RunError as missing:
            return Failed(missing.error, missing.cause)
    return Failed(code, f"{until.poll.name} of {subject}: {message}")


def timed_out(until: Until, subject: str) -> Failed:
    """The end of what took too long."""
    stopped = "; it was told to stop" if until.stop is not None else ""
    return Failed(TIMED_OUT, f"{subject} did not end within {until.timeout_s:g} s{stopped}")
