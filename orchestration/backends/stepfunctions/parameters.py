"""The beginning of a definition: the run's identity, and its input, checked whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.backends.jsonata import enclosed, field_value, quote
from orchestration.backends.stepfunctions.states import Rule, State, States, choice, fail
from orchestration.execution import wording
from orchestration.execution.wording import parts
from orchestration.expressions import Json
from orchestration.graph import ParameterSpec

RUN: Final = "orchestration:run"
"""The field of an execution's input that names the run: executions of one name are one run."""
ATTEMPT: Final = "orchestration:attempt"
"""The field with the number of the attempt at the run. Jobs that an earlier attempt left badly
ended are followed by new ones, those of lower numbers only."""
STARTED_BY: Final = "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID"
"""The field by which a larger state machine links its execution to the one it starts:
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-nested-workflows.html"""
_INPUT: Final = "$states.input"
_NAMED: Final = (
    f"($v := $lookup({_INPUT}, '{RUN}'); $substring($hash($v ? '' & $v : $run, 'SHA-256'), 0, 12))"
)
_NUMBERED: Final = (
    f"($v := $lookup({_INPUT}, '{ATTEMPT}'); $type($v) = 'number' and $v > 1 ? $floor($v) : 1)"
)
_EXECUTION: Final = "$states.context.Execution.Id & $string($states.context.Map.Item)"
"""The elements of a Map around a definition share an execution, but not their places in it."""


def write(
    specs: tuple[ParameterSpec, ...],
    assigned: Mapping[str, Json],
    states: States,
    following: str,
    *,
    place: str = "",
) -> str:
    """Write the first states: ``assigned`` holds what is assigned once the input is checked.

    ``place`` is JSONata that tells the runs of one execution apart.
    """
    found = "[$problems.input, $problems.parameters, $problems.unknown]"
    cause = enclosed(f"$join({found}, {quote(wording.SEPARATOR)})")
    refused = states.last("InvalidInput", fail(wording.INVALID_INPUT, cause))
    well = Rule(f"$count({found}) = 0", following, assigned)
    check = states.last("CheckInput", choice(well, default=refused))
    lists = any(spec.type == "array" for spec in specs)
    judged: State = {
        "Type": "Pass",
        "Assign": {
            "run": enclosed(_NAMED),
            "attempt": enclosed(_NUMBERED),
            "parameters": enclosed(_WITH_DEFAULTS),
            "problems": {
                "input": enclosed(_object()),
                "parameters": enclosed(_parameters(lists)),
                "unknown": enclosed(_unknown()),
            },
        },
    }
    judge = states.add("FindProblems", judged, check)
    numbered = ParameterSpec(name=ATTEMPT, type="number", default=1)
    started_by = ParameterSpec(name=STARTED_BY, default="")
    specs = (*specs, ParameterSpec(name=RUN, default=""), numbered, started_by)
    execution = f"{_EXECUTION} & {place}" if place else _EXECUTION
    first = {"run": enclosed(execution), "declared": [_declared(spec) for spec in specs]}
    return states.add("ReadInput", {"Type": "Pass", "Assign": first}, judge)


# A null is a value that is not given: its default counts.
_GIVEN: Final = "$exists($v) and $type($v) != 'null'"


_WITH_DEFAULTS: Final = (
    f"$merge([{{}}, $declared.($v := $lookup({_INPUT}, name); {_GIVEN} ? {{name: $v}} : "
    "$exists(default) ? {name: default})])"
)


def _declared(spec: ParameterSpec) -> Json:
    declared: dict[str, Json] = {"name": spec.name, "type": spec.type}
    if spec.default is not None:
        declared["default"] = field_value(spec.default)
    if spec.uri:
        declared["uri"] = True
    return declared


def _object() -> str:
    return f"$type({_INPUT}) = 'object' ? [] : {quote(wording.INPUT_NOT_OBJECT)}"


def _parameters(lists: bool) -> str:
    wrong = _text(wording.PARAMETER_TYPE, name="name", type="type")
    missing = _text(wording.PARAMETER_MISSING, name="name")
    judged = f"{_GIVEN} ? {wrong} : $exists(default) ? [] : {missing}"
    no_uri = _text(wording.PARAMETER_NOT_URI, name="name", value="$v")
    named = "$contains($v, /^s3:[/][/][^/]/)"
    fits = f"uri and $not({named}) ? {no_uri} : []"
    if lists:
        fits = f"type = 'array' ? ({_elements()}) : {fits}"
    return f"[$declared.($v := $lookup({_INPUT}, name); $type($v) = type ? ({fits}) : {judged})]"


def _elements() -> str:
    """Return JSONata of what is wrong with the elements of a list."""
    scalar = "$type({}) in ['string', 'number', 'boolean']"
    other = f"function($x) {{{scalar.format('$x')} ? () : 1}}"
    inside = f"$type($e) = 'object' and $count($each($e, {other})) = 0"
    usable = f"{scalar.format('$e')} or ({inside})"
    numbers = f"$map($v, function($e, $i) {{{usable} ? () : $string($i + 1)}})"
    wrong = _text(wording.PARAMETER_ELEMENTS, name="name", numbers="$join($n, ', ')")
    return f"$n := {numbers}; $count($n) > 0 ? {wrong} : []"


def _unknown() -> str:
    message = _text(wording.PARAMETER_UNKNOWN, name="$")
    return f"[$keys({_INPUT})[$not($ in $declared.name)].({message})]"


def _text(text: str, **holes: str) -> str:
    pieces = parts(text, **{name: (value,) for name, value in holes.items()})
    return " & ".join(quote(piece) if isinstance(piece, str) else piece[0] for piece in pieces)
