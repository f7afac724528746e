"""The place in a list of requests at which a further attempt goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from orchestration.errors import RunError
from orchestration.execution import wording
from orchestration.execution.effects import (
    Deadline,
    Failed,
    Note,
    Performance,
    Place,
    Rest,
    Verdict,
    Waited,
)
from orchestration.execution.jobs import Job
from orchestration.graph import NO_CAPACITY, ErrorPattern, Fallback


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt at its task this is, and whether a person asked for it."""

    first: bool = True
    """True if no other attempt of this run went before."""
    cleared: bool = False
    """True if a person has cleared the task."""
    first_since_cleared: bool = False
    """True for the first attempt since then, false for the retries that follow it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A job that exists: how it ended, ``None`` while it runs."""

    verdict: Verdict | None
    created: str | None = None
    """The moment of its creation, in ISO 8601."""


Jobs: TypeAlias = Callable[[int, int], Job]
"""The job of the n-th try's m-th request."""
Look: TypeAlias = Callable[[Job], Performance[Standing | None]]
"""Asks for what has a job's name; ``None`` where nothing has."""


def resumed(
    jobs: Jobs, look: Look, count: int, attempt: Attempt, *, rounds: bool = False
) -> Performance[Place]:
    """Find where an attempt goes on that an earlier one went before.

    At the last request of the newest try that has a job: creating an earlier one, which was refused
    then and may not be now, would pay twice. ``rounds``: any attempt may have made several tries,
    each of which has a job.
    """

    def looked(number: int) -> Performance[list[Standing | None]]:
        standings = []
        for place in range(count):
            standings.append((yield from look(jobs(number, place))))
        return standings

    number = 1
    standings = yield from looked(1)
    while attempt.cleared or (rounds and any(standings)):
        newer = yield from looked(number + 1)
        if not any(newer):
            break
        number, standings = number + 1, newer
    there = [standing for standing in standings if standing is not None]
    ended_badly = all(isinstance(standing.verdict, Failed) for standing in there)
    if attempt.first_since_cleared and there and ended_badly:
        return Place(number + 1)
    last = max((p for p, standing in enumerate(standings) if standing is not None), default=0)
    return Place(number, tuple(met(jobs(number, n), standings[n]) for n in range(last)))


def met(job: Job, standing: Standing | None) -> str:
    """Return what an earlier attempt's request met, as far as that can still be known."""
    verdict = None if standing is None else standing.verdict
    if isinstance(verdict, Failed):
        words = verdict.cause
    else:
        words = wording.filled(wording.REFUSED_BEFORE, subject=job.subject)
    return wording.filled(wording.LACKING, label=job.label, words=words)


def refused(job: Job, pattern: ErrorPattern, message: str) -> str:
    """Return what a request met that was refused because no capacity was available."""
    code = pattern.code.removesuffix("Exception")
    words = wording.filled(wording.REFUSED, subject=job.subject, code=code, message=message)
    return wording.filled(wording.LACKING, label=job.label, words=words)


def timed(
    place: Place, fallback: Fallback | None, path: str = "", since: str | None = None
) -> Performance[Place]:
    """Note the moment that a round begins, where its time matters.

    ``path`` is the step's where another process may have waited before, ``since`` when that one
    created the first job.
    """
    if fallback is None or not fallback.waits:
        return place
    waited = cast(float, (yield Waited(path, since))) if path else place.waited
    return replace(place, since=cast(float, (yield Deadline())), waited=waited)


def next_round(
    path: str, fallback: Fallback, place: Place, most: float | None = None
) -> Performance[Place]:
    """Pause before the next round, no request being left; fail where none is allowed.

    ``most``: the seconds that the pause may take.
    """
    waited = left = 0.0
    if fallback.waits:
        waited = place.waited + cast(float, (yield Deadline())) - place.since
        left = fallback.wait_s - waited
    if left <= 0 or not place.hopeful:
        raise exhausted(fallback, place)
    seconds = min(fallback.pause_s, left)
    if most is not None:
        seconds = max(0.0, min(seconds, most))
    yield Note(f"{wording.SEPARATOR.join(place.lacking)}; going round again in {seconds:.0f} s")
    # What was only refused has left its name, and later attempts look for jobs by their names.
    number = place.number + 1 if place.used else place.number
    rest = Rest(path, seconds, Place(number, waited=waited + seconds))
    return (yield from rested(rest, fallback))


def rested(rest: Rest, fallback: Fallback | None) -> Performance[Place]:
    """Let the pause before a round pass; returns the place of its first request."""
    yield rest
    return (yield from timed(cast(Place, rest.place), fallback))


def exhausted(fallback: Fallback, place: Place) -> RunError:
    """Return the end where no request is left."""
    waiting = ""
    if fallback.waits:
        hours = f"{fallback.wait_s / 3600:g}"
        waiting = wording.filled(wording.IN_VAIN, hours=hours) if place.hopeful else wording.FUTILE
    requests = wording.SEPARATOR.join(place.lacking)
    cause = wording.filled(wording.NOTHING_HAD_CAPACITY, waiting=waiting, requests=requests)
    return RunError(NO_CAPACITY, cause)
