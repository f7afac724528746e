"""The fields that data can have, as far as the states before say so.

What is written out is followed: templates, ``Output``, ``ResultPath``, responses of calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.lint.languages import jsonpath
from orchestration.lint.languages.jsonata import expression
from orchestration.lint.machines import Machine, State
from orchestration.lint.tasks.responses import Fields, Known, response
from orchestration.lint.values import is_expression

_ERROR: Final = Known({"Error": None, "Cause": None})
_NOTHING: Final = Known({})
_SELECTORS: Final = ("ItemSelector", "Parameters")
_OPEN: Final = Known({}, is_open=True)


def inputs(top: Machine) -> dict[State, Fields]:
    """Return the fields of the inputs of all states that can be reached."""
    found: dict[State, Fields] = {}
    _machine(top, None, found)
    return found


def read_by(state: State, field: str, given: Fields) -> Fields:
    """Return the fields of what ``$`` stands for in a field of a state in JSONPath."""
    if state.language == "JSONata" or field == "InputPath":
        return given
    if field == "OutputPath":
        return _before_output_path(state, given)
    if field == "ResultSelector":
        return response(state) if state.type == "Task" else None
    # `Assign` reads the result of most states, or the error of a catcher.
    return None if field in ("Assign", "ResultPath") else _effective(state, given)


def _machine(machine: Machine, given: Fields, found: dict[State, Fields]) -> None:
    start = machine.states.get(str(machine.fields.get("StartAt")))
    if start is not None:
        found[start] = given
        ahead = [start]
        while ahead:
            state = ahead.pop()
            for target, fields in _ways(state, found[state]):
                after = fields if target not in found else _either(found[target], fields)
                if target not in found or after != found[target]:
                    found[target] = after
                    ahead.append(target)
    for state in machine.states.values():
        for inner in state.inner:
            _machine(inner, _inside(state, found.get(state)), found)


def _either(one: Fields, other: Fields) -> Fields:
    """Return the fields that an object has on one way or another."""
    if one is None or other is None:
        return None
    fields: dict[str, Fields] = {}
    for name in dict.fromkeys([*one.fields, *other.fields]):
        if name in one.fields and name in other.fields:
            fields[name] = _either(one.fields[name], other.fields[name])
        elif name in one.fields:
            fields[name] = None if other.is_open else one.fields[name]
        else:
            fields[name] = None if one.is_open else other.fields[name]
    return Known(fields, one.is_open or other.is_open)


def _ways(state: State, given: Fields) -> Iterator[tuple[State, Fields]]:
    states = state.machine.states
    for key in ("Next", "Default"):
        target = states.get(str(state.fields.get(key)))
        if target is not None:
            yield target, _output(state, state.fields, given)
    for key in ("Choices", "Catch"):
        for _, rule in state.objects(key):
            target = states.get(str(rule.get("Next")))
            if target is not None:
                yield target, _after(state, key, rule, given)


def _after(state: State, key: str, rule: Mapping[str, Any], given: Fields) -> Fields:
    """Return what goes on where a rule or a catcher matches."""
    if state.language == "JSONata":
        default = _ERROR if key == "Catch" else _output(state, state.fields, given)
        return _written(rule["Output"], given, default) if "Output" in rule else default
    if key == "Catch":
        return _placed(rule.get("ResultPath", "$"), given, _ERROR)
    return _output(state, state.fields, given)


def _output(state: State, fields: Mapping[str, Any], given: Fields) -> Fields:
    if state.language == "JSONata":
        result = _result(state, given)
        return _written(fields["Output"], given, result) if "Output" in fields else result
    return _at(fields.get("OutputPath", "$"), _before_output_path(state, given))


def _before_output_path(state: State, given: Fields) -> Fields:
    if state.type in ("Wait", "Choice", "Succeed"):
        return _effective(state, given)
    result = _result(state, given)
    if "ResultSelector" in state.fields:
        result = _template(state.fields["ResultSelector"], result)
    return _placed(state.fields.get("ResultPath", "$"), given, result)


def _result(state: State, given: Fields) -> Fields:
    """Return the fields of a state's result, which is its output if none is written."""
    if state.type == "Task":
        return response(state)
    if state.type == "Pass" and state.language == "JSONPath":
        if "Result" in state.fields:
            return _literal(state.fields["Result"])
        effective = _effective(state, given)
        if "Parameters" in state.fields:
            return _template(state.fields["Parameters"], effective)
        return effective
    return given if state.type in ("Pass", "Wait", "Choice") else None


def _effective(state: State, given: Fields) -> Fields:
    return _at(state.fields.get("InputPath", "$"), given)


def _at(path: Any, given: Fields) -> Fields:
    """Return what is at a path in data; nothing is known where it cannot be told."""
    if path is None:
        return _NOTHING
    names = _names(path)
    for name in names or ():
        given = given.fields.get(name) if given is not None else None
    return given if names is not None else None


def _placed(path: Any, given: Fields, result: Fields) -> Fields:
    """Return data with a result at a path in it."""
    if path is None:
        return given
    names = _names(path)
    if names is None:
        return None
    if not names:
        return result
    return _set(_OPEN if given is None else given, names, result)


def _set(around: Known, names: tuple[str, ...], result: Fields) -> Known:
    first, *rest = names
    if rest:
        inner = around.fields.get(first, None if around.is_open else _NOTHING)
        result = _set(_OPEN if inner is None else inner, tuple(rest), result)
    return Known({**around.fields, first: result}, around.is_open)


def _names(path: Any) -> tuple[str, ...] | None:
    """Return the names in a path of the data that consists of names only."""
    try:
        read = jsonpath.path(str(path))
    except jsonpath.SyntaxFault:
        return None
    return read.names if read.root == "$" and read.is_plain else None


def _template(value: Any, data: Fields) -> Fields:
    """Return the fields that a template of JSONPath gives."""
    if not isinstance(value, Mapping):
        return None
    return Known(
        {
            str(key).removesuffix(".$"): (
                _at(each, data) if str(key).endswith(".$") else _template(each, data)
            )
            for key, each in value.items()
        }
    )


def _literal(value: Any) -> Fields:
    if not isinstance(value, Mapping):
        return None
    return Known({str(key): _literal(each) for key, each in value.items()})


def _written(value: Any, given: Fields, result: Fields) -> Fields:
    """Return the fields that a value in JSONata has."""
    if isinstance(value, Mapping):
        return Known({str(name): _written(each, None, None) for name, each in value.items()})
    if is_expression(value):
        return {"$states.input": given, "$states.result": result}.get(expression(value))
    return None


def _inside(state: State, given: Fields) -> Fields:
    """Return the fields of what the state machines inside of a state get."""
    if state.type == "Map" and "ItemBatcher" in state.fields:
        return Known({"Items": None, "BatchInput": None})
    given = _effective(state, given) if state.language == "JSONPath" else given
    names = ("Parameters", "Arguments") if state.type == "Parallel" else _SELECTORS
    for name in names:
        if name in state.fields:
            value = state.fields[name]
            if state.language == "JSONPath":
                return _template(value, given)
            return _written(value, given, None)
    return given if state.type == "Parallel" else None
