"""Reads of texts: variables, the data of a state, the context object, results of calls.

https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html (read November
2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from orchestration.errors import near
from orchestration.lint import inputs
from orchestration.lint.findings import Finding
from orchestration.lint.languages import jsonata, jsonpath, types
from orchestration.lint.languages.templates import Text
from orchestration.lint.machines import State
from orchestration.lint.scopes import Scope
from orchestration.lint.tasks.resources import integration
from orchestration.lint.tasks.responses import Fields, response

_CONTEXT: Final = {
    "Execution": ("Id", "Input", "Name", "RoleArn", "StartTime", "RedriveCount", "RedriveTime"),
    "State": ("EnteredTime", "Name", "RetryCount"),
    "StateMachine": ("Id", "Name"),
    "Task": ("Token",),
    "Map": ("Item",),
}
_ITEM: Final = ("Index", "Value", "Key", "Source")
_DATA: Final = ("input", "result", "errorOutput", "context")
_REFERENCES: Final = ("ResultPath",)
_TOKEN_TOLD = re.compile(r"Task\.Token|\$\$'|\$states\.context(?!\.)|\$states(?!\.)")
"""The token, or the whole context object with it."""
_TOKEN: Final = "waitForTaskToken"  # noqa: S105 - the name of a pattern


def findings(text: Text, scope: Scope, given: Fields) -> Iterator[Finding]:
    """Yield what is wrong with a text and with what it reads."""
    if text.state.language == "JSONata":
        yield from _jsonata(text, scope, given)
    else:
        yield from _jsonpath(text, scope, inputs.read_by(text.state, text.field, given))


def _jsonata(text: Text, scope: Scope, given: Fields) -> Iterator[Finding]:
    reading = jsonata.read(jsonata.expression(text.text))
    if reading.error is not None:
        yield Finding("jsonata-syntax", text.path, f"cannot be parsed: {reading.error}")
    for fault in dict.fromkeys(reading.type_faults):
        yield Finding("wrong-operand", text.path, fault)
    yield from _value(reading.kind, text)
    yield from _without_context(reading, text)
    yield from _functions(reading, text, scope)
    guarded = _is_guarded(text)
    for use in dict.fromkeys(reading.uses):
        if use.name == "states":
            yield from _states(text, use.path)
            if use.path[:1] == ("input",) and not guarded:
                yield from _input(text, use.path[1:], given)
        elif not use.is_called and use.name not in jsonata.FUNCTIONS:
            yield from _variable(use.name, text, scope, guarded=guarded)


def _value(kind: str, text: Text) -> Iterator[Finding]:
    """Yield a finding where a field takes values of another type than the expression's."""
    name = text.path.rpartition("/")[2]
    taken = _TAKES.get(name) if text.is_whole else None
    if taken is not None and kind != types.ANY and kind not in taken:
        words = " or ".join(types.WORDS[each] for each in taken)
        message = f"expected {words}, and the expression gives {types.WORDS[kind]}"
        yield Finding("wrong-type", text.path, message)


_TAKES: Final = {
    **dict.fromkeys(("Seconds", "TimeoutSeconds", "HeartbeatSeconds", "MaxConcurrency"), "n"),
    **dict.fromkeys(("ToleratedFailureCount", "ToleratedFailurePercentage"), "n"),
    **dict.fromkeys(("Timestamp", "Error", "Cause"), "s"),
    "Condition": "b",
    "Items": "ao",
}
"""The types of the values that fields of states take."""


def _without_context(reading: jsonata.Reading, text: Text) -> Iterator[Finding]:
    for name in dict.fromkeys(reading.contextless):
        instead = "$states.input" if name.startswith("$") else f"$states.input.{name}"
        message = f"{name} has no value there; write {instead}, or the variable ${name}"
        if name.startswith("$"):
            message = f"{name} has no value outside of a path; write {instead}"
        yield Finding("no-context", text.path, message)


def _functions(reading: jsonata.Reading, text: Text, scope: Scope) -> Iterator[Finding]:
    calls = {use.name for use in reading.uses if use.is_called}
    for name in sorted(calls - scope.may):
        if name == "eval":
            yield Finding("unknown-function", text.path, "there is no $eval; use $parse for JSON")
        elif name not in jsonata.FUNCTIONS:
            message = f"there is no function ${name}{_close(name, jsonata.FUNCTIONS)}"
            yield Finding("unknown-function", text.path, message)


def _is_guarded(text: Text) -> bool:
    """Return whether an expression, or the Choice that it stands in, asks what there is."""
    if "$exists(" in text.text:
        return True
    rules = text.state.objects("Choices")
    return any("$exists(" in str(rule.get("Condition")) for _, rule in rules)


def _close(name: str, known: frozenset[str]) -> str:
    hint = near(name, known)
    return hint if "did you mean" in hint else ""


def _variable(name: str, text: Text, scope: Scope, *, guarded: bool) -> Iterator[Finding]:
    if name not in scope.may:
        hint = near(name, scope.may)
        where = "on any way to this state" if scope.may else "before this state"
        yield Finding("undefined-variable", text.path, f"${name} is not assigned {where}{hint}")
    elif name not in scope.must and not guarded:
        message = f"${name} is assigned on some ways to this state only; assign it on the others"
        yield Finding("maybe-undefined", text.path, message)


def _input(text: Text, path: tuple[str, ...], given: Fields) -> Iterator[Finding]:
    for name in path:
        if given is None:
            return
        if name not in given.fields:
            if not given.is_open:
                hint = near(name, given.fields)
                message = f"no way to this state gives its input a field {name}{hint}"
                yield Finding("unknown-input", text.path, message)
            return
        given = given.fields[name]


def _states(text: Text, path: tuple[str, ...]) -> Iterator[Finding]:
    if not path:
        return
    first = path[0]
    if first not in _DATA:
        message = f"$states has no {first}{near(first, _DATA)}"
        yield Finding("unavailable-data", text.path, message)
    elif first not in text.data:
        yield Finding("unavailable-data", text.path, f"there is no $states.{first} {_WHERE[first]}")
    elif first == "context":
        yield from _context(text, path[1:])
    elif first == "result":
        yield from _result(text, path[1:])
    elif first == "errorOutput" and len(path) > 1 and path[1] not in ("Error", "Cause"):
        hint = near(path[1], ("Error", "Cause"))
        yield Finding("undefined-path", text.path, f"an error has no {path[1]}{hint}")


_WHERE: Final = {
    "result": "here; it is in Output and Assign of a Task, Parallel or Map, once they succeeded",
    "errorOutput": "here; it is in Output and Assign of a catcher",
}


def _context(text: Text, path: tuple[str, ...]) -> Iterator[Finding]:
    if not path:
        return
    first, rest = path[0], path[1:]
    if first not in _CONTEXT:
        message = f"the context object has no {first}{near(first, _CONTEXT)}"
        yield Finding("unavailable-data", text.path, message)
    elif rest and rest[0] not in _CONTEXT[first]:
        message = f"{first} of the context object has no {rest[0]}{near(rest[0], _CONTEXT[first])}"
        yield Finding("unavailable-data", text.path, message)
    elif first == "Map":
        if len(rest) > 1 and rest[1] not in _ITEM:
            message = f"Map.Item of the context object has no {rest[1]}{near(rest[1], _ITEM)}"
            yield Finding("unavailable-data", text.path, message)
        elif not _is_in_map(text.state) and _reads_that_alone(text):
            message = "the context object has Map inside of Map states only"
            yield Finding("unavailable-data", text.path, message)
    elif first == "Task" and not _waits(text.state):
        message = "the context object has Task.Token only in a Task with .waitForTaskToken"
        yield Finding("absent-token", text.path, message)


def _reads_that_alone(text: Text) -> bool:
    """Return whether a text has no value where what it reads has none."""
    return text.state.language == "JSONPath" or " " not in jsonata.expression(text.text)


def _is_in_map(state: State | None) -> bool:
    while state is not None:
        if state.type == "Map":
            return True
        state = state.machine.outer
    return False


def _waits(state: State) -> bool:
    resource = state.resource
    return resource.endswith(f".{_TOKEN}") or ":states:::" not in resource


def token_findings(state: State) -> Iterator[Finding]:
    """Yield a finding for a Task that waits for a token which it tells nobody."""
    if not state.resource.endswith(f".{_TOKEN}"):
        return
    field = "Parameters" if state.language == "JSONPath" else "Arguments"
    request = state.fields.get(field)
    if request is None:
        return
    if _TOKEN_TOLD.search(str(request)) is None:
        token = "$$.Task.Token" if field == "Parameters" else "{% $states.context.Task.Token %}"
        message = f"nobody is told the token, so the task waits until it times out; send {token}"
        yield Finding("unused-token", f"{state.path}/{field}", message)


def _result(text: Text, path: tuple[str, ...]) -> Iterator[Finding]:
    known, used = response(text.state), integration(text.state)
    for name in path:
        if known is None or used is None:
            return
        if name not in known.fields:
            message = f"a response of {used.resource} has no {name} there{near(name, known.fields)}"
            yield Finding("undefined-path", text.path, message)
            return
        known = known.fields[name]


def _jsonpath(text: Text, scope: Scope, data: Fields) -> Iterator[Finding]:
    written = text.text
    try:
        if jsonpath.is_call(written) and (
            not text.is_path or text.field in ("ErrorPath", "CausePath")
        ):
            call = jsonpath.call(written)
            paths = call.paths
            for fault in call.faults:
                yield Finding("unknown-intrinsic", text.path, fault)
        else:
            paths = [jsonpath.path(written)]
    except jsonpath.SyntaxFault as fault:
        yield Finding("path-syntax", text.path, str(fault))
        return
    for path in paths:
        yield from _path(path, text, scope, data)


def _path(path: jsonpath.Path, text: Text, scope: Scope, data: Fields) -> Iterator[Finding]:
    if text.field in _REFERENCES and (not path.is_reference or path.root != "$"):
        message = (
            "names one place in the data: $.name.name, without *, .., filters, $$ or variables"
        )
        yield Finding("path-syntax", text.path, message)
    elif path.root == "$$":
        yield from _context(text, path.names)
    elif path.root != "$":
        yield from _variable(path.root, text, scope, guarded=text.field == "Variable")
    elif text.field == "ResultSelector":
        yield from _result(text, path.names)
    elif not _asks_presence(text):
        yield from _input(text, path.names, data)


def _asks_presence(text: Text) -> bool:
    """Return whether a Choice asks first if what it reads is there."""
    rules = text.state.objects("Choices")
    return any("'IsPresent'" in str(rule) for _, rule in rules)
