"""From a request that finds no capacity to the next one.

The list is left only forward, and only because no capacity was available. What each request met is
kept in one text, which is the cause of the failure where none is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import cast

from orchestration.backends.jsonata import enclosed, path, quote
from orchestration.backends.stepfunctions.calls import recognition
from orchestration.backends.stepfunctions.calls.rounds import Rounds, held
from orchestration.backends.stepfunctions.calls.searching import Search
from orchestration.backends.stepfunctions.calls.tasks import task
from orchestration.backends.stepfunctions.names import Scope, alternative
from orchestration.backends.stepfunctions.states import Rule, State, States, choice
from orchestration.backends.stepfunctions.wording import MESSAGE, Raw, Words, worded
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import Call, Fallback, Retry, Until
from orchestration.refs import Expression


@dataclass(frozen=True)
class Way:
    """The way from one of a call's requests to the next."""

    step: Call
    """The request as a call of its own, without alternatives."""
    number: int
    """0: the call's own request."""
    last: bool
    following: str
    """The first state of the next request, or of the failure if none is left."""
    scope: Scope
    states: States

    def lacks(self, root: str) -> str:
        """Return whether a job, described at ``root``, found no capacity, in JSONata."""
        if self._until.reason is None or not self._fallback.reasons:
            return "false"
        reason = path(root, self._until.reason)
        return " or ".join(
            f"$substring({reason}, 0, {len(begin)}) = {quote(begin)}"
            for begin in self._fallback.reasons
        )

    @property
    def search(self) -> Search:
        """The search for jobs of earlier attempts."""
        return Search(self.step, self.number, self.last)

    def searched(self, condition: str, words: str) -> list[Rule]:
        """Return the rule that goes on searching, and keeps what this request met."""
        return self.search.lacking(condition, self._noted(words))

    def lacking(self, condition: str, words: str) -> Rule:
        """Return the rule that goes on to the next request, and keeps what this one met."""
        met = self._rounds.met("true", used=True)
        return Rule(condition, self.following, {**self._noted(words), **met})

    def refusals(
        self, subject: Words, adopted: Rule, unfollowed: Rule, refusal: Json
    ) -> list[Rule]:
        """Return which errors of the call are a lack of capacity, and where they lead.

        ``adopted`` leads on where the job exists after all, ``unfollowed`` where it can't be asked
        for; ``refusal`` is the error where nothing answers the question whether it exists.
        """
        rules, look = [], self._look(subject, adopted, unfollowed, refusal)
        for pattern in self._fallback.refusals:
            code = (pattern.code.removesuffix("Exception"),)
            words = worded(wording.REFUSED, self.scope, subject=subject, code=code, message=MESSAGE)
            noted = {**self._noted(words), self.search.looks: 0, **self._rounds.met(self._hopeful)}
            matches = recognition.matches(pattern, self.step.operation)
            rules.append(Rule(matches, look, noted))
        return rules

    @property
    def _rounds(self) -> Rounds:
        return Rounds(self.step)

    @property
    def _hopeful(self) -> str:
        """The condition that the refusal in a state's input is one that waiting may end."""
        futile = [recognition.matches(p, self.step.operation) for p in self._fallback.futile]
        return f"$not({' or '.join(futile)})" if futile else "true"

    def _noted(self, words: str) -> dict[str, Json]:
        label = (cast("str | Expression[object]", self._fallback.label),)
        text = worded(wording.LACKING, self.scope, label=label, words=Raw(words))
        if self.number > 0:
            text = f"${held(self.step)} & {quote(wording.SEPARATOR)} & {text}"
        return {held(self.step): enclosed(text)}

    def _look(self, subject: Words, adopted: Rule, unfollowed: Rule, refusal: Json) -> str:
        """Write the question whether the job exists, started before or its response lost."""
        poll, absent = self._until.poll, self._until.absent
        looking = task(poll, self.scope, Retry(), step=self.step.name, unnamed=False)
        again = self._name("LookAgain")
        before = worded(wording.REFUSED_BEFORE, self.scope, subject=subject)
        rules = self.search.absent(recognition.is_absent(self.step), self._noted(before))
        rules += [Rule(recognition.matches(pattern, poll), self.following) for pattern in absent]
        tries = f"${self.search.looks} < {Retry().attempts - 1}"
        rules += [Rule(f"{tries} and {recognition.PASSES}", again), unfollowed]
        rules.append(Rule("true", self.states.failed(), output=refusal))
        absence = choice(*rules, default=self.states.failed())
        judged = self.states.last(self._name("CheckAbsence"), absence)
        looking["Catch"] = [
            {"ErrorEquals": ["States.ALL"], "Next": judged},
        ]
        looking["Assign"] = {**adopted.assign, **self.search.found}
        wait: State = {
            "Type": "Wait",
            "Seconds": max(1, ceil(self._until.interval_s)),
            "Assign": {self.search.looks: enclosed(f"${self.search.looks} + 1")},
        }
        look = self.states.add(self._name("Look"), looking, adopted.following)
        self.states.add(again, wait, look)
        return look

    def _name(self, helper: str) -> str:
        return alternative(self.step.name, self.number, helper)

    @property
    def _until(self) -> Until:
        return cast(Until, self.step.until)

    @property
    def _fallback(self) -> Fallback:
        return cast(Fallback, self.step.fallback)
