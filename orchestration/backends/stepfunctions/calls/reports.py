"""A report as states: read, looked at as in :mod:`orchestration.execution.reading.reports`.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from orchestration.backends.jsonata import enclosed, location, path
from orchestration.backends.stepfunctions.calls.outputs import at, checked_before, misfit
from orchestration.backends.stepfunctions.calls.tasks import task
from orchestration.backends.stepfunctions.names import Scope, state, variable
from orchestration.backends.stepfunctions.states import Rule, State, States, choice, fail
from orchestration.backends.stepfunctions.wording import MESSAGE, Raw, refusal_name, worded
from orchestration.execution import wording
from orchestration.execution.reading.reports import NOT_FINITE, RANGE, UNLISTED
from orchestration.expressions import Json
from orchestration.graph import Operation, Output, Read, Retry
from orchestration.refs import Expression

_BODY = "$states.result.Body"
_UNREADABLE_CHARACTER = "'\\ufffd'"
# JSON has neither NaN nor Infinity.
_PARSED = rf"$parse($replace({_BODY}, /([:,\[]\s*)-?(NaN|Infinity)/, '$1{NOT_FINITE:.0e}'))"
_REFUSED = "'' & $states.input.Cause"
"""The cause of an error of S3, empty where there was none."""


def read(step: Read, scope: Scope, states: States, following: str) -> str:
    """Write the states of a ``Read``."""
    return _Reading(step, scope, states).write(following)


@dataclass(frozen=True)
class _Reading:
    step: Read
    scope: Scope
    states: States

    def write(self, following: str) -> str:
        """Write the states; the first one's name comes back."""
        rules = [
            *self._refusals(),
            self._rule(
                f"$states.input.unreadable or $not($type({self._document}) = 'object')",
                wording.REPORT_NOT_USABLE,
                wording.UNUSABLE_REPORT,
            ),
        ]
        for output in self.step.outputs.values():
            rules += self._rules(output)
        check = choice(*rules, default=following)
        check["Assign"] = checked_before(
            self.step.outputs, self._document, self.step.name, self.scope
        )
        self.states.last(self._name("Check"), check)
        return self.states.add(self._name(), self._task(), self._name("Check"))

    def _name(self, helper: str = "") -> str:
        return state(self.step.name, helper)

    @property
    def _variable(self) -> str:
        return variable(self.step.name, "Read")

    @property
    def _document(self) -> str:
        return f"${self._variable}"

    def _task(self) -> State:
        bucket, key = location(self.step.uri)
        request = {"Bucket": bucket, "Key": key, "Range": RANGE}
        reading = task(
            Operation("s3", "GetObject", request), self.scope, Retry(), step=self.step.name
        )
        # Assigned and not handed on: what an assignment can't evaluate is caught.
        reading["Assign"] = {self._variable: enclosed(_PARSED)}
        reading["Output"] = {
            "unreadable": enclosed(f"$contains({_BODY}, {_UNREADABLE_CHARACTER})"),
        }
        empty = self._problem(wording.REPORT_NOT_USABLE, wording.UNUSABLE_REPORT)
        absent = self._problem(wording.REPORT_MISSING, wording.ABSENT_REPORT)
        reading["Catch"] = [
            self._catcher("S3.NoSuchKeyException", absent),
            self._catcher("States.QueryEvaluationError", empty),
            {"ErrorEquals": ["States.ALL"], "Next": self._name("Check")},
        ]
        return reading

    def _catcher(self, error: str, output: Json) -> Json:
        return {"ErrorEquals": [error], "Output": output, "Next": self._broken}

    def _refusals(self) -> Iterator[Rule]:
        """Yield what errors of S3 mean that have no name of their own."""
        # An object without a byte has no range.
        empty = f"$contains({_REFUSED}, 'Code: 416')"
        yield self._rule(empty, wording.REPORT_NOT_USABLE, wording.UNUSABLE_REPORT)
        absent = f"$contains({_REFUSED}, '{UNLISTED}')"
        yield self._rule(absent, wording.REPORT_MISSING, wording.ABSENT_REPORT)
        refused = worded(wording.UNREAD_REPORT, self.scope, message=MESSAGE)
        error = refusal_name("$states.input.Error", _REFUSED)
        output: Json = {"Error": enclosed(error), "problem": enclosed(refused)}
        yield Rule("$exists($states.input.Error)", self._broken, output=output)

    def _rules(self, output: Output) -> Iterator[Rule]:
        number, value = output.kind == "number", at(self._document, output)
        where = {"path": output.place, "kind": output.kind}
        if not output.optional:
            # A path goes into the elements of a list, too.
            ends = (
                f"$type({path(self._document, output.path[:end])}) = '{_holder(part)}'"
                for end, part in enumerate(output.path)
                if end > 0
            )
            name = wording.METRIC_MISSING if number else wording.MISSING_OUTPUT
            for test in (*ends, f"$exists({value})"):
                yield self._rule(f"$not({test})", name, wording.ABSENT_VALUE, **where)
        if number and output.not_finite == "refused":
            test = f"{value} = {NOT_FINITE:.0e}"
            yield self._rule(test, wording.METRIC_NOT_FINITE, wording.NOT_FINITE_VALUE, **where)
        test = misfit(output, value)
        if test:
            name = wording.METRIC_NOT_NUMBER if number else wording.WRONG_OUTPUT
            yield self._rule(test, name, wording.WRONG_VALUE, **where)

    def _rule(self, condition: str, name: str, text: str, **holes: str) -> Rule:
        return Rule(condition, self._broken, output=self._problem(name, text, **holes))

    def _problem(self, name: str, text: str, **holes: str) -> Json:
        return {"Error": name, "problem": wording.filled(text, **holes)}

    @cached_property
    def _broken(self) -> str:
        uri = cast("str | Expression[object]", self.step.uri)
        cause = worded(
            wording.BROKEN_REPORT,
            self.scope,
            step=[self.step.name],
            uri=[uri],
            problem=Raw("$states.input.problem"),
        )
        broken = fail("{% $states.input.Error %}", enclosed(cause))
        return self.states.last(self._name("Broken"), broken)


def _holder(part: str | int) -> str:
    """Return the type that a value must have for a part of a path to lead into it."""
    return "object" if isinstance(part, str) else "array"
