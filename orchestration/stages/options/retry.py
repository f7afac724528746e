"""Further tries of a stage's jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic import Field

from orchestration.errors import Problem
from orchestration.graph import Call, Step, with_calls
from orchestration.stages.values import Model

_NO_JOB: Final = (
    "this stage starts no job that could be started again under another name; remove it (requests "
    "are sent again by themselves)"
)
_BESIDE_FALLBACKS: Final = "a job with fallback clusters is not started again; remove one of them"


class JobRetry(Model):
    """Further jobs of a stage, each after one that failed.

    They run from the beginning, or from the stage's checkpoints, and each is paid for. A job that
    somebody stopped, or that ran out of its own time, is not followed by another.
    """

    attempts: int = Field(ge=2, le=5, strict=True)
    """Jobs at the most, the first one included, under the names with ``-2``, ``-3``, … behind it.
    Where the stage has a job for each of several elements, each of them has as many."""

    def applied(self, steps: Sequence[Step]) -> tuple[tuple[Step, ...], list[Problem]]:
        """Return a stage's steps with the tries, and what keeps its jobs from having them."""
        changed: list[Call] = []

        def change(call: Call) -> Call:
            adopt = call.adopt
            if adopt is None or adopt.name_field is None or call.until is None:
                return call
            changed.append(call)
            return replace(call, adopt=replace(adopt, tries=self.attempts))

        tried = tuple(with_calls(step, change) for step in steps)
        if not changed:
            return tried, [Problem("retry", _NO_JOB)]
        if any(call.fallback is not None for call in changed):
            return tried, [Problem("retry", _BESIDE_FALLBACKS)]
        return tried, []
