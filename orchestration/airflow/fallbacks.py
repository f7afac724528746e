"""Where in a list of requests an attempt stands, and where one goes on that follows another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from orchestration.airflow.jobs import Job
from orchestration.airflow.watching import Ended, Failed
from orchestration.graph import NO_CAPACITY, ErrorPattern


@dataclass(frozen=True, slots=True)
class Place:
    """Which request of which try is next."""

    number: int = 1
    """The n-th try: a person who clears a task starts another, under names with ``-n``."""
    lacking: tuple[str, ...] = ()
    """What the requests of this try before it met, all of which found no capacity."""

    def after(self, words: str) -> Place:
        """The place of the next request, this one having found no capacity."""
        return replace(self, lacking=(*self.lacking, words))

    def exhausted(self) -> Failed:
        """The end where no request is left."""
        return Failed(NO_CAPACITY, f"nothing had capacity: {'; '.join(self.lacking)}")

    def to_json(self) -> dict[str, Any]:
        """As the argument of a trigger."""
        return {**asdict(self), "lacking": list(self.lacking)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Place:
        """The place that ``to_json`` wrote down; the first one where nothing was."""
        return cls(document.get("number", 1), tuple(document.get("lacking", ())))


@dataclass(frozen=True, slots=True)
class Standing:
    """A job that exists: how it ended, ``None`` while it runs."""

    verdict: Ended | Failed | None


Jobs = Callable[[int, int], Job]
"""The job of the n-th try's m-th request."""
Look = Callable[[Job], Standing | None]
"""``None``: there is nothing under the job's name."""


def resumed(jobs: Jobs, look: Look, count: int, *, cleared: bool, first: bool) -> Place:
    """Where an attempt goes on that an earlier one went before.

    At the last request of the newest try that has a job: creating an earlier one, which was refused
    then and may not be now, would pay twice. ``cleared``: a person has cleared the task, so that
    there may be further tries; ``first``: this is the first attempt since, which begins another one
    unless something still runs or went well.
    """

    def looked(number: int) -> list[Standing | None]:
        return [look(jobs(number, place)) for place in range(count)]

    number, found = 1, looked(1)
    while cleared and any(newer := looked(number + 1)):
        number, found = number + 1, newer
    there = [standing for standing in found if standing is not None]
    if first and there and all(isinstance(standing.verdict, Failed) for standing in there):
        return Place(number + 1)
    last = max((place for place, standing in enumerate(found) if standing is not None), default=0)
    return Place(number, tuple(met(jobs(number, n), found[n]) for n in range(last)))


def met(job: Job, standing: Standing | None) -> str:
    """What an earlier attempt's request met, as far as that can still be told."""
    verdict = None if standing is None else standing.verdict
    told = verdict.cause if isinstance(verdict, Failed) else f"{job.subject} was refused before"
    return f"{job.label}: {told}"


def refused(job: Job, pattern: ErrorPattern, message: str) -> str:
    """What a request met that was refused for want of capacity."""
    code = pattern.code.removesuffix("Exception")
    return f"{job.label}: {job.subject} was refused: {code}: {message}"
