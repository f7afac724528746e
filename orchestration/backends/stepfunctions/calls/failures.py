"""Failures of calls that are reported as an error of ours, with what to do about it."""

from __future__ import annotations

from typing import Final, cast

from orchestration.backends.jsonata import enclosed, field_value, quote
from orchestration.backends.stepfunctions.names import Scope, state
from orchestration.backends.stepfunctions.states import State, States
from orchestration.backends.stepfunctions.wording import Raw, Words, worded
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import Call
from orchestration.refs import Expression

_MESSAGE: Final = Raw("$substringBefore($states.errorOutput.Cause, ' (Service:')")


def failed(step: Call, scope: Scope, states: States) -> str:
    """Write the state that a failure of a call goes to, with the error in its input."""
    failure, end = step.failure, states.failed()
    if failure is None:
        return end
    words = f"$append($states.input.Cause, $states.input.Reason), {quote(wording.BEFORE_REASON)}"
    remedy = cast("str | Expression[object]", failure.remedy)
    cause = worded(wording.REMEDIED, scope, cause=Raw(f"$join({words})"), remedy=(remedy,))
    output: Json = {"Error": field_value(failure.error), "Cause": enclosed(cause)}
    named: State = {"Type": "Pass", "Output": output}
    return states.add(state(step.name, "Failed"), named, end)


def refused(subject: Words, scope: Scope) -> Json:
    """Return the error of a call that was refused, as a ``Catch`` hands it on."""
    cause = worded(wording.CALL_REFUSED, scope, subject=subject, message=_MESSAGE)
    return {"Error": "{% $states.errorOutput.Error %}", "Cause": enclosed(cause)}
