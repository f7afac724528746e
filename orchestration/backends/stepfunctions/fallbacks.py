"""From a request that finds no capacity to the next one.

The list is left only forward, and only for want of capacity. What each request met is kept in one
text, which is the cause of the failure where none is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import cast

from orchestration.backends.jsonata import enclosed, path, quote, render
from orchestration.backends.stepfunctions import recognition
from orchestration.backends.stepfunctions.names import Scope, alternative, state, variable
from orchestration.backends.stepfunctions.states import State, States, choice, fail, reraised
from orchestration.backends.stepfunctions.tasks import task
from orchestration.expressions import join
from orchestration.graph import NO_CAPACITY, Call, Fallback, Retry, Until
from orchestration.refs import Expression


def exhausted(step: Call, states: States) -> str:
    """Write the end of a call none of whose requests found capacity."""
    cause = enclosed(f"'nothing had capacity: ' & ${_held(step)}")
    return states.last(state(step.name, NO_CAPACITY), fail(NO_CAPACITY, cause))


def _held(step: Call) -> str:
    return variable(step.name, "Lacking")


@dataclass(frozen=True)
class Way:
    """The way from one of a call's requests to the next."""

    step: Call
    """The request as a call of its own, without alternatives."""
    number: int
    """0: the call's own request."""
    following: str
    """What is asked for instead, or the end where nothing is left."""
    scope: Scope
    states: States

    def lacks(self, root: str) -> str:
        """Whether a job failed for want of capacity, its description being at ``root``."""
        if self._until.reason is None or not self._fallback.reasons:
            return "false"
        reason = path(root, self._until.reason)
        return " or ".join(
            f"$substring({reason}, 0, {len(begin)}) = {quote(begin)}"
            for begin in self._fallback.reasons
        )

    def noted(self, helper: str, words: str, following: str | None = None) -> str:
        """Write down in JSONata's words what the request met, and go on."""
        told = f"{render(join(self._fallback.label, ': '), self.scope)} & {words}"  # type: ignore[arg-type]  # a label is text or an expression of one
        text = told if self.number == 0 else f"${_held(self.step)} & '; ' & {told}"
        assigned: State = {"Type": "Pass", "Assign": {_held(self.step): enclosed(text)}}
        return self.states.add(self._name(helper), assigned, following or self.following)

    def refusals(
        self, subject: tuple[str | Expression[object], ...], adopted: str
    ) -> list[tuple[str, str]]:
        """Which errors of the call are want of capacity, and the states they lead to."""
        rules = []
        for number, pattern in enumerate(self._fallback.refusals, start=1):
            code = pattern.code.removesuffix("Exception")
            refused = render(join(*subject, f" was refused: {code}: "), self.scope)
            words = f"{refused} & $substringBefore($states.input.Cause, ' (Service:')"
            helper = "Refused" if number == 1 else f"Refused{number}"
            noted = self.noted(helper, words, self._look(adopted))
            self.states.written[noted]["Assign"] = {
                **cast(State, self.states.written[noted]["Assign"]),
                self._looks: 0,
            }
            rules.append((recognition.matches(pattern, self.step.operation), noted))
        return rules

    def _look(self, adopted: str) -> str:
        """Write the question whether the job exists after all, its response having been lost."""
        poll, absent = self._until.poll, self._fallback.absent
        named = all(recognition.is_named(pattern, poll) for pattern in absent)
        looking = task(poll, self.scope, Retry(), unnamed=named)
        rules = [(recognition.matches(pattern, poll), self.following) for pattern in absent]
        tries = f"${self._looks} < {Retry().attempts - 1}"
        rules.append((f"{tries} and ({recognition.passing(poll)})", self._name("LookAgain")))
        otherwise = reraised(self.states, self._name("LookReraise"))
        judged = self.states.last(self._name("Absent"), choice(*rules, default=otherwise))
        looking["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": judged}]
        again: State = {
            "Type": "Wait",
            "Seconds": max(1, ceil(self._until.interval_s)),
            "Assign": {self._looks: enclosed(f"${self._looks} + 1")},
        }
        look = self.states.add(self._name("Look"), looking, adopted)
        self.states.add(self._name("LookAgain"), again, look)
        return look

    def _name(self, helper: str) -> str:
        return alternative(self.step.name, self.number, helper)

    @property
    def _looks(self) -> str:
        return variable(self.step.name, "Looks")

    @property
    def _until(self) -> Until:
        return cast(Until, self.step.until)

    @property
    def _fallback(self) -> Fallback:
        return cast(Fallback, self.step.fallback)
