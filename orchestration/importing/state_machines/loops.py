"""The data after a loop of states, which is gone through nobody knows how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from orchestration.importing.state_machines.data import Data, Unknown, placed
from orchestration.lint.machines import State

_PASSING: Final = ("Choice", "Wait", "Succeed", "Fail")
"""The types of states without a result of their own."""


def overlaid(data: Data, states: Sequence[State]) -> Data:
    """Return data with what the states of a loop may change of it not known."""
    made, variables = data.input, dict(data.variables)
    for state in sorted(states, key=lambda each: each.name):
        made = _changed(state, made)
        for holder in (state.fields, *state.fields.get("Choices", [])):
            for name in holder.get("Assign", {}):
                own = str(name).removesuffix(".$")
                variables[own] = Unknown(f"{own} after a loop")
    return replace(data, input=made, variables=variables)


def _changed(state: State, given: Any) -> Any:
    fields, result = state.fields, Unknown(f"the result of {state.name}")
    passes = state.type in _PASSING
    if state.language == "JSONata":
        outputs = any("Output" in each for each in (fields, *fields.get("Choices", [])))
        return result if outputs or not (passes or state.type == "Pass") else given
    narrowed = passes and fields.get("InputPath", "$") != "$"
    if narrowed or fields.get("OutputPath", "$") != "$":
        return result
    return given if passes else placed(given, fields.get("ResultPath", "$"), result)
