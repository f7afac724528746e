"""Failures of calls that are reported as an error of ours, with what to do about it."""

from __future__ import annotations

from typing import Final, cast

from orchestration.backends.jsonata import enclosed, field_value, literal, quote
from orchestration.backends.stepfunctions.calls.outputs import absent, defaults, given
from orchestration.backends.stepfunctions.names import Scope, state
from orchestration.backends.stepfunctions.states import CAUSE, Rule, State, States, choice
from orchestration.backends.stepfunctions.wording import Raw, Words, message, worded
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import ENDS_OF_JOBS, Call, Failure
from orchestration.refs import Expression

_BODY: Final = ("Body",)
_REMEDIED: Final = wording.REMEDIED.format(cause=wording.CALL_REFUSED, remedy="{remedy}")
_MESSAGE: Final = Raw(message("$states.errorOutput.Cause"))


def failed(step: Call, scope: Scope, states: States, following: str) -> str:
    """Write the state that a failure of a call goes to, with the error in its input."""
    failure, end = step.failure, states.failed()
    if step.may_fail:
        ended = f"$states.input.Error in {literal(list(ENDS_OF_JOBS))}"
        outputs = {} if step.until is None else defaults(step.until.outputs)
        assigned = given(outputs, step.name, scope)
        going_on = choice(Rule(ended, following, assigned), default=end)
        return states.last(state(step.name, "Failed"), going_on)
    if failure is None or failure.only:
        return end
    return renamed(step, failure, scope, states)


def renamed(step: Call, failure: Failure, scope: Scope, states: States) -> str:
    """Write the state that gives an error in its input the name and the remedy of ours."""
    remedy = cast("str | Expression[object]", failure.remedy)
    cause = worded(wording.REMEDIED, scope, cause=Raw(CAUSE), remedy=(remedy,))
    output: Json = {"Error": field_value(failure.error), "Cause": enclosed(cause)}
    named: State = {"Type": "Pass", "Output": output}
    return states.add(state(step.name, "Failed"), named, states.failed())


def not_json(step: Call, scope: Scope) -> Json:
    """Return the error of a body that does not parse; null where none is parsed.

    It would fail with the expression for a cause. Nothing else of such a call can't be evaluated:
    its request has names and what a user wrote, the body is always there, and a place in it has a
    default. What a Lambda function returns is JSON.
    """
    if not any(output.parse and output.path == _BODY for output in step.outputs.values()):
        return None
    cause = worded(wording.NOT_JSON, scope, source=(f"{_BODY[0]} of {step.name}",))
    return {"Error": wording.WRONG_OUTPUT, "Cause": enclosed(cause)}


def lacking(step: Call, scope: Scope) -> Json:
    """Return the error of an answer without what polls ask with; null where they ask with nothing.

    A state fails with the expression that took it, and the cause has the words of ours. Any other
    expression that fails keeps its error.
    """
    causes = [] if step.until is None else absent(step.outputs, step.name, scope)
    if not causes:
        return None
    said = "function($t) {$contains($states.errorOutput.Cause, $t)}"
    found = f"$v := $filter([{', '.join(causes)}], {said})[0]; $exists($v)"
    return {
        "Error": enclosed(
            f"({found} ? {quote(wording.MISSING_OUTPUT)} : $states.errorOutput.Error)"
        ),
        "Cause": enclosed(f"({found} ? $v : $states.errorOutput.Cause)"),
    }


def refused(subject: Words, scope: Scope, failure: Failure) -> Json:
    """Return the error of a call that was refused, under a name and with a remedy of ours."""
    remedy = cast("str | Expression[object]", failure.remedy)
    cause = worded(_REMEDIED, scope, subject=subject, message=_MESSAGE, remedy=(remedy,))
    return {"Error": field_value(failure.error), "Cause": enclosed(cause)}
