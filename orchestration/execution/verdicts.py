"""Verdicts: the meaning of a poll's answer for the step that waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from orchestration.errors import RunError
from orchestration.execution import wording
from orchestration.execution.effects import (
    Deadline,
    Ended,
    Failed,
    Note,
    Pause,
    Performance,
    ServiceError,
    Verdict,
    Watch,
)
from orchestration.execution.outputs import MISSING, at, defaults, taken
from orchestration.execution.refusals import error_name
from orchestration.execution.sending import passes, sent
from orchestration.expressions import Json
from orchestration.graph import (
    CAPACITY_REASON,
    JOB_FAILED,
    TIMED_OUT,
    Call,
    FailureKind,
    Fallback,
    Until,
)


def followed(watch: Watch) -> Performance[Verdict]:
    """Poll a job until it has ended or is out of time; then it is stopped."""
    until = watch.call.until
    assert until is not None  # noqa: S101 (only what waits is watched)
    while True:
        yield Pause(until.interval_s, deadline=watch.deadline)
        verdict = yield from polled(watch)
        if verdict is not None:
            return verdict
        if cast(float, (yield Deadline())) >= watch.deadline:
            yield from stopped(watch)
            return late(watch)


def polled(watch: Watch) -> Performance[Verdict | None]:
    """Ask once how a job does; ``None`` while it goes on or cannot be asked."""
    until, retry = watch.call.until, watch.call.retry
    assert until is not None  # noqa: S101 (only what waits is watched)
    try:
        response = yield from sent(watch.poll, retry)
    except ServiceError as error:
        if error.expired or passes(error, retry):
            yield Note(f"{watch.subject}: {error}; polling on")
            return None
        if until.gone is not None and until.gone.matches(error.code, error.message):
            return _gone(watch, until)
        if watch.doubt is not None and missing(until, error):
            return watch.doubt
        return (yield from unfollowed(watch, until, error))
    return judged(watch.call, response, watch.subject, watch.call.fallback)


def stopped(watch: Watch) -> Performance[bool]:
    """Ask for the end of a job; returns whether AWS took it.

    The job may have ended meanwhile, which some services call an error.
    """
    if watch.stop is None:
        return False
    yield Note(f"Stopping {watch.subject}")
    try:
        yield from sent(watch.stop, watch.call.retry)
    except ServiceError as error:
        yield Note(f"{watch.subject} could not be stopped: {error}")
        return False
    return True


def judged(
    call: Call, response: Json, subject: str, fallback: Fallback | None = None
) -> Verdict | None:
    """Return the end that a poll's response tells of, ``None`` while the job goes on."""
    until = call.until
    assert until is not None  # noqa: S101 (only what waits is judged)
    status = at(response, until.status)
    if status in until.success:
        try:
            return Ended(taken(until.outputs, response, call.name))
        except RunError as error:
            return Failed(error.error, error.cause)
    if status in until.failure:
        limit = MISSING if until.limit is None else at(response, until.limit)
        if limit in until.limits:
            words = wording.filled(wording.LIMIT, word=limit, setting=until.limits[str(limit)])
            cause = wording.filled(
                wording.ENDED_WITH_REASON, subject=subject, status=status, reason=words
            )
            again = _is_repeated(call, "time_limit")
            return Failed(TIMED_OUT, cause, limited=True, repeatable=again)
        reason = MISSING if until.reason is None else at(response, until.reason)
        reasons = [*([] if reason is MISSING else [reason]), *_counts(until, response)]
        if not reasons:
            cause = wording.filled(wording.ENDED, subject=subject, status=status)
        else:
            words = wording.SEPARATOR.join(map(str, reasons))
            cause = wording.filled(
                wording.ENDED_WITH_REASON, subject=subject, status=status, reason=words
            )
        lacking = fallback is not None and fallback.lacks(reason)
        by_itself = call.adopt is not None and status in call.adopt.fails
        no_machines = isinstance(reason, str) and reason.startswith(CAPACITY_REASON)
        again = by_itself and _is_repeated(call, "capacity" if no_machines else "job_failure")
        return Failed(JOB_FAILED, cause, lacking=lacking, repeatable=again)
    # A response without a status is asked for again: services read eventually consistently.
    return None


def _counts(until: Until, response: Json) -> Iterator[str]:
    """Yield what stands behind a failure's reason, as one text."""
    if until.counts is not None:
        numbers = (
            (at(response, (*until.counts, name)), words) for name, words in until.counted.items()
        )
        yield ", ".join(f"{'' if n is MISSING else n} {words}" for n, words in numbers)


def _is_repeated(call: Call, kind: FailureKind) -> bool:
    """Return whether the user wants another job after one that failed so."""
    return call.adopt is not None and call.adopt.tries > 1 and kind in call.adopt.again


def late(watch: Watch) -> Failed:
    """Return the end of what took too long."""
    until = watch.call.until
    assert until is not None  # noqa: S101 (only what waits is watched)
    limit = wording.limit_of_stage(watch.call) if watch.shared else wording.own_limit(until)
    return Failed(
        TIMED_OUT, wording.filled(wording.late(until), subject=watch.subject, limit=limit)
    )


def _gone(watch: Watch, until: Until) -> Verdict:
    """Return the good end of what is no more."""
    try:
        return Ended(defaults(until.outputs, watch.call.name))
    except RunError as lacking:
        return Failed(lacking.error, lacking.cause)


def unfollowed(watch: Watch, until: Until, error: ServiceError) -> Performance[Failed]:
    """Stop what can't be asked for, and so can't be left to run; return the end it comes to."""
    # A call that only asks is its own poll.
    own = until.poll.name == watch.call.operation.name
    words = wording.CALL_REFUSED if own else wording.POLL_REFUSED
    name = error_name(until.poll.service, error)
    if watch.stop is not None:
        yield from stopped(watch)
        words, name = wording.POLL_REFUSED_AND_STOPPED, wording.JOB_NOT_FOLLOWED
    cause = wording.filled(
        words, operation=until.poll.name, subject=watch.subject, message=error.message
    )
    return Failed(name, cause)


def missing(until: Until, error: ServiceError) -> bool:
    """Return whether an error of a poll says that nothing has the name."""
    return any(pattern.matches(error.code, error.message) for pattern in until.absent)
