"""State machines as steps, state by state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orchestration.importing.imported import Note
from orchestration.importing.state_machines.choices import condition
from orchestration.importing.state_machines.data import Data, Place, Unknown, inputs, placed, plain
from orchestration.importing.state_machines.flow import Clauses, Flow, Literal_
from orchestration.importing.state_machines.tasks import step_of
from orchestration.lint.machines import Machine, State

_TOLD: Final = {
    "Catch": "is left out; after a failed run follow the stages of on_failure",
    "Retry": "is left out; requests and jobs are tried again as the stage's retry says",
    "HeartbeatSeconds": "is left out",
}
_ERROR: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,127}")


@dataclass
class Reading:
    """The steps and conditions that were read of a state machine so far."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    """With the fields of SageMaker Pipelines, and ``State``, ``Path``, ``Field`` and ``Ways``."""
    notes: list[Note] = field(default_factory=list)
    inputs: dict[str, None] = field(default_factory=dict)
    """The places in the execution's input that are read."""
    conditions: dict[Literal_, dict[str, Any]] = field(default_factory=dict)

    def machine(
        self, machine: Machine, data: Data, ways: Clauses, before: Sequence[str]
    ) -> tuple[Any, list[str]]:
        """Read a machine; return what it makes of its data, and the last of its steps."""
        flow = Flow(machine.fields)
        given: dict[str, Data] = {str(machine.fields.get("StartAt")): data}
        last: dict[str, list[str]] = {}
        ends: list[tuple[Any, list[str]]] = []
        for name in sorted(flow.caught):
            self.notes.append(
                Note(_path(machine.states[name]), "is left out: only errors lead to it")
            )
        for name in flow.order:
            state = machine.states[name]
            around = self._around(flow, name, last, before)
            own = given.get(name, Data(Unknown("$")))
            whole = _product(ways, flow.ways[name])
            made, last[name] = self._state(state, own, whole, around, name in flow.looped)
            if state.type in ("Succeed", "Fail") or state.fields.get("End"):
                ends.append((made.input, last[name]))
            for following in _following(state):
                known = given.get(following)
                given[following] = made if known is None else known.merged(made)
        result = ends[0][0] if len(ends) == 1 else Unknown("the output of several ends")
        return result, list(dict.fromkeys(step for _, steps in ends for step in steps))

    def _around(
        self, flow: Flow, name: str, last: Mapping[str, list[str]], before: Sequence[str]
    ) -> list[str]:
        """Return the steps to wait for: the last before, and what ends the run instead."""
        earlier = [other for other in flow.before(name) if other in last]
        waited = [step for other in earlier for step in last[other]] if earlier else [*before]
        for choice in earlier:
            if flow.states[choice].get("Type") == "Choice":
                failing = set(flow.failing(choice))
                if name not in failing:
                    waited += [s["Name"] for s in self.steps if s["State"] in failing]
        return list(dict.fromkeys(waited))

    def _state(
        self, state: State, data: Data, ways: Clauses, before: list[str], looped: bool
    ) -> tuple[Data, list[str]]:
        """Read a state; return the data that it passes on, and the steps to wait for then."""
        path = _path(state)
        for key, text in _TOLD.items():
            if key in state.fields:
                self.notes.append(Note(f"{path}.{key}", text))
        if looped:
            self.notes.append(Note(path, f"{state.type} in a loop, which no stage does; left out"))
            return self._passed(state, data, Unknown(f"the result of {state.name}")), before
        match state.type:
            case "Task":
                return self._task(state, data, ways, before)
            case "Parallel":
                return self._parallel(state, data, ways, before)
            case "Fail":
                return data, self._failed(state, data, ways, before)
            case "Wait":
                return self._waited(state, data, ways, before)
            case _:
                return self._shaped(state, data), before

    def _shaped(self, state: State, data: Data) -> Data:
        """Return the data after a state that decides or shapes, or does what no stage does."""
        if state.type in ("Choice", "Succeed"):
            for number, rule in enumerate(state.fields.get("Choices", [])):
                self.conditions[state.name, number] = condition(rule, data, state.language)
            return data
        if state.type == "Pass":
            return self._passed(state, data, self._own(state, data))
        self.notes.append(Note(_path(state), f"no stage does what this {state.type} does"))
        return self._passed(state, data, Unknown(f"the result of {state.name}"))

    def _waited(
        self, state: State, data: Data, ways: Clauses, before: list[str]
    ) -> tuple[Data, list[str]]:
        seconds = state.fields.get("Seconds", state.fields.get("SecondsPath"))
        if seconds is None:
            self.notes.append(
                Note(_path(state), "waits for a moment, which no stage does; left out")
            )
            return self._passed(state, data, data.input), before
        if isinstance(seconds, str):
            is_path = seconds[:1] == "$"
            seconds = data.path(seconds) if is_path else data.template(seconds, "JSONata")
        step = {"Type": "Pause", "Arguments": {"Seconds": seconds}}
        made = self._passed(state, data, data.input)
        return made, self._added(state, step, "Seconds", ways, before)

    def _own(self, state: State, data: Data) -> Any:
        """Return the input of a state's work: its ``Parameters`` or ``Arguments``, or its data."""
        given = data.input
        path = state.fields.get("InputPath", "$")
        if state.language == "JSONPath" and path != "$":
            given = {} if path is None else data.path(str(path))
        for key in ("Parameters", "Arguments"):
            if key in state.fields:
                return data.template(state.fields[key], state.language, source=given)
        return state.fields.get("Result", given) if state.type == "Pass" else given

    def _passed(self, state: State, data: Data, result: Any) -> Data:
        """Return the data after a state with a result."""
        if state.language == "JSONata":
            seen = Data(data.input, data.variables, result)
            output = state.fields.get("Output")
            made = result if output is None else seen.template(output, "JSONata")
            assigned = seen.template(state.fields.get("Assign", {}), "JSONata")
            return Data(made, {**data.variables, **assigned})
        if "ResultSelector" in state.fields:
            result = data.template(state.fields["ResultSelector"], "JSONPath", source=result)
        assigned = data.template(state.fields.get("Assign", {}), "JSONPath", source=result)
        made = placed(data.input, state.fields.get("ResultPath", "$"), result)
        output = state.fields.get("OutputPath", "$")
        made = {} if output is None else data.path(str(output), made)
        return Data(made, {**data.variables, **assigned})

    def _task(
        self, state: State, data: Data, ways: Clauses, before: list[str]
    ) -> tuple[Data, list[str]]:
        request = self._own(state, data)
        step = step_of(state, request)
        if isinstance(step, str):
            self.notes.append(Note(_path(state), f"is left out: {step}"))
            return self._passed(state, data, Unknown(f"the result of {state.name}")), before
        if "TimeoutSeconds" in state.fields:
            self.notes.append(Note(f"{_path(state)}.TimeoutSeconds", "is left out; see timeout_s"))
        where = "Arguments" if state.language == "JSONata" else "Parameters"
        after = self._added(state, step, where, ways, before)
        result = Place(f"Steps.{_name(state)}")
        if step["Type"] == "Lambda" and not state.resource.endswith(":lambda:invoke"):
            result = result.below("Payload")
        return self._passed(state, data, result), after

    def _failed(self, state: State, data: Data, ways: Clauses, before: list[str]) -> list[str]:
        words = {
            key: data.template(state.fields.get(key, ""), state.language)
            for key in ("Error", "Cause")
        }
        for key in words:
            if f"{key}Path" in state.fields:
                words[key] = data.path(str(state.fields[f"{key}Path"]))
        request = {"ErrorMessage": words["Cause"] or words["Error"] or state.name}
        if isinstance(words["Error"], str) and _ERROR.fullmatch(words["Error"]):
            request["error"] = words["Error"]
        step = {"Type": "Fail", "Arguments": request}
        return self._added(state, step, "Cause", ways, before)

    def _parallel(
        self, state: State, data: Data, ways: Clauses, before: list[str]
    ) -> tuple[Data, list[str]]:
        given = Data(self._own(state, data), data.variables)
        results: list[Any] = []
        last: list[str] = []
        for inner in state.inner:
            result, ends = self.machine(inner, given, ways, before)
            results.append(result)
            last += ends
        return self._passed(state, data, results), list(dict.fromkeys(last)) or before

    def _added(
        self, state: State, step: Mapping[str, Any], where: str, ways: Clauses, before: list[str]
    ) -> list[str]:
        """Add a step; return its name, for those that wait for it."""
        self.inputs |= dict.fromkeys(inputs(step))
        known = {key: plain(value) for key, value in step.items()}
        own = {"Name": _name(state), "State": state.name, "Path": _path(state), "Field": where}
        self.steps.append({**known, **own, "DependsOn": before, "Ways": ways})
        return [own["Name"]]


def _name(state: State) -> str:
    return state.name.replace(".", "_")


def _path(state: State) -> str:
    return state.path.strip("/").replace("/", ".").replace("~1", "/").replace("~0", "~")


def _following(state: State) -> list[str]:
    fields = state.fields
    following = [rule.get("Next") for rule in fields.get("Choices", [])]
    return [str(each) for each in (*following, fields.get("Default"), fields.get("Next")) if each]


def _product(outer: Clauses, inner: Clauses) -> Clauses:
    return frozenset(one | other for one in outer for other in inner)
