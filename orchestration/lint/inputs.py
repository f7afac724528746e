"""The fields that the input of a state can have, as far as the states before it say so.

For states in JSONata: their ``Output`` is written out, or it is what came in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from orchestration.lint.languages.jsonata import expression
from orchestration.lint.machines import Machine, State
from orchestration.lint.tasks.resources import response_names
from orchestration.lint.values import is_expression

Fields: TypeAlias = Mapping[str, Any] | None
"""The fields of an object, each with its own; ``None`` where they are not known."""

_ERROR: Fields = {"Error": None, "Cause": None}


def inputs(top: Machine) -> dict[State, Fields]:
    """Return the fields of the inputs of all states that can be reached."""
    found: dict[State, Fields] = {}
    _machine(top, None, found)
    return found


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
    return {
        name: _either(one[name], other[name])
        if name in one and name in other
        else one.get(name, other.get(name))
        for name in [*one, *(name for name in other if name not in one)]
    }


def _ways(state: State, given: Fields) -> Iterator[tuple[State, Fields]]:
    states = state.machine.states
    output = _output(state, state.fields, given, _result(state, given))
    for key in ("Next", "Default"):
        target = states.get(str(state.fields.get(key)))
        if target is not None:
            yield target, output
    for key, default in (("Choices", output), ("Catch", _ERROR)):
        for _, rule in state.objects(key):
            target = states.get(str(rule.get("Next")))
            if target is not None:
                yield target, _output(state, rule, given, default)


def _output(state: State, fields: Mapping[str, Any], given: Fields, default: Fields) -> Fields:
    if state.language == "JSONPath":
        return None
    return _written(fields["Output"], given, default) if "Output" in fields else default


def _result(state: State, given: Fields) -> Fields:
    """Return the fields of a state's result, which is its output if none is written."""
    if state.type in ("Pass", "Wait", "Choice"):
        return given
    names = response_names(state) if state.type == "Task" else None
    return None if names is None else dict.fromkeys(names)


def _written(value: Any, given: Fields, result: Fields) -> Fields:
    if isinstance(value, Mapping):
        return {str(name): _written(each, None, None) for name, each in value.items()}
    if is_expression(value):
        return {"$states.input": given, "$states.result": result}.get(expression(value))
    return None


def _inside(state: State, given: Fields) -> Fields:
    """Return the fields of what the state machines inside of a state get."""
    if state.language == "JSONPath":
        return None
    if state.type == "Parallel":
        return (
            _written(state.fields["Arguments"], given, None)
            if "Arguments" in state.fields
            else given
        )
    if "ItemSelector" in state.fields and "ItemBatcher" not in state.fields:
        return _written(state.fields["ItemSelector"], None, None)
    return None
