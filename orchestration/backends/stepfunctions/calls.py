"""A call as states: sent, recognised where it was sent before, followed until it is over.

https://docs.aws.amazon.com/step-functions/latest/dg/connect-sagemaker.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from orchestration.backends.jsonata import enclosed, field_value
from orchestration.backends.stepfunctions import fallbacks, integrations, recognition
from orchestration.backends.stepfunctions.names import Scope, alternative, state, variable
from orchestration.backends.stepfunctions.outputs import taken
from orchestration.backends.stepfunctions.polling import Polling
from orchestration.backends.stepfunctions.states import State, States, choice, reraised
from orchestration.backends.stepfunctions.tasks import task
from orchestration.expressions import Function, Json, apply
from orchestration.graph import Call, Operation, Read, Retry, candidates


def read(step: Read, scope: Scope, states: States, following: str) -> str:
    """Write the states of a ``Read``."""
    request = {
        "Bucket": apply(Function.S3_BUCKET, step.uri),
        "Key": apply(Function.S3_KEY, step.uri),
    }
    reading = task(Operation("s3", "GetObject", request), scope, Retry())
    root = "$parse($states.result.Body)"
    reading["Assign"] = {variable(step.name): taken(step.outputs, root, step.name)}
    return states.add(state(step.name), reading, following)


def call(step: Call, scope: Scope, states: States, following: str) -> str:
    """Write the states of a call."""
    inner = scope.extended({step.name: f"${variable(step.name)}"})
    asked = candidates(step)
    if len(asked) == 1:
        return _Sending(step, inner, states, following).write()
    instead = fallbacks.exhausted(step, states)
    # From the last to the first: each is what the one before it falls back on.
    for number, candidate in reversed(tuple(enumerate(asked))):
        way = fallbacks.Way(candidate, number, instead, inner, states)
        instead = _Sending(candidate, inner, states, following, way).write()
    return instead


@dataclass(frozen=True)
class _Sending:
    step: Call
    scope: Scope
    states: States
    following: str
    way: fallbacks.Way | None = None
    """What it falls back on for want of capacity."""

    def write(self) -> str:
        """The states, entered where the name says that comes back."""
        name = self._name()
        sending = self._task()
        catchers = self._catchers()
        if self.step.until is not None and not self._sync:
            after = self._poll.write()
        else:
            after = self.following
        if catchers:
            sending["Catch"] = catchers
        assigned = self._assigned()
        if assigned:
            sending["Assign"] = assigned
        self.states.add(name, sending, after)
        if not self._counts:
            return name
        begin: State = {"Type": "Pass", "Assign": {self._tries: 0}}
        return self.states.add(self._name("Begin"), begin, name)

    def _name(self, helper: str = "") -> str:
        number = 0 if self.way is None else self.way.number
        return alternative(self.step.name, number, helper)

    @cached_property
    def _sync(self) -> bool:
        return integrations.is_synchronous(self.step)

    @cached_property
    def _poll(self) -> Polling:
        return Polling(self.step, self.scope, self.states, self.following, self.way)

    @property
    def _tries(self) -> str:
        return variable(self.step.name, "Tries")

    @cached_property
    def _counts(self) -> bool:
        """Whether errors without a name may be answers: then ``Retry`` must leave them alone."""
        patterns = recognition.answers(self.step)
        unnamed = any(not recognition.is_named(p, self.step.operation) for p in patterns)
        passing = recognition.by_cause(self.step)
        return self.step.retry.attempts > 1 and (unnamed or bool(passing))

    def _task(self) -> State:
        step = self.step
        unnamed = not self._counts
        sending = task(step.operation, self.scope, step.retry, unnamed=unnamed, sync=self._sync)
        if self._sync and step.until is not None:
            sending["TimeoutSeconds"] = ceil(step.until.timeout_s)
        return sending

    def _assigned(self) -> dict[str, Json]:
        step, assigned = self.step, dict[str, Json]()
        outputs = step.until.outputs if step.until and self._sync else step.outputs
        if outputs:
            assigned[variable(step.name)] = taken(outputs, "$states.result", step.name)
        if step.until is not None and not self._sync:
            assigned |= self._poll.begun
        return assigned

    def _catchers(self) -> list[Json]:
        catchers: list[Json] = []
        if self._sync:
            catchers.append({"ErrorEquals": ["States.Timeout"], "Next": self._poll.late()})
        rules = self._rules()
        if rules:
            otherwise = reraised(self.states, self._name("Reraise"))
            recognise = self.states.last(self._name("Recognise"), choice(*rules, default=otherwise))
            catchers.append({"ErrorEquals": ["States.ALL"], "Next": recognise})
        return catchers

    def _rules(self) -> list[tuple[str, str]]:
        step, rules = self.step, list[tuple[str, str]]()
        if self._sync:
            # A job that failed comes as this one error, with its description for a cause.
            job, root = "$states.input.Error = 'States.TaskFailed'", "$parse($states.input.Cause)"
            if self.way is not None:
                lacks = f"{job} ? ({self.way.lacks(root)}) : false"
                rules.append((lacks, self._poll.lacking(root)))
            rules.append((job, self._poll.failed(root)))
        if step.adopt is not None:
            rules.append((recognition.matches(step.adopt.exists, step.operation), self._adopted()))
        for number, recovery in enumerate(step.recoveries, start=1):
            helper = "Recovered" if number == 1 else f"Recovered{number}"
            recovered = self._recovered(helper, recovery.outputs)
            rules.append((recognition.matches(recovery.error, step.operation), recovered))
        if self.way is not None:
            rules += self.way.refusals(self._poll.subject, self._adopted())
        if self._counts:
            rules.append((self._passes(), self._again()))
        return rules

    def _adopted(self) -> str:
        if self.step.until is not None:
            passed: State = {"Type": "Pass", "Assign": self._poll.begun}
            return self.states.add(self._name("Adopted"), passed, self._poll.write())
        return self.following

    def _recovered(self, helper: str, outputs: Mapping[str, Json]) -> str:
        if not outputs:
            return self.following
        given = {name: field_value(value) for name, value in outputs.items()}
        passed: State = {"Type": "Pass", "Assign": {variable(self.step.name): given}}
        return self.states.add(self._name(helper), passed, self.following)

    def _passes(self) -> str:
        patterns = recognition.by_cause(self.step)
        passing = [recognition.PASSES]
        passing += [f"({recognition.matches(p, self.step.operation)})" for p in patterns]
        tries = f"${self._tries} < {self.step.retry.attempts - 1}"
        return f"{tries} and ({' or '.join(passing)})"

    def _again(self) -> str:
        retry = self.step.retry
        seconds = f"$ceil({retry.interval_s:g} * $power({retry.backoff_rate:g}, ${self._tries}))"
        wait: State = {
            "Type": "Wait",
            "Seconds": enclosed(seconds),
            "Assign": {self._tries: enclosed(f"${self._tries} + 1")},
        }
        return self.states.add(self._name("Again"), wait, self._name())
