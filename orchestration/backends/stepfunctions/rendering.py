"""A workflow as an Amazon States Language definition in JSONata.

https://docs.aws.amazon.com/step-functions/latest/dg/concepts-amazon-states-language.html
There is no ``TimeoutSeconds`` for the whole: an execution that runs out of time runs no ``Catch``,
and so no clean-up. Every wait has a limit of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from orchestration.backends.jsonata import enclosed, field, literal, quote, tree
from orchestration.backends.stepfunctions import control, limits
from orchestration.backends.stepfunctions.facts import facts
from orchestration.backends.stepfunctions.names import Scope
from orchestration.backends.stepfunctions.states import State, States, choice, fail
from orchestration.errors import UnsupportedError
from orchestration.expressions import Json
from orchestration.graph import ParameterSpec, Workflow

_INPUT = "$states.input"
_FOUND = "$filter($problems, function($p) { $p != '' })"


def render(workflow: Workflow) -> dict[str, Json]:
    """The definition, ready for ``CreateStateMachine``.

    Raises :class:`~orchestration.errors.UnsupportedError` with everything that can't be said in it.
    """
    refused = list(limits.refused(workflow))
    if refused:
        raise UnsupportedError(refused)
    states = States()
    start = _started(workflow, Scope(facts(workflow), {}), states)
    definition: dict[str, Json] = {
        "Comment": workflow.description or workflow.name,
        "QueryLanguage": "JSONata",
        **states.machine(start),
    }
    exceeded = list(limits.exceeded(definition))
    if exceeded:
        raise UnsupportedError(exceeded)
    return definition


def dumps(definition: Mapping[str, Json]) -> str:
    """A definition as text that reads and compares well."""
    return json.dumps(definition, indent=2, ensure_ascii=False) + "\n"


def _started(workflow: Workflow, scope: Scope, states: States) -> str:
    after = control.seen(workflow.graph, scope)
    done: State = {"Type": "Succeed", "Output": tree(workflow.outputs, after)}
    first = control.steps(workflow.graph, scope, states, states.last("Outputs", done))
    if workflow.parameters:
        values: dict[str, Json] = {p.name: enclosed(_value(p)) for p in workflow.parameters}
        given: State = {"Type": "Pass", "Assign": {"parameters": values}}
        first = states.add("Parameters", given, first)
    refused = states.last("InvalidInput", fail("InvalidInput", enclosed(f"$join({_FOUND}, '; ')")))
    check = states.last("InputCheck", choice(("$join($problems) != ''", refused), default=first))
    run = "$substring($hash($states.context.Execution.Id, 'SHA-256'), 0, 12)"
    found = [enclosed(problem) for problem in _problems(workflow.parameters)]
    assigned: dict[str, Json] = {"run": enclosed(run), "problems": found}
    return states.add("Input", {"Type": "Pass", "Assign": assigned}, check)


def _given(parameter: ParameterSpec) -> str:
    return field(_INPUT, parameter.name)


def _value(parameter: ParameterSpec) -> str:
    value = _given(parameter)
    if parameter.default is None:
        return value
    return f"$exists({value}) ? {value} : {literal(parameter.default)}"


def _problems(parameters: tuple[ParameterSpec, ...]) -> Iterator[str]:
    yield f"$type({_INPUT}) = 'object' ? '' : 'the input is no object'"
    for parameter in parameters:
        value = _given(parameter)
        wrong = quote(f"parameter {parameter.name} is no {parameter.type}")
        missing = quote(f"parameter {parameter.name} is missing")
        absent = missing if parameter.default is None else "''"
        typed = f"$type({value}) = '{parameter.type}' ? '' : {wrong}"
        yield f"$exists({value}) ? ({typed}) : {absent}"
    known = literal([parameter.name for parameter in parameters])
    unknown = f"$filter($keys({_INPUT}), function($k) {{ $not($k in {known}) }})"
    told = f"$map({unknown}, function($k) {{ 'there is no parameter ' & $k }})"
    yield f"'' & $join({told}, '; ')"
