"""Executions of a state machine that overlap: the states before a run's first step.

A listing of executions is eventually consistent, so a run waits before it looks: those that started
before it, or at the same moment, are listed by then. Only the oldest goes on, by start and then by
ARN: of two that start at the same moment, exactly one does. Another execution of the same run
(EventBridge may deliver twice) has nothing to do while that is under way.
https://docs.aws.amazon.com/step-functions/latest/apireference/API_ListExecutions.html
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log
from typing import Final, assert_never

from orchestration.backends.jsonata import enclosed, quote
from orchestration.backends.stepfunctions.calls.tasks import task
from orchestration.backends.stepfunctions.names import Scope, variable
from orchestration.backends.stepfunctions.owning import UNQUALIFIED
from orchestration.backends.stepfunctions.parameters import RUN
from orchestration.backends.stepfunctions.states import Rule, State, States, choice
from orchestration.cleanup import COMPANION
from orchestration.execution import wording
from orchestration.expressions import Json
from orchestration.graph import Operation, Overlap, Retry

SKIPPED: Final = "orchestration:skipped"
"""The field of a skipped execution's output with the ARN of the one that is under way."""
WAITING: Final = "WaitForOlder"
"""The state in which a run waits for its turn."""
SETTLE_S: Final = 60
"""The seconds after its start in which an execution may be missing in a listing."""
_GROWTH: Final = 20
"""A pause lasts this part of the time waited so far, so that a long wait has few events."""
_LONGEST_S: Final = 366 * 86_400
"""An execution lasts a year at most:
https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html"""
MOST_LOOKS: Final = _GROWTH + ceil(log(_LONGEST_S / (SETTLE_S * _GROWTH)) / log(1 + 1 / _GROWTH))
"""The looks of a run that waits as long as it may."""
_ENDS_WITHIN_S: Final = 15
"""The seconds after which an execution that was stopped is looked for again."""
_PATIENT: Final = Retry(attempts=40)
"""AWS throttles the looks of all runs of an account that wait together; a run that gave up would be
lost, with the event that started it. Pauses are up to a minute, so it is tried for a quarter of an
hour and more."""
_PAGE: Final = 200
"""Executions of one answer, which fit into a state's result."""

_PAGES: Final = variable("overlap", "Page")
_OLDEST: Final = variable("overlap", "Oldest")
_RUN: Final = variable("overlap", "Run")
_SINCE: Final = variable("overlap", "WaitingSince")
_STOPPED: Final = variable("overlap", "Stopped")
_BEGUN: Final[Mapping[Overlap, dict[str, Json]]] = {
    "skip": {},
    "queue": {_SINCE: enclosed("$millis()")},
    "stop_older": {_STOPPED: False},
}
_ARN: Final = f"$substringAfter(${_OLDEST}[0], ' ')"


def write(
    policy: Overlap, scope: Scope, states: States, following: str, *, has_companion: bool
) -> str:
    """Write the states of a policy; the name of the first one comes back.

    ``has_companion``: whether there is a state machine that cleans up after a run that is stopped.
    """
    if policy == "allow":
        return following
    skipped = states.last("Skipped", {"Type": "Succeed", "Output": {SKIPPED: enclosed(_ARN)}})
    match policy:
        case "skip":
            otherwise, again = skipped, "Settle"
        case "queue":
            otherwise, again = _read(scope, states, skipped, _wait(states)), "Settle"
        case "stop_older":
            again = _let_end(states)
            otherwise = _read(scope, states, skipped, _stop(scope, states, again))
            following = _released(states, following) if has_companion else following
        case _:
            assert_never(policy)
    _look(scope, states, following, otherwise, again)
    settle: State = {
        "Type": "Wait",
        "Seconds": SETTLE_S,
        "Assign": {_OLDEST: [], _PAGES: {}, **_BEGUN[policy]},
    }
    return states.add("Settle", settle, "FindOldest")


def _look(scope: Scope, states: States, following: str, otherwise: str, again: str) -> None:
    """Write the listing of the executions that run, and where the oldest goes on.

    ``again`` is where it waits that is not listed itself yet.
    """
    request = (
        f"{{'StateMachineArn': {UNQUALIFIED}, 'StatusFilter': 'RUNNING', 'MaxResults': {_PAGE}}}"
    )
    listed = "$states.result.Executions.(StartDate & ' ' & ExecutionArn)"
    token = "$states.result.NextToken"  # noqa: S105 - of a listing
    listing = _task("ListExecutions", enclosed(f"$merge([{request}, ${_PAGES}])"), scope)
    listing["Assign"] = {
        _OLDEST: enclosed(f"[$sort([${_OLDEST}, {listed}])[0]]"),
        _PAGES: enclosed(f"$exists({token}) ? {{'NextToken': {token}}} : {{}}"),
    }
    states.add("FindOldest", listing, "MyTurn")
    turn = choice(
        Rule(f"$exists(${_PAGES}.NextToken)", "FindOldest"),
        Rule(f"$count(${_OLDEST}) = 0", again),
        Rule(f"{_ARN} = $states.context.Execution.Id", following),
        default=otherwise,
    )
    states.last("MyTurn", turn)


def _read(scope: Scope, states: States, same: str, other: str) -> str:
    """Write the look whether the oldest execution is one of the same run."""
    # As an execution derives the identity of its own run.
    given = f"$lookup($parse($states.result.Input), {quote(RUN)})"
    name = f"($v := {given}; $v ? '' & $v : $states.result.ExecutionArn)"
    described = _task("DescribeExecution", {"ExecutionArn": enclosed(_ARN)}, scope)
    described["Assign"] = {_RUN: enclosed(f"$substring($hash({name}, 'SHA-256'), 0, 12)")}
    states.last("SameRun", choice(Rule(f"${_RUN} = $run", same), default=other))
    return states.add("ReadOldest", described, "SameRun")


def _wait(states: States) -> str:
    waited_s = f"($millis() - ${_SINCE}) / 1000"
    wait: State = {
        "Type": "Wait",
        "Seconds": enclosed(f"$max([{SETTLE_S}, $ceil({waited_s} / {_GROWTH})])"),
        "Assign": {_OLDEST: []},
    }
    return states.add(WAITING, wait, "FindOldest")


def _stop(scope: Scope, states: States, following: str) -> str:
    """Write the end of the oldest execution."""
    before = wording.filled(wording.BY_NEWER, newer="")
    request: dict[str, Json] = {
        "ExecutionArn": enclosed(_ARN),
        "Error": wording.SUPERSEDED,
        "Cause": enclosed(f"{quote(before)} & $states.context.Execution.Id"),
    }
    stop = _task("StopExecution", request, scope)
    stop["Assign"] = {_STOPPED: True}
    return states.add("StopOlder", stop, following)


def _let_end(states: States) -> str:
    wait: State = {"Type": "Wait", "Seconds": _ENDS_WITHIN_S, "Assign": {_OLDEST: []}}
    return states.add("LetOlderEnd", wait, "FindOldest")


def _released(states: States, following: str) -> str:
    """Write the clean-up after executions that were stopped, before anything new is paid."""
    companion = f"{UNQUALIFIED} & {quote(COMPANION)}"
    # It may find what AWS is still deleting, and does no harm when it is started again.
    again: State = {"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 60, "MaxAttempts": 3}
    clean_up: State = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Arguments": {"StateMachineArn": enclosed(companion), "Input": {}},
        "Retry": [again],
    }
    clean = states.add("CleanUpOlder", clean_up, following)
    return states.last("AnyStopped", choice(Rule(f"${_STOPPED}", clean), default=following))


def _task(operation: str, arguments: Json, scope: Scope) -> State:
    sent = task(Operation("stepfunctions", operation, {}), scope, _PATIENT, step="")
    return {**sent, "Arguments": arguments}
