"""What a call started, followed until it is over."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import cast

from orchestration.backends.jsonata import enclosed, field, literal, path, render, tree
from orchestration.backends.stepfunctions import recognition
from orchestration.backends.stepfunctions.fallbacks import Way
from orchestration.backends.stepfunctions.names import Scope, alternative, variable
from orchestration.backends.stepfunctions.outputs import defaults, taken
from orchestration.backends.stepfunctions.states import State, States, choice, fail, reraised
from orchestration.backends.stepfunctions.tasks import task
from orchestration.expressions import Json, Tree, join
from orchestration.graph import JOB_FAILED, TIMED_OUT, Call, Retry, Until
from orchestration.refs import Expression

MOST_POLLS = 2000
"""A round of Poll, Status and Wait writes 9 events into a history of 25,000 at the most:
https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"""


@dataclass(frozen=True)
class Polling:
    """The states that ask how a job does, until it is over or out of time."""

    step: Call
    scope: Scope
    states: States
    following: str
    way: Way | None = None
    """What it falls back on for want of capacity."""

    @property
    def begun(self) -> dict[str, Json]:
        """What is assigned before the first poll."""
        return {self._polls: 0}

    def write(self) -> str:
        """Write the loop; it begins with a poll."""
        until, name = self._until, self._name("Poll")
        if name in self.states.written:
            return name
        unnamed = until.gone is None or recognition.is_named(until.gone, until.poll)
        polling = task(until.poll, self.scope, Retry(), unnamed=unnamed)
        polling["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": self._troubled()}]
        return self.states.add(name, polling, self._status(name))

    def late(self) -> str:
        """Write the end of a job that is out of time."""
        until = self._until
        over = f" did not end within {until.timeout_s:g} s"
        over += "; it was told to stop" if until.stop is not None else ""
        cause = tree(join(*self.subject, over), self.scope)
        failed = self.states.last(self._name("Late"), fail(TIMED_OUT, cause))
        if until.stop is None:
            return failed
        stopping = task(until.stop, self.scope, Retry())
        # It may be over by now, which some services call an error.
        stopping["Catch"] = [{"ErrorEquals": ["States.ALL"], "Next": failed}]
        return self.states.add(self._name("Stop"), stopping, failed)

    def failed(self, root: str) -> str:
        """Write the end of a job that failed, its description being at ``root``."""
        helper = "Failed" if root == "$states.input" else "JobFailed"
        cause = enclosed(self._ended(root))
        return self.states.last(self._name(helper), fail(JOB_FAILED, cause))

    def lacking(self, root: str) -> str:
        """Write how a job goes on that failed for want of capacity, described at ``root``."""
        helper = "Lacking" if root == "$states.input" else "JobLacking"
        return cast(Way, self.way).noted(helper, self._ended(root))

    def _ended(self, root: str) -> str:
        """The words for how a job failed, its description being at ``root``."""
        until = self._until
        status = path(root, until.status)
        told = ""
        if until.reason is not None:
            reason = path(root, until.reason)
            told = f" & ($exists({reason}) ? ': ' & {reason} : '')"
        return f"{render(join(*self.subject, ' ended as '), self.scope)} & {status}{told}"

    def _name(self, helper: str) -> str:
        number = 0 if self.way is None else self.way.number
        return alternative(self.step.name, number, helper)

    @property
    def _until(self) -> Until:
        return cast(Until, self.step.until)

    @property
    def _polls(self) -> str:
        return variable(self.step.name, "Polls")

    @property
    def subject(self) -> tuple[str | Expression[object], ...]:
        """What errors call it: the operation, and the name where there is one."""
        adopt, operation = self.step.adopt, self.step.operation
        name: Tree = self.step.name
        if adopt is not None and adopt.name_field is not None:
            name = operation.request[adopt.name_field]
        return (f"{operation.name} ", cast("str | Expression[object]", name))

    def _status(self, poll: str) -> str:
        until = self._until
        status = path("$states.input", until.status)
        rules = []
        if until.success:
            outputs = taken(until.outputs, "$states.input", self.step.name)
            rules.append((_among(status, until.success), self._finished("Done", outputs)))
        if until.failure:
            failed = self.failed("$states.input")
            among = _among(status, until.failure)
            if self.way is not None:
                lacks = f"{among} and ({self.way.lacks('$states.input')})"
                rules.append((lacks, self.lacking("$states.input")))
            rules.append((among, failed))
        most = min(MOST_POLLS, max(1, ceil(until.timeout_s / self._interval_s)))
        rules.append((f"${self._polls} >= {most}", self.late()))
        decide = choice(*rules, default=self._wait(poll))
        return self.states.last(self._name("Status"), decide)

    @property
    def _interval_s(self) -> int:
        return max(1, ceil(self._until.interval_s))

    def _wait(self, poll: str) -> str:
        wait: State = {
            "Type": "Wait",
            "Seconds": self._seconds(),
            "Assign": {self._polls: enclosed(f"${self._polls} + 1")},
        }
        return self.states.add(self._name("Wait"), wait, poll)

    def _seconds(self) -> Json:
        """The pause; longer in the second half of the polls where they would be too many."""
        half = MOST_POLLS // 2
        if self._until.timeout_s <= MOST_POLLS * self._interval_s:
            return self._interval_s
        longer = ceil((self._until.timeout_s - half * self._interval_s) / half)
        return enclosed(f"${self._polls} < {half} ? {self._interval_s} : {longer}")

    def _troubled(self) -> str:
        """Write what a poll's error means: the end, trouble that passes, or failure."""
        until, rules = self._until, list[tuple[str, str]]()
        if until.gone is not None:
            ended = self._finished("Ended", defaults(until.outputs))
            rules.append((recognition.matches(until.gone, until.poll), ended))
        # Counted with the other polls, so that an outage lasts no longer than the time allowed.
        rules.append((recognition.passing(until.poll), self._name("Wait")))
        otherwise = reraised(self.states, self._name("PollReraise"))
        return self.states.last(self._name("Trouble"), choice(*rules, default=otherwise))

    def _finished(self, helper: str, outputs: dict[str, Json]) -> str:
        if not outputs:
            return self.following
        mine = variable(self.step.name)
        # What the call itself gave stays.
        own = {name: enclosed(field(f"${mine}", name)) for name in self.step.outputs}
        passed: State = {"Type": "Pass", "Assign": {mine: {**own, **outputs}}}
        return self.states.add(self._name(helper), passed, self.following)


def _among(status: str, words: frozenset[str]) -> str:
    if len(words) == 1:
        return f"{status} = {literal(next(iter(words)))}"
    return f"{status} in {literal(sorted(words))}"
