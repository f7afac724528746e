"""A call as states: sent, recognised where it was sent before, followed until it is over.

https://docs.aws.amazon.com/step-functions/latest/dg/connect-sagemaker.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from orchestration.backends.jsonata import enclosed
from orchestration.backends.stepfunctions.calls import (
    failures,
    fallbacks,
    recognition,
    timing,
    tries,
)
from orchestration.backends.stepfunctions.calls.outputs import given, taken
from orchestration.backends.stepfunctions.calls.pages import Listing
from orchestration.backends.stepfunctions.calls.polling import Polling
from orchestration.backends.stepfunctions.calls.rounds import Rounds
from orchestration.backends.stepfunctions.calls.searching import Search
from orchestration.backends.stepfunctions.calls.tasks import task
from orchestration.backends.stepfunctions.integrations import spelling
from orchestration.backends.stepfunctions.integrations.choosing import is_synchronous
from orchestration.backends.stepfunctions.names import Scope, alternative, variable
from orchestration.backends.stepfunctions.states import Rule, State, States, choice
from orchestration.execution import wording
from orchestration.execution.outputs import may_be_large
from orchestration.execution.sending import LONGEST_PAUSE_S
from orchestration.expressions import Json
from orchestration.graph import ANY_ERROR, Call, ErrorPattern, Recovery, candidates


def call(step: Call, scope: Scope, states: States, following: str) -> str:
    """Write the states of a call."""
    step = spelling.call(step)
    inner = scope.extended({step.name: f"${variable(step.name)}"})
    if step.pages is not None:
        return Listing(step, step.pages, inner, states).write(following)
    states.counters.update(tries.begun(step))
    asked = [tries.suffixed(candidate) for candidate in candidates(step)]
    if len(asked) == 1 and not tries.waits(step):
        return _Sending(asked[0], inner, states, following).write()
    rounds = Rounds(step)
    instead, sendings = rounds.end, list[_Sending]()
    # From the last to the first: each is what the one before it falls back on.
    for number, candidate in reversed(tuple(enumerate(asked))):
        last = number == len(asked) - 1
        way = fallbacks.Way(candidate, number, last, instead, inner, states)
        sendings.append(_Sending(candidate, inner, states, following, way))
        instead = sendings[-1].write()
    rounds.ended(inner, states, {name: 0 for each in sendings for name in each.retried})
    search = Search(asked[0], 0, last=False)
    states.counters.update(search.at_first)
    return search.enter(states)


@dataclass(frozen=True)
class _Sending:
    step: Call
    scope: Scope
    states: States
    following: str
    way: fallbacks.Way | None = None
    """The way to the next request if no capacity is available."""

    def write(self) -> str:
        """Write the states; the first one's name comes back."""
        if self.step.only_asks:
            return self._poll.first()
        sending = self._task()
        rules, catchers = self._rules(), [*self._unfit(), *self._too_large(), *self._by_name()]
        if self._sync:
            stop, output = self._poll.late()
            catchers.append({"ErrorEquals": ["States.Timeout"], "Output": output, "Next": stop})
        if rules:
            recognise = choice(*rules, *self._refused(rules), default=self._failed)
            catchers += self._caught(self.states.last(self._name("CheckError"), recognise))
        elif not self._takes_any_error:
            catchers.append(self._others())
        sending["Catch"] = catchers
        assigned = self._assigned()
        if assigned:
            sending["Assign"] = assigned
        if self._counts:
            self.states.counters[self._tries] = 0
        return self._checked(self.states.add(self._name(), sending, self._after()))

    def _checked(self, sending: str) -> str:
        """Write the look at the time before the call, where it has some together with others."""
        if not timing.is_checked(self.step):
            return sending
        subject, failed = self._poll.subject, self._failed
        check = timing.check(self.step, self.scope, subject, failed=failed, following=sending)
        return self.states.last(timing.entered(self.step, self._number), check)

    @property
    def retried(self) -> list[str]:
        """The variable that counts how often the call was sent, if there is one."""
        return [self._tries] if self._counts else []

    def _after(self) -> str:
        """Write what follows an answer to the call."""
        if self.step.until is None:
            return self.following
        # A job that somebody stopped may come as a result: what describes it is looked at anyway.
        return self._poll.judging() if self._sync else self._poll.write()

    def _name(self, helper: str = "") -> str:
        return alternative(self.step.name, self._number, helper)

    @property
    def _number(self) -> int:
        return 0 if self.way is None else self.way.number

    @property
    def _failed(self) -> str:
        return failures.failed(self.step, self.scope, self.states, self.following)

    @cached_property
    def _sync(self) -> bool:
        return is_synchronous(self.step, self.scope.facts.integrations)

    @cached_property
    def _poll(self) -> Polling:
        return Polling(self.step, self.scope, self.states, self.following, self.way)

    @property
    def _tries(self) -> str:
        return variable(self._name().replace("-", "__"), "Tries")

    @cached_property
    def _counts(self) -> bool:
        """True if errors without a name may be answers, which ``Retry`` must leave alone."""
        patterns = recognition.answers(self.step)
        unnamed = any(not recognition.is_named(p, self.step.operation) for p in patterns)
        passing = recognition.by_cause(self.step)
        looks = recognition.can_look(self.step)
        return self.step.retry.attempts > 1 and (unnamed or bool(passing) or looks)

    def _task(self) -> State:
        step = self.step
        unnamed = not self._counts
        sending = task(
            step.operation,
            self.scope,
            step.retry,
            step=step.name,
            unnamed=unnamed,
            sync=self._sync,
        )
        if self._sync and step.until is not None:
            allowed = ceil(step.until.timeout_s)
            sending["TimeoutSeconds"] = timing.shortened(step, self.scope, allowed)
        return sending

    def _assigned(self) -> dict[str, Json]:
        step, root = self.step, "$states.result"
        if self._sync:
            return self._poll.begun
        if step.until is None:
            return taken(step.outputs, step.operation, root, step.name, self.scope)
        # What its end gives is not known yet.
        scope = self.scope.without_values()
        own = taken(step.outputs, step.operation, root, step.name, scope)
        return {**own, **self._poll.begun}

    def _rules(self) -> list[Rule]:
        step, rules = self.step, list[Rule]()
        if self._sync:
            rules.append(self._job_rule())
        if step.adopt is not None:
            exists = self._matches(step.adopt.exists)
            adopted = self._adopted
            rules.append(Rule(exists, adopted.following, adopted.assign))
        for recovery in step.recoveries:
            if not self._is_by_name(recovery):
                outputs = given(recovery.outputs, step.name, self.scope)
                rules.append(Rule(self._matches(recovery.error), self.following, outputs))
        if self.way is not None:
            refusal = self._poll.refusal("$states.input")
            unfollowed = self._poll.unfollowed
            rules += self.way.refusals(self._poll.subject, self._adopted, unfollowed, refusal)
        if self._counts:
            rules += self._again()
        if recognition.can_look(self.step):
            rules.append(self._in_doubt())
        return rules

    def _unfit(self) -> list[Json]:
        """Return the catcher of an answer that lacks what it must have."""
        broken = failures.not_json(self.step, self.scope)
        lacking = failures.lacking(self.step, self.scope)
        output = broken if lacking is None else lacking
        if output is None:
            return []
        errors: Json = ["States.QueryEvaluationError"]
        return [{"ErrorEquals": errors, "Output": output, "Next": self._failed}]

    def _too_large(self) -> list[Json]:
        operation = self.step.operation.name
        if not may_be_large(operation):
            return []
        source = f"{operation} {self.step.name}"
        return [self.states.overflow(wording.TOO_LARGE_RESPONSE, source)]

    def _by_name(self) -> list[Json]:
        """Return the catchers of errors that have a name of ours, and of those that are answers."""
        failure = self.step.failure
        if failure is None or not failure.only:
            return self._answered_by_name()
        pattern = ErrorPattern(failure.only)
        caught: State = {
            "ErrorEquals": recognition.caught_names(pattern, self.step.operation),
            "Output": failures.refused(self._poll.subject, self.scope, failure),
            "Next": self.states.failed(),
        }
        return [caught, *self._answered_by_name()]

    def _answered_by_name(self) -> list[Json]:
        """Return the catchers of errors that are answers, and whose names alone say so."""
        catchers: list[Json] = []
        for recovery in self.step.recoveries:
            if self._is_by_name(recovery):
                names = recognition.caught_names(recovery.error, self.step.operation)
                outputs = given(recovery.outputs, self.step.name, self.scope)
                assigned = {"Assign": outputs} if outputs else {}
                catchers.append({"ErrorEquals": names, **assigned, "Next": self.following})
        return catchers

    @property
    def _takes_any_error(self) -> bool:
        """True if whatever the call is answered is an answer."""
        return any(recovery.error == ANY_ERROR for recovery in self.step.recoveries)

    def _is_by_name(self, recovery: Recovery) -> bool:
        names = recognition.caught_names(recovery.error, self.step.operation)
        return names is not None and not self._sync

    @cached_property
    def _named(self) -> list[Json]:
        """The names that lead to the question what an error means, if not all do."""
        return [] if self._sync else recognition.names_of_answers(self.step)

    def _matches(self, pattern: ErrorPattern) -> str:
        return recognition.matches(pattern, self.step.operation, named=bool(self._named))

    def _caught(self, check: str) -> list[Json]:
        """Return the catchers that lead to the question what an error means."""
        if not self._named:
            return [{"ErrorEquals": ["States.ALL"], "Next": check}]
        return [{"ErrorEquals": self._named, "Next": check}, self._others()]

    def _others(self) -> Json:
        """Return the catcher of the errors that no other one catches."""
        refusal = self._poll.refusal("$states.errorOutput")
        return {"ErrorEquals": ["States.ALL"], "Output": refusal, "Next": self._failed}

    def _refused(self, rules: Sequence[Rule]) -> list[Rule]:
        """Return the rule for an error that no other rule knows, so that it is the failure."""
        if any(rule.condition == "true" for rule in rules):
            return []
        return [Rule("true", self._failed, output=self._poll.refusal("$states.input"))]

    def _job_rule(self) -> Rule:
        # A job that failed comes as this one error, with its description for a cause.
        return Rule(
            "$states.input.Error = 'States.TaskFailed'",
            self._poll.judging(),
            self._poll.begun,
            enclosed("$parse($states.input.Cause)"),
        )

    @cached_property
    def _adopted(self) -> Rule:
        """The rule for a job that exists; its condition comes from elsewhere."""
        if self.step.until is None:
            return Rule("", self.following)
        return Rule("", self._poll.write(), {**self._poll.begun, **tries.adopted(self.step)})

    def _in_doubt(self) -> Rule:
        """Return the rule for a call that failed, and whose job may run nevertheless.

        An integration that waits says the same of a call and of a poll that were refused.
        """
        doubt = "true" if self._sync else f"${self._tries} > 0 or {recognition.PASSES}"
        return Rule(doubt, self._poll.write(), self._poll.doubtful)

    def _again(self) -> list[Rule]:
        """Write the pause before the call is sent again, and return what leads there."""
        retry = self.step.retry
        patterns = recognition.by_cause(self.step)
        left = f"${self._tries} < {retry.attempts - 1} and "
        pause = f"{retry.interval_s:g} * $power({retry.backoff_rate:g}, ${self._tries})"
        seconds = f"$ceil($min([{pause}, {LONGEST_PAUSE_S:g}]))"
        wait: State = {
            "Type": "Wait",
            "Seconds": enclosed(seconds),
            "Assign": {self._tries: enclosed(f"${self._tries} + 1")},
        }
        pausing = self.states.add(self._name("WaitToRetry"), wait, self._name())
        passes = [recognition.PASSES, *map(self._matches, patterns)]
        return [Rule(f"{left}{condition}", pausing) for condition in passes]
