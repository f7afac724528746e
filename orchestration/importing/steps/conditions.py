"""The conditions of a definition, as the ``when`` of the stages that they decide on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestration.importing.steps.step import Branch
from orchestration.importing.steps.values import Values

_COMPARED: Final = {
    "Equals": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqualTo": "at_least",
    "LessThan": "less",
    "LessThanOrEqualTo": "at_most",
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of one definition, with its values."""

    values: Values

    def when(self, branches: Sequence[Branch], stage: str) -> Any:
        """Return the condition of a stage; none where it stands in no branch."""
        every: list[Any] = []
        for branch in branches:
            held = [
                self._condition(each, f"{branch.path}[{number}]", stage)
                for number, each in enumerate(branch.conditions)
            ]
            guards: dict[str, Any] = {}
            held = [self._guarded(each, branches, stage, guards) for each in held]
            if branch.implied:
                guards = {}
            every += [*guards.values(), *(held if branch.holds else [{"not": _all(held)}])]
        return _all(every) if every else None

    def _guarded(
        self, condition: Any, branches: Sequence[Branch], stage: str, guards: dict[str, Any]
    ) -> Any:
        """Return a condition that can be told where a stage that it asks was skipped.

        ``guards`` receives the conditions of such stages: without them nothing is to be decided.
        """
        if isinstance(condition, list):
            return [self._guarded(each, branches, stage, guards) for each in condition]
        if not isinstance(condition, dict):
            return condition
        [(word, inner)] = condition.items()
        if word not in (*_COMPARED.values(), "in"):
            return {word: self._guarded(inner, branches, stage, guards)}
        left, right = inner
        others = right if word == "in" else [right]
        asked = self._or_else(left, others[0], branches, stage, guards)
        rest = [self._or_else(each, left, branches, stage, guards) for each in others]
        return {word: [asked, rest if word == "in" else rest[0]]}

    def _or_else(
        self, value: Any, other: Any, branches: Sequence[Branch], stage: str, guards: dict[str, Any]
    ) -> Any:
        if not isinstance(value, dict) or "ref" not in value:
            return value
        asked = value["ref"].partition(".")[0]
        (step,) = (each for each in self.values.steps.values() if each.stage == asked)
        if step.branches == tuple(branches[: len(step.branches)]):
            return value
        guards[asked] = self.when(step.branches, stage)
        if isinstance(other, bool):
            return {"first_of": [value, False]}
        number = isinstance(other, int | float) or (
            isinstance(other, dict)
            and self.values.parameters.get(other.get("parameter", ""), {}).get("type") == "number"
        )
        return {"first_of": [value, 0 if number else ""]}

    def _condition(self, given: Any, path: str, stage: str) -> Any:
        if isinstance(given, Mapping):
            match given.get("Type"):
                case "Not":
                    key = "Expression" if "Expression" in given else "Condition"
                    inner = self._condition(given.get(key), f"{path}.{key}", stage)
                    return {"not": inner}
                case "Or" | "And" as both:
                    every = [
                        self._condition(each, f"{path}.Conditions[{number}]", stage)
                        for number, each in enumerate(given.get("Conditions", []))
                    ]
                    return {"any": every} if both == "Or" else _all(every)
                case "In":
                    among = [
                        self._operand(each, None, f"{path}.Values[{number}]", stage)
                        for number, each in enumerate(given.get("Values", []))
                    ]
                    asked = self._operand(
                        given.get("QueryValue"),
                        among[0] if among else None,
                        f"{path}.QueryValue",
                        stage,
                    )
                    return {"in": [asked, among]}
                case str(word) if word in _COMPARED:
                    left, right = given.get("LeftValue"), given.get("RightValue")
                    return {
                        _COMPARED[word]: [
                            self._operand(left, right, f"{path}.LeftValue", stage),
                            self._operand(right, left, f"{path}.RightValue", stage),
                        ]
                    }
        path = given.get("Path", path) if isinstance(given, Mapping) else path
        given_up = self.values.given(path, path)
        self.values.parameters[given_up["parameter"]]["type"] = "boolean"
        return given_up

    def _operand(self, value: Any, other: Any, path: str, stage: str) -> Any:
        if isinstance(value, Mapping) and isinstance(read := value.get("Std:JsonGet"), Mapping):
            return self.values.read(read, path, "texts" if self._is_text(other) else "numbers")
        made = self.values.of(value, path, stage)
        if isinstance(made, dict) and isinstance(other, bool | int | float):
            given = self.values.parameters.get(made.get("parameter", ""), {})
            if "description" in given:  # It stands for a value that nothing here tells.
                given["type"] = "boolean" if isinstance(other, bool) else "number"
        return made

    def _is_text(self, value: Any) -> bool:
        if isinstance(value, Mapping) and isinstance(value.get("Get"), str):
            own = self.values.names.get(value["Get"].removeprefix("Parameters."), "")
            return bool(self.values.parameters.get(own, {}).get("type") == "string")
        return isinstance(value, str)


def _all(given: list[Any]) -> Any:
    conditions: list[Any] = []
    for each in given:
        conditions += each["all"] if isinstance(each, dict) and "all" in each else [each]
    return conditions[0] if len(conditions) == 1 else {"all": conditions}
