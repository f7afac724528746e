"""The time that a call has together with others, as JSONata."""

from __future__ import annotations

from typing import Final, cast

from orchestration.backends.jsonata import enclosed, literal, quote, render
from orchestration.backends.stepfunctions.names import Scope, alternative, state, variable
from orchestration.backends.stepfunctions.states import Rule, State, States, choice
from orchestration.backends.stepfunctions.wording import Words, worded
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import LATENCY, Call
from orchestration.refs import Expression

NOW: Final = "$millis() / 1000"
# The field is there only in an execution that was redriven, and keeps its variables then:
# https://docs.aws.amazon.com/step-functions/latest/dg/redrive-executions.html
_REDRIVEN: Final = "$toMillis($states.context.Execution.RedriveTime) / 1000"
_CHECK: Final = "CheckTime"
_ASKED: Final = "Asked"


def entered(step: Call, number: int = 0) -> str:
    """Return the state with which a request of a call begins."""
    return alternative(step.name, number, _CHECK if is_checked(step) else "")


def is_checked(step: Call) -> bool:
    """Return whether the time is looked at before a request."""
    return step.within is not None and step.starts_job


def check(step: Call, scope: Scope, subject: Words, *, failed: str, following: str) -> State:
    """Return the state that starts nothing when the time is over."""
    cause = worded(wording.NOT_STARTED, scope, subject=subject, limit=_words(step))
    error = {"Error": wording.TIMED_OUT, "Cause": enclosed(cause)}
    return choice(Rule(over(step, scope), failed, output=error), default=following)


def asked(step: Call, states: States, following: str) -> str:
    """Write the state before a timed request; a moment is the same all over a state."""
    begun: State = {"Type": "Pass", "Assign": {variable(step.name, _ASKED): enclosed("$millis()")}}
    return states.add(state(step.name, _ASKED), begun, following)


def answered(step: Call, states: States, following: str) -> str:
    """Write the state after a timed request, which adds the time to its outputs."""
    own, passed = f"${variable(step.name)}", f"$millis() - ${variable(step.name, _ASKED)}"
    outputs = f"{own}, " if step.outputs else ""
    merged = enclosed(f"$merge([{outputs}{{{quote(LATENCY)}: {passed}}}])")
    ended: State = {"Type": "Pass", "Assign": {variable(step.name): merged}}
    return states.add(state(step.name, "Answered"), ended, following)


def over(step: Call, scope: Scope) -> str:
    """Return the condition that the time is over; false where there is no such time."""
    return "false" if step.within is None else f"{left(step, scope)} <= 0"


def shortened(step: Call, scope: Scope, seconds: int) -> Json:
    """Return so many seconds, or those that are left where they are fewer.

    A Task's ``TimeoutSeconds`` may be an expression whose value is a positive integer:
    https://docs.aws.amazon.com/cdk/api/v2/docs/aws-cdk-lib.aws_stepfunctions.Timeout.html
    """
    if step.within is None:
        return seconds
    return enclosed(f"$max([1, $ceil($min([{seconds}, {left(step, scope)}]))])")


def late(step: Call, scope: Scope, subject: Words) -> Json:
    """Return the error of a job that is out of time: its own, or that of its stage."""
    until = step.until
    assert until is not None  # noqa: S101 (only what waits is late)
    text, own = wording.late(until), (wording.own_limit(until),)
    cause = worded(text, scope, subject=subject, limit=own)
    if step.within is not None:
        whole = worded(text, scope, subject=subject, limit=_words(step))
        cause = f"{over(step, scope)} ? {whole} : {cause}"
    return {"Error": wording.TIMED_OUT, "Cause": enclosed(cause)}


def _words(step: Call) -> Words:
    return (wording.limit_of_stage(step),)


def left(step: Call, scope: Scope) -> str:
    """Return JSONata of the seconds that are left; a redriven execution has all of them again."""
    within = step.within
    assert within is not None  # noqa: S101 (only what is bounded has seconds left)
    since = within.since
    begun = render(since, scope) if isinstance(since, Expression) else literal(cast("Json", since))
    return f"{wording.number(within.seconds)} - ({NOW} - $max([{begun}, {_REDRIVEN}]))"
