"""Rounds through the requests of a call that waits for capacity.

Where none of the requests found capacity, a Wait state leads back to the first one. How long that
goes on is measured by the clock for the requests and their jobs, while the pauses count by their
length.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from orchestration.backends.jsonata import enclosed, quote
from orchestration.backends.stepfunctions.calls import people, timing, tries
from orchestration.backends.stepfunctions.names import TRY, Scope, alternative, state, variable
from orchestration.backends.stepfunctions.states import Rule, State, States, choice, fail
from orchestration.backends.stepfunctions.wording import Raw, Words, worded
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import Call, Fallback

MOST_POLLS_WAITING: Final = 1000
"""Polls of all jobs together that find no capacity; their events leave room for the rest."""
_ENTRANCE: Final = "BeginTry"
"""The state in which each try begins."""


def interval_s(step: Call) -> int:
    """Return the seconds between two polls.

    A job may take most of the time that a call waits for capacity to find out that there is none,
    and so may the one of each further round.
    """
    shortest = 0.0 if step.fallback is None else step.fallback.wait_s / MOST_POLLS_WAITING
    return max(1 if step.until is None else people.interval_s(step.until), ceil(shortest))


def most_rounds(step: Call) -> int:
    """Return how often all requests of a call may be sent again."""
    return ceil(step.fallback.wait_s / step.fallback.pause_s) if step.fallback else 0


def held(step: Call) -> str:
    """Return the variable of what the requests of a round met."""
    return variable(step.name, "Lacking")


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds through a call's requests."""

    step: Call

    @property
    def begun(self) -> dict[str, Json]:
        """The assignments before the first round."""
        return {self._waited: 0, self._used: False, self._hopeful: False} if self._waits else {}

    @property
    def timed(self) -> dict[str, Json]:
        """The assignment where a round begins."""
        return {self._since: enclosed("$millis()")} if self._waits else {}

    def met(self, hopeful: str, *, used: bool = False) -> dict[str, Json]:
        """Return the assignments where a request found no capacity.

        ``hopeful`` is the condition that it may find some later. ``used``: it started a job, whose
        name is taken.
        """
        if not self._waits:
            return {}
        hope = True if hopeful == "true" else enclosed(f"${self._hopeful} or {hopeful}")
        return {self._hopeful: hope, **({self._used: True} if used else {})}

    def ended(self, scope: Scope, states: States, again: dict[str, Json]) -> str:
        """Write the end of a round in which no request found capacity.

        ``again`` are the assignments before the next one.
        """
        waiting: Words | Raw = ()
        if self._waits:
            in_vain = worded(wording.IN_VAIN, scope, hours=(f"{self._fallback.wait_s / 3600:g}",))
            waiting = Raw(f"(${self._hopeful} ? {in_vain} : {quote(wording.FUTILE)})")
        requests = Raw(f"${held(self.step)}")
        text = wording.NOTHING_HAD_CAPACITY
        cause = enclosed(worded(text, scope, waiting=waiting, requests=requests))
        failed = fail(wording.NO_CAPACITY, cause)
        end = states.last(state(self.step.name, wording.NO_CAPACITY), failed)
        return self._again(scope, states, again, end) if self._waits else end

    def _again(self, scope: Scope, states: States, again: dict[str, Json], end: str) -> str:
        """Write the choice between another round and the end."""
        step, fallback = self.step, self._fallback
        waited = f"${self._waited} + ($millis() - ${self._since}) / 1000"
        left = f"{fallback.wait_s:g} - ({waited})"
        pause = f"$min([{fallback.pause_s:g}, {left}])"
        if step.within is not None:
            pause = f"$max([0, $min([{pause}, {timing.left(step, scope)}])])"
        number, used = variable(step.name, "Number"), f"${self._used}"
        wait: State = {
            "Type": "Wait",
            "Seconds": enclosed(f"$ceil(${self._pause})"),
            "Assign": {
                **again,
                self._used: False,
                self._hopeful: False,
                # What was only refused has left its name.
                number: enclosed(f"${number} + ({used} ? 1 : 0)"),
                variable(step.name, TRY): enclosed(
                    f"{used} ? '-' & (${number} + 1) : ${variable(step.name, TRY)}"
                ),
            },
        }
        pausing = states.add(
            state(step.name, "WaitForCapacity"), wait, alternative(step.name, 0, _ENTRANCE)
        )
        assigned: dict[str, Json] = {
            self._pause: enclosed(pause),
            self._waited: enclosed(f"{waited} + {pause}"),
        }
        rule = Rule(f"${self._hopeful} and {left} > 0", pausing, assigned)
        return states.last(self.end, choice(rule, default=end))

    @property
    def end(self) -> str:
        """The state after the last request that found no capacity."""
        return state(self.step.name, "EndRound" if self._waits else wording.NO_CAPACITY)

    @property
    def _waits(self) -> bool:
        return tries.waits(self.step)

    @property
    def _fallback(self) -> Fallback:
        assert self.step.fallback is not None  # noqa: S101 (only what falls back goes round)
        return self.step.fallback

    @property
    def _waited(self) -> str:
        return variable(self.step.name, "Waited")

    @property
    def _since(self) -> str:
        return variable(self.step.name, "Since")

    @property
    def _pause(self) -> str:
        return variable(self.step.name, "Pause")

    @property
    def _used(self) -> str:
        return variable(self.step.name, "Used")

    @property
    def _hopeful(self) -> str:
        return variable(self.step.name, "Hopeful")
