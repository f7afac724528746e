"""Polls: a job is followed to its end."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import cast

from orchestration.backends.jsonata import enclosed, field, literal, path, quote
from orchestration.backends.stepfunctions.calls import failures, recognition, timing, tries
from orchestration.backends.stepfunctions.calls.fallbacks import Way
from orchestration.backends.stepfunctions.calls.outputs import defaults, given, taken
from orchestration.backends.stepfunctions.calls.people import waiting
from orchestration.backends.stepfunctions.calls.rounds import interval_s
from orchestration.backends.stepfunctions.calls.tasks import task
from orchestration.backends.stepfunctions.names import Scope, alternative, variable
from orchestration.backends.stepfunctions.states import Rule, State, States, choice
from orchestration.backends.stepfunctions.wording import MESSAGE, Raw, Words, place, worded
from orchestration.execution import wording
from orchestration.expressions import Json, Tree
from orchestration.graph import Call, Retry, Until
from orchestration.refs import Expression


@dataclass(frozen=True)
class Polling:
    """The states that ask how a job does, until it is over or out of time."""

    step: Call
    scope: Scope
    states: States
    following: str
    way: Way | None = None
    """The way to the next request if no capacity is available."""

    @property
    def begun(self) -> dict[str, Json]:
        """The assignments before the first poll."""
        polls: dict[str, Json] = {self._polls: 0}
        return {**polls, self._doubt: {}} if recognition.can_look(self.step) else polls

    @property
    def doubtful(self) -> dict[str, Json]:
        """The assignments before the first poll for a job of which there may be none."""
        return {**self.begun, self._doubt: self.refusal("$states.input")}

    def refusal(self, root: str) -> Json:
        """Return the refusal of a call, whose error is at ``root``, as other drivers word it."""
        return {
            "Error": enclosed(f"{root}.Error"),
            "Cause": enclosed(worded("{subject}", self.scope, subject=self._asked)),
            "Refused": enclosed(f"'' & {root}.Cause"),
        }

    def write(self, helper: str = "Poll") -> str:
        """Write the loop; it begins with a poll."""
        until, name = self._until, self._name(helper)
        if name in self.states.written:
            return name
        # An error without a name is looked at by its cause: the next poll is its retry.
        polling = task(until.poll, self.scope, Retry(), step=self.step.name, unnamed=False)
        status = self._status(name)
        polling["Catch"] = [
            *self._gone_by_name(),
            # It may pass yet: the next poll is one of those that the time allows.
            {"ErrorEquals": recognition.passing(until.poll), "Output": {}, "Next": status},
            {"ErrorEquals": ["States.ALL"], "Next": status},
        ]
        return self.states.add(name, polling, status)

    def judging(self) -> str:
        """Write the loop; return the state that judges a job by its description, its input."""
        self.write()
        return self._name("Status")

    def _gone_by_name(self) -> list[Json]:
        """Return the catcher of the error that says that what is waited for is gone."""
        until = self._until
        names = None if until.gone is None else recognition.caught_names(until.gone, until.poll)
        if names is None:
            return []
        outputs = self._kept(given(defaults(until.outputs), self.step.name, self.scope))
        assigned = {"Assign": outputs} if outputs else {}
        return [{"ErrorEquals": names, **assigned, "Next": self.following}]

    def first(self) -> str:
        """Write the loop of a call that only asks: it is itself the first poll."""
        self.states.counters.update(self.begun)
        return self.write("")

    def late(self) -> tuple[str, Json]:
        """Write how a job ends that is out of time; the state and its input come back."""
        return self._ending(), self._too_late

    def _ending(self) -> str:
        """Write how the error in a state's input ends a run whose job still runs."""
        failed = self._failed
        if self._until.stop is None:
            return failed
        stopping = task(self._until.stop, self.scope, Retry(), step=self.step.name)
        error = enclosed("$states.input")
        # It may be over by now, which some services call an error.
        caught = {"ErrorEquals": ["States.ALL"], "Output": error, "Next": failed}
        stopping |= {"Catch": [caught], "Output": error}
        return self.states.add(self._name("Stop"), stopping, failed)

    @property
    def _too_late(self) -> Json:
        return timing.late(self.step, self.scope, self.subject)

    def _limited(self, root: str, first: str) -> list[Rule]:
        """Return the rules for a job that ran out of its own time, described at ``root``."""
        limit = self._until.limit
        if limit is None:
            return []
        met = _among(path(root, limit), frozenset(self._until.limits))
        said = {
            word: wording.filled(wording.LIMIT, word=word, setting=setting)
            for word, setting in self._until.limits.items()
        }
        reason = f"$lookup({literal(dict(said))}, {path(root, limit)})"
        if len(said) == 1:
            reason = quote(*said.values())
        error = self._error(wording.TIMED_OUT, root, reason)
        further = tries.out_of_time(self.step, met, first)
        return [*further, Rule(met, self._failed, output=error)]

    def _error(self, error: str, root: str, reason: str | None) -> Json:
        """Return the error of a job that failed, described at ``root``."""
        ended = self._words(path(root, self._until.status))
        named: State = {"Error": error, "Cause": enclosed(ended)}
        if reason is None:
            return named
        # A list, since an expression must have a value, and a job may give no reason.
        return {**named, "Reason": enclosed(f"[{reason}]")}

    def _reason(self, root: str) -> str | None:
        """Return JSONata of why a job failed that is described at ``root``."""
        until = self._until
        reason = None if until.reason is None else path(root, until.reason)
        if until.counts is None:
            return reason
        numbers = [path(root, (*until.counts, name)) for name in until.counted]
        words = [f" {words}, " for words in until.counted.values()]
        words[-1] = words[-1].removesuffix(", ")
        counted = " & ".join(
            f"{number} & {quote(each)}" for number, each in zip(numbers, words, strict=True)
        )
        if reason is None:
            return counted
        return f"$join([{reason}, {counted}], {quote(wording.SEPARATOR)})"

    def _ended(self, root: str) -> str:
        """Return JSONata of how a job ended that is described at ``root``, with the reason."""
        status, reason = path(root, self._until.status), self._reason(root)
        if reason is None:
            return status
        return f"$join([{status}, {reason}], '{wording.BEFORE_REASON}')"

    def _words(self, end: str) -> str:
        return worded(wording.ENDED, self.scope, subject=self.subject, status=Raw(end))

    def _name(self, helper: str) -> str:
        number = 0 if self.way is None else self.way.number
        return alternative(self.step.name, number, helper)

    @property
    def _failed(self) -> str:
        return failures.failed(self.step, self.scope, self.states, self.following)

    @property
    def _until(self) -> Until:
        return cast(Until, self.step.until)

    @property
    def _doubt(self) -> str:
        return variable(self.step.name, "Doubt")

    @property
    def _polls(self) -> str:
        return variable(self.step.name, "Polls")

    @property
    def subject(self) -> Words:
        """The name in errors: the operation, with the job's name if it has one."""
        adopt, operation = self.step.adopt, self.step.operation
        name: Tree = self.step.name
        if adopt is not None and adopt.name_field is not None:
            name = operation.request[adopt.name_field]
        return (f"{operation.name} ", cast("str | Expression[object]", name))

    @property
    def _asked(self) -> Words:
        """The subject of a refusal: with what a request to S3 is about."""
        return (*self.subject, *place(self.step.operation))

    @property
    def _refused(self) -> Json:
        """Return the error of a poll that was refused."""
        asked, words = (self._until.poll.name,), wording.ASKED
        if self._until.poll.name == self.step.operation.name:
            words = "{subject}"
        cause = worded(words, self.scope, operation=asked, subject=self.subject)
        if self._until.stop is None:
            error, refused = enclosed("$states.input.Error"), enclosed("'' & $states.input.Cause")
            return {"Error": error, "Cause": enclosed(cause), "Refused": refused}
        reason = enclosed(f"[{MESSAGE.text} & {quote(wording.TOLD_TO_STOP)}]")
        return {"Error": wording.JOB_NOT_FOLLOWED, "Cause": enclosed(cause), "Reason": reason}

    @property
    def unfollowed(self) -> Rule:
        """The rule for a job that can't be asked for."""
        return Rule(recognition.REFUSED, self._ending(), output=self._refused)

    def _status(self, poll: str) -> str:
        until, root = self._until, "$states.input"
        status, rules = path(root, until.status), list[Rule]()
        if until.success:
            assigned = self.assigned(root)
            rules.append(Rule(_among(status, until.success), self.following, assigned))
        if until.failure:
            among = _among(status, until.failure)
            first, lacks, words = timing.entered(self.step), "", self._words(self._ended(root))
            if self.way is not None:
                first, lacks = self.way.search.entrance, f"{among} and ({self.way.lacks(root)})"
                rules += self.way.searched(lacks, words)
            rules += tries.successor(self.step, among, first)
            rules += self._limited(root, first)
            fails = until.failure & (self.step.adopt.fails if self.step.adopt else frozenset())
            if fails:
                rules += tries.again(self.step, _among(status, fails), root, first)
            if self.way is not None:
                rules.append(self.way.lacking(lacks, words))
            error = self._error(wording.JOB_FAILED, root, self._reason(root))
            rules.append(Rule(among, self._failed, output=error))
        if until.gone is not None and not self._gone_by_name():
            gone = recognition.matches(until.gone, until.poll)
            outputs = given(defaults(until.outputs), self.step.name, self.scope)
            rules.append(Rule(gone, self.following, self._kept(outputs)))
        # Counted with the other polls, so that an outage lasts no longer than the time allowed.
        if recognition.can_look(self.step):
            doubt = f"${self._doubt}.Error and {recognition.is_absent(self.step)}"
            error = enclosed(f"${self._doubt}")
            rules.append(Rule(doubt, self._failed, output=error))
        rules.append(self.unfollowed)
        most = min(self._most_polls, max(1, ceil(until.timeout_s / self._interval_s)))
        stop, output = self.late()
        out_of_time = f"${self._polls} >= {most}"
        if self.step.within is not None:
            out_of_time = f"{out_of_time} or {timing.over(self.step, self.scope)}"
        rules.append(Rule(out_of_time, stop, output=output))
        return self.states.last(self._name("Status"), choice(*rules, default=self._wait(poll)))

    @property
    def _most_polls(self) -> int:
        return self.scope.facts.most_polls

    @property
    def _interval_s(self) -> int:
        return interval_s(self.step)

    def _wait(self, poll: str) -> str:
        if self._until.person is not None:
            counted: State = {self._polls: enclosed(f"${self._polls} + 1")}
            seconds = timing.shortened(self.step, self.scope, self._interval_s)
            bell = waiting(self.step, self._until.person, seconds, self.scope, counted, poll)
            return self.states.add(self._name("Wait"), bell, poll)
        wait: State = {
            "Type": "Wait",
            "Seconds": self._seconds(),
            "Assign": {
                self._polls: enclosed(f"${self._polls} + 1"),
                **({} if self.way is None else self.way.search.begun),
            },
        }
        return self.states.add(self._name("Wait"), wait, poll)

    def _seconds(self) -> Json:
        """Return the pause; longer in the second half of the polls if they would be too many."""
        half = self._most_polls // 2
        if self._until.timeout_s <= self._most_polls * self._interval_s:
            return self._interval_s
        longer = ceil((self._until.timeout_s - half * self._interval_s) / half)
        return enclosed(f"${self._polls} < {half} ? {self._interval_s} : {longer}")

    def assigned(self, root: str) -> dict[str, Json]:
        """Return the step's assignments at its end, its description being at ``root``."""
        until, name = self._until, self.step.name
        return self._kept(taken(until.outputs, until.poll, root, name, self.scope))

    def _kept(self, assigned: dict[str, Json]) -> dict[str, Json]:
        """Add what the call itself gave to the outputs of its end, if there are any."""
        mine = variable(self.step.name)
        if mine not in assigned:
            return assigned
        own = {name: enclosed(field(f"${mine}", name)) for name in self.step.outputs}
        return {**assigned, mine: {**own, **cast("State", assigned[mine])}}


def _among(status: str, words: frozenset[str]) -> str:
    if len(words) == 1:
        return f"{status} = {literal(next(iter(words)))}"
    return f"{status} in {literal(sorted(words))}"
