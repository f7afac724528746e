"""Retriers and catchers.

https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html (read
November 2026).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import near
from orchestration.lint import values
from orchestration.lint.findings import Finding
from orchestration.lint.machines import State

_RETRIER = frozenset(
    {"ErrorEquals", "IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds"}
    | {"JitterStrategy", "Comment"}
)
_CATCHER: Final = {
    "JSONPath": frozenset({"ErrorEquals", "Next", "ResultPath", "Assign", "Comment"}),
    "JSONata": frozenset({"ErrorEquals", "Next", "Output", "Assign", "Comment"}),
}
_ERRORS: Final = frozenset(
    {
        *("States.ALL", "States.BranchFailed", "States.DataLimitExceeded"),
        *("States.ExceedToleratedFailureThreshold", "States.HeartbeatTimeout"),
        *("States.Http.Socket", "States.IntrinsicFailure", "States.ItemReaderFailed"),
        *("States.NoChoiceMatched", "States.ParameterPathFailure", "States.Permissions"),
        *("States.QueryEvaluationError", "States.ResultPathMatchFailure"),
        *("States.ResultWriterFailed", "States.Runtime", "States.TaskFailed", "States.Timeout"),
    }
)
_CLOSE: Final = 0.92
"""So alike is a slip in the name of an error, and not an error of one's own."""
_ALL = "States.ALL"
_MOST: Final = "States.TaskFailed"
_NOT_MOST = frozenset({"States.Timeout", _ALL, "States.HeartbeatTimeout"})


def findings(state: State) -> Iterator[Finding]:
    """Yield what is wrong with the retriers and catchers of a state."""
    for key in ("Retry", "Catch"):
        entries = list(state.objects(key))
        before: set[str] = set()
        for index, (path, entry) in enumerate(entries):
            yield from _fields(state, key, entry, path)
            names = entry.get("ErrorEquals")
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                last = index == len(entries) - 1
                yield from _names(names, f"{path}/ErrorEquals", key, before, last=last)
                before |= set(names)


def _fields(state: State, key: str, entry: Mapping[str, Any], path: str) -> Iterator[Finding]:
    known = _RETRIER if key == "Retry" else _CATCHER[state.language]
    others = _CATCHER["JSONata" if state.language == "JSONPath" else "JSONPath"]
    for name in entry:
        where = f"{path}/{name}"
        if name in known:
            continue
        if key == "Catch" and name in others:
            text = f"is a field of another query language; the state is in {state.language}"
            yield Finding("wrong-language", where, text)
        else:
            yield Finding("unknown-field", where, f"is unknown{near(str(name), known)}")
    names = entry.get("ErrorEquals")
    if "ErrorEquals" not in entry:
        yield Finding("missing-field", path, "ErrorEquals is required")
    elif not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        yield Finding("wrong-type", f"{path}/ErrorEquals", "expected a list of names of errors")
    elif not names:
        yield Finding("wrong-value", f"{path}/ErrorEquals", "is empty; name an error")
    if key == "Catch":
        if "Next" not in entry:
            yield Finding("missing-field", path, "Next is required")
    else:
        yield from values.retrier(entry, path)


def _names(
    names: list[str], path: str, key: str, before: set[str], *, last: bool
) -> Iterator[Finding]:
    if _ALL in names and len(names) > 1:
        text = f"{_ALL} stands with other errors; it must stand alone: remove the others"
        yield Finding("states-all", path, text)
    if _ALL in names and not last:
        yield Finding("states-all", path, f"{_ALL} must be the last entry of {key}; move it")
    for name in names:
        is_known = name in _ERRORS or name.startswith("States.Http.StatusCode.")
        close = difflib.get_close_matches(name, _ERRORS, 1, _CLOSE)
        if name.startswith("States.") and not is_known:
            hint = near(name, _ERRORS)
            yield Finding("unknown-error", path, f"the language has no error {name}{hint}")
        elif not is_known and close and close[0] != name:
            yield Finding("unknown-error", path, f"{name}: did you mean {close[0]!r}?")
    for name in names:
        if name in before:
            text = f"an entry before this one handles {name}; remove it here, or there"
            yield Finding("unused-handler", path, text)
        elif _MOST in before and name not in _NOT_MOST:
            text = f"an entry before this one names {_MOST}, which is {name} too; move this before"
            yield Finding("unused-handler", path, text)


def catches_all(state: State) -> Iterator[str]:
    """Yield the states that follow whatever fails in a state."""
    for _, entry in state.objects("Catch"):
        names, target = entry.get("ErrorEquals"), entry.get("Next")
        is_broad = isinstance(names, list) and {_ALL, _MOST} & set(map(str, names))
        if is_broad and isinstance(target, str):
            yield target


def retries_failures(state: State) -> bool:
    """Return whether a state that failed is tried again, whatever the failure was."""
    for _, entry in state.objects("Retry"):
        names = entry.get("ErrorEquals")
        if isinstance(names, list) and {_ALL, _MOST} & set(map(str, names)):
            return bool(entry.get("MaxAttempts", 3) != 0)
    return False
