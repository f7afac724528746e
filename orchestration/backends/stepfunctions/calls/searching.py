"""The search for what earlier attempts at a run started, where several requests stand in a list.

A request that was refused for lack of capacity then may get it now, though a later one of the list
has a job that finished or runs. So a further attempt first asks for the job of each request, try
by try, and goes on where it finds one that has not failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestration.backends.stepfunctions.calls import timing, tries
from orchestration.backends.stepfunctions.calls.rounds import Rounds
from orchestration.backends.stepfunctions.names import alternative, variable
from orchestration.backends.stepfunctions.states import Rule, States, choice
from orchestration.expressions import Json
from orchestration.graph import Call


@dataclass(frozen=True, slots=True)
class Search:
    """The search at one request of a list."""

    step: Call
    number: int
    """0: the call's own request."""
    last: bool

    @property
    def entrance(self) -> str:
        """The state in which each try begins."""
        return alternative(self.step.name, 0, "BeginTry")

    @property
    def looks(self) -> str:
        """The variable that counts how often a job was asked for."""
        return variable(self.step.name, "Looks")

    @property
    def begun(self) -> dict[str, Json]:
        """The assignments where the search is over."""
        return {self._searching: False}

    @property
    def at_first(self) -> dict[str, Json]:
        """The assignments before the first try."""
        return {self._searching: tries.waits(self.step), **Rounds(self.step).begun}

    @property
    def found(self) -> dict[str, Json]:
        """The assignments where there is a job."""
        return {self._seen: True}

    def enter(self, states: States) -> str:
        """Write the choice between searching a try and creating its jobs."""
        first = timing.entered(self.step)
        timed = Rounds(self.step).timed
        searched = {self._searching: True, self._seen: False, self.looks: 0, **timed}
        rules = (
            Rule(tries.is_earlier(self.step), self._look(0), searched),
            Rule("true", first, {**self.begun, **timed}),
        )
        return states.last(self.entrance, choice(*rules, default=first))

    def absent(self, condition: str, noted: Mapping[str, Json]) -> list[Rule]:
        """Return where the search goes on if the request has no job.

        ``noted`` keeps for the cause what the request met.
        """
        missing = f"${self._searching} and ({condition})"
        if not self.last:
            return [Rule(missing, self._look(self.number + 1), {**noted, self.looks: 0})]
        seen = f"{missing} and ${self._seen}"
        return [
            Rule(seen, self.entrance, tries.following(self.step)),
            Rule(missing, timing.entered(self.step), self.begun),
        ]

    def lacking(self, condition: str, noted: Mapping[str, Json]) -> list[Rule]:
        """Return where the search goes on if the request's job found no capacity."""
        if self.last:
            return []
        onwards = {**noted, self.looks: 0}
        return [Rule(f"${self._searching} and {condition}", self._look(self.number + 1), onwards)]

    def _look(self, number: int) -> str:
        return alternative(self.step.name, number, "Look")

    @property
    def _searching(self) -> str:
        return tries.searching(self.step)

    @property
    def _seen(self) -> str:
        return variable(self.step.name, "Seen")
