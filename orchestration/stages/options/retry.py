"""Further tries of a stage's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from orchestration.errors import Problem
from orchestration.graph import USUAL_FAILURES, Call, FailureKind, Step, with_calls
from orchestration.stages.values import Model

_NO_JOB: Final = (
    "this stage starts no job that could be started again under another name; remove it (requests "
    "are sent again by themselves)"
)
_BESIDE_FALLBACKS: Final = "a job with fallback clusters is not started again; remove one of them"
_WITHOUT: Final = {
    "capacity": "no job of this stage says that it failed because no capacity was available",
    "time_limit": "no job of this stage says that it ran out of its own time",
}


def _once(kinds: tuple[FailureKind, ...]) -> tuple[FailureKind, ...]:
    twice = sorted({kind for kind in kinds if kinds.count(kind) > 1})
    if twice:
        raise ValueError(f"names {', '.join(twice)} twice")
    return kinds


class JobRetry(Model):
    """Further jobs of a stage, each after one that failed.

    They run from the beginning, or from the stage's checkpoints, and each is paid for. A job that
    somebody stopped is not followed by another.
    """

    attempts: int = Field(ge=2, le=5, strict=True)
    """Jobs at the most, the first one included, under the names with ``-2``, ``-3``, … behind it.
    Where the stage has a job for each of several elements, each of them has as many."""
    on: Annotated[tuple[FailureKind, ...], Field(min_length=1), AfterValidator(_once)] | None = None
    """The failures after which another job is started: ``job_failure`` (it failed by itself),
    ``capacity`` (AWS had no machines for it), ``time_limit`` (it ran out of its own time); by
    default the first two."""

    def applied(self, steps: Sequence[Step]) -> tuple[tuple[Step, ...], list[Problem]]:
        """Return a stage's steps with the tries, and what keeps its jobs from having them."""
        changed: list[Call] = []
        again = USUAL_FAILURES if self.on is None else frozenset(self.on)

        def change(call: Call) -> Call:
            adopt = call.adopt
            if adopt is None or adopt.name_field is None or call.until is None:
                return call
            changed.append(call)
            return replace(call, adopt=replace(adopt, tries=self.attempts, again=again))

        tried = tuple(with_calls(step, change) for step in steps)
        if not changed:
            return tried, [Problem("retry", _NO_JOB)]
        if any(call.fallback is not None for call in changed):
            return tried, [Problem("retry", _BESIDE_FALLBACKS)]
        return tried, list(self._unknowable(changed))

    def _unknowable(self, jobs: Sequence[Call]) -> Iterator[Problem]:
        """Yield the failures that AWS does not tell apart for any of the jobs."""
        waits = [call.until for call in jobs if call.until is not None]
        tells = {
            "capacity": any(until.reason is not None for until in waits),
            "time_limit": any(until.limit is not None for until in waits),
        }
        for number, kind in enumerate(self.on or ()):
            if not tells.get(kind, True):
                yield Problem(f"retry.on[{number}]", f"{_WITHOUT[kind]}; remove {kind}")
