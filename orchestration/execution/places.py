"""The place in a list of requests at which a further attempt goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from orchestration.execution import wording
from orchestration.execution.effects import Failed, Performance, Place, Verdict
from orchestration.execution.jobs import Job
from orchestration.graph import NO_CAPACITY, ErrorPattern


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


Jobs: TypeAlias = Callable[[int, int], Job]
"""The job of the n-th try's m-th request."""
Look: TypeAlias = Callable[[Job], Performance[Standing | None]]
"""Asks for what has a job's name; ``None`` where nothing has."""


def resumed(jobs: Jobs, look: Look, count: int, attempt: Attempt) -> Performance[Place]:
    """Find where an attempt goes on that an earlier one went before.

    At the last request of the newest try that has a job: creating an earlier one, which was refused
    then and may not be now, would pay twice.
    """

    def looked(number: int) -> Performance[list[Standing | None]]:
        standings = []
        for place in range(count):
            standings.append((yield from look(jobs(number, place))))
        return standings

    number = 1
    standings = yield from looked(1)
    while attempt.cleared:
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


def exhausted(place: Place) -> Failed:
    """Return the end where no request is left."""
    requests = wording.SEPARATOR.join(place.lacking)
    return Failed(NO_CAPACITY, wording.filled(wording.NOTHING_HAD_CAPACITY, requests=requests))
