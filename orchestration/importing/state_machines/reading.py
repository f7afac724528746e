"""State machines as steps, state by state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.importing.imported import Note
from orchestration.importing.state_machines.choices import condition
from orchestration.importing.state_machines.data import (
    Data,
    Layers,
    Place,
    Unknown,
    filled,
    inputs,
    placed,
    plain,
)
from orchestration.importing.state_machines.flow import GATE, Clauses, Flow, Literal_, place
from orchestration.importing.state_machines.loops import overlaid
from orchestration.importing.state_machines.maps import for_each, listing, loop_of, told
from orchestration.importing.state_machines.tasks import asks, renamed_by, step_of
from orchestration.lint.machines import Machine, State

_TOLD: Final = {
    "Credentials": "is left out: its request is sent under the pipeline's own role; see "
    "registry_role of the stages of the model registry",
    "Catch": "is left out; after a failed run follow the stages of on_failure",
    "Retry": "is left out; requests and jobs are tried again as the stage's retry says",
    "TimeoutSeconds": "is left out; see timeout_s",
}
_READ: Final = frozenset(
    {
        *("Type", "Next", "End", "Comment", "QueryLanguage", "InputPath", "OutputPath"),
        *("Parameters", "Arguments", "ResultSelector", "ResultPath", "Output", "Assign"),
    }
)
_READ_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "Task": ("Resource",),
    "Choice": ("Choices", "Default"),
    "Pass": ("Result",),
    "Wait": ("Seconds", "SecondsPath", "Timestamp", "TimestampPath"),
    "Fail": ("Error", "ErrorPath", "Cause", "CausePath"),
    "Parallel": ("Branches",),
    "Map": (
        "ItemProcessor",
        "Iterator",
        "ItemsPath",
        "Items",
        "ItemSelector",
        "MaxConcurrency",
        "ItemReader",
        "ItemBatcher",
    ),
}
"""The fields of states that are followed here, or left out with the state; others are told."""
_ERROR: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,127}")


@dataclass
class Reading:
    """The steps and conditions that were read of a state machine so far."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    """With the fields of SageMaker Pipelines, and ``Path``, ``Field`` and ``Ways``."""
    notes: list[Note] = field(default_factory=list)
    inputs: dict[str, None] = field(default_factory=dict)
    """The places in the execution's input that are read."""
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    """The names of steps, by the places and names of their states."""
    conditions: dict[Literal_, dict[str, Any]] = field(default_factory=dict)
    lists: dict[str, None] = field(default_factory=dict)
    """The places in the execution's input whose elements are gone through."""
    layers: Layers = field(default_factory=Layers)
    gates: list[Literal_] = field(default_factory=list)
    """States that wait for somebody, and that no stage stands for: what follows is asked of a run.
    """

    def machine(
        self, machine: Machine, data: Data, ways: Clauses, before: Sequence[str]
    ) -> tuple[Any, list[str]]:
        """Read a machine; return what it makes of its data, and the last of its steps."""
        flow = Flow(machine)
        self._unread(flow)
        given: dict[str, Data] = {str(machine.fields.get("StartAt")): data}
        last: dict[str, list[str]] = {}
        ends: list[tuple[Any, list[str]]] = []
        failed: list[str] = []
        for name in flow.order:
            state = machine.states[name]
            earlier = [other for other in flow.before(name) if other in last]
            around = [step for other in earlier for step in last[other]] if earlier else [*before]
            own = replace(given.get(name, Data(Unknown(f"the input of {name}"))), state=name)
            whole = _product(ways, flow.entered(name))
            known_gates = len(self.gates)
            if name in flow.looped:
                made, last[name] = self._looped(flow, state, own), list(dict.fromkeys(around))
            else:
                made, last[name] = self._state(state, own, whole, list(dict.fromkeys(around)))
            in_loop = (machine.states[other] for other in sorted(flow.loop(name)))
            around_it = [(place(other), GATE) for other in in_loop if asks(other)]
            flow.left(name, around_it or self.gates[known_gates:])
            if state.type == "Choice" and name not in flow.looped:
                failed += self._unmatched(state, whole, last[name])
            if state.type == "Fail":
                failed += last[name]
            elif state.type == "Succeed" or state.fields.get("End"):
                ends.append((made.input, last[name]))
            for following in _following(state):
                known = given.get(following)
                given[following] = made if known is None else known.merged(made, following)
        result = ends[0][0] if len(ends) == 1 else Unknown("the output of several ends")
        return result, list(dict.fromkeys([s for _, steps in ends for s in steps] + failed))

    def _unread(self, flow: Flow) -> None:
        """Tell which states no way leads to that is followed here, and where loops end.

        Raises :class:`~orchestration.errors.PipelineError` where a state leads nowhere.
        """
        problems = [
            Problem(place(state), f"{following} is no state")
            for state in flow.machine.states.values()
            for following in _following(state)
            if following not in flow.machine.states
        ]
        if problems:
            raise PipelineError(problems)
        for name in sorted(flow.caught):
            text = "is left out: only errors lead to it"
            self.notes.append(Note(place(flow.machine.states[name]), text))
        for name in sorted(flow.fled):
            text = "is left out: a loop leads to it, and then the execution fails"
            self.notes.append(Note(place(flow.machine.states[name]), text))
        for name in flow.looped:
            ends = flow.ends(name)
            for number, end in enumerate(ends[:-1]):
                where = f"{flow.looped_place(name)} leads to {end}"
                odd = {"Type": "a loop's end", "Path": where}
                self.conditions[flow.looped_place(name), number] = odd

    def _looped(self, flow: Flow, state: State, data: Data) -> Data:
        """Return the data after a state of a loop: nobody knows how often it was gone through."""
        text = f"{state.type} in a loop, which no stage does; left out"
        self.notes.append(Note(place(state), text))
        self._gated(state)
        return overlaid(data, [flow.machine.states[name] for name in flow.loop(state.name)])

    def _unmatched(self, state: State, ways: Clauses, before: list[str]) -> list[str]:
        """Fail where no rule of a choice holds, and it has no default."""
        rules = len(state.fields.get("Choices", []))
        if "Default" in state.fields or not rules:
            return []
        request = {"ErrorMessage": f"no rule of {state.name} holds", "error": "NoChoiceMatched"}
        named = replace(state, name=f"{state.name} no rule")
        ways = _product(ways, frozenset([frozenset([(place(state), rules)])]))
        step = {"Type": "Fail", "Arguments": request}
        return self._added(named, step, "Choices", ways, before)

    def _state(
        self, state: State, data: Data, ways: Clauses, before: list[str]
    ) -> tuple[Data, list[str]]:
        """Read a state; return the data that it passes on, and the steps to wait for then."""
        for key in state.fields:
            awaited = key == "TimeoutSeconds" and "waitForTaskToken" in state.resource
            if key not in _READ and key not in _READ_OF.get(state.type, ()) and not awaited:
                text = _TOLD.get(key, "is left out")
                self.notes.append(Note(f"{place(state)}.{key}", text))
        match state.type:
            case "Task":
                return self._task(state, data, ways, before)
            case "Parallel":
                return self._parallel(state, data, ways, before)
            case "Fail":
                return data, self._failed(state, data, ways, before)
            case "Wait":
                return self._waited(state, data, ways, before)
            case "Map":
                return self._mapped(state, data, ways, before)
            case _:
                return self._shaped(state, data), before

    def _shaped(self, state: State, data: Data) -> Data:
        """Return the data after a state that decides or shapes, or does what no stage does."""
        if state.type in ("Choice", "Succeed"):
            return self._decided(state, data)
        if state.type == "Pass":
            return self._passed(state, data, self._own(state, data))
        self.notes.append(Note(place(state), f"no stage does what this {state.type} does"))
        return self._passed(state, data, Unknown(f"the result of {state.name}"))

    def _decided(self, state: State, data: Data) -> Data:
        """Note the rules of a choice; return the data that it passes on, whichever holds."""
        given = replace(data, input=self._narrowed(state, data))
        variables = dict(data.variables)
        output: Any = self._passed(state, given, given.input).input
        for number, rule in enumerate(state.fields.get("Choices", [])):
            path = f"{place(state)}.Choices[{number}]"
            made = condition(rule, given, state.language)
            self.conditions[place(state), number] = {**made, "Path": path}
            if "Output" in rule or (state.language == "JSONata" and "Output" in state.fields):
                output = Unknown(f"the output of {state.name}")
            variables |= {n: Unknown(f"{n} after {state.name}") for n in rule.get("Assign", {})}
        for name in state.fields.get("Assign", {}):
            variables[name.removesuffix(".$")] = Unknown(f"{name} after {state.name}")
        return replace(data, input=output, variables=variables)

    def _waited(
        self, state: State, data: Data, ways: Clauses, before: list[str]
    ) -> tuple[Data, list[str]]:
        data = replace(data, input=self._narrowed(state, data))
        seconds = state.fields.get("Seconds", state.fields.get("SecondsPath"))
        if seconds is None:
            self.notes.append(
                Note(place(state), "waits for a moment, which no stage does; left out")
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
        given = self._narrowed(state, data)
        if state.type == "Pass" and "Result" in state.fields:
            return filled(state.fields["Result"])
        for key in ("Parameters", "Arguments"):
            if key in state.fields:
                return data.template(state.fields[key], state.language, source=given)
        return given

    def _narrowed(self, state: State, data: Data) -> Any:
        path = state.fields.get("InputPath", "$")
        if state.language == "JSONata" or path == "$":
            return data.input
        return {} if path is None else data.path(str(path))

    def _passed(self, state: State, data: Data, result: Any) -> Data:
        """Return the data after a state with a result."""
        if state.language == "JSONata":
            seen = replace(data, result=result)
            output = state.fields.get("Output")
            made = result if output is None else seen.template(output, "JSONata")
            assigned = seen.template(state.fields.get("Assign", {}), "JSONata")
            return replace(data, input=made, variables={**data.variables, **assigned})
        if "ResultSelector" in state.fields:
            result = data.template(state.fields["ResultSelector"], "JSONPath", source=result)
        assigned = data.template(state.fields.get("Assign", {}), "JSONPath", source=result)
        made = placed(data.input, state.fields.get("ResultPath", "$"), result)
        output = state.fields.get("OutputPath", "$")
        made = {} if output is None else data.path(str(output), made)
        return replace(data, input=made, variables={**data.variables, **assigned})

    def _task(
        self, state: State, data: Data, ways: Clauses, before: list[str]
    ) -> tuple[Data, list[str]]:
        request = self._own(state, data)
        step = step_of(state, request)
        if isinstance(step, str):
            self.notes.append(Note(place(state), f"is left out: {step}"))
            self._gated(state)
            return self._passed(state, data, Unknown(f"the result of {state.name}")), before
        self.notes += (Note(f"{place(state)}.{key}", text) for key, text in renamed_by(step))
        if state.resource.startswith("${"):
            text = f"{state.resource} is taken for the ARN of a Lambda function"
            self.notes.append(Note(f"{place(state)}.Resource", text))
        where = "Arguments" if state.language == "JSONata" else "Parameters"
        after = self._added(state, step, where, ways, before)
        result = Place(f"Steps.{self._name(state)}")
        if step["Type"] == "Lambda" and not state.resource.endswith(":lambda:invoke"):
            result = result.below("Payload")
        return self._passed(state, data, result), after

    def _gated(self, state: State) -> None:
        """Ask each run whether it may go on after a state that is left out, and waits for that."""
        if asks(state):
            self.gates.append((place(state), GATE))
            self.conditions[place(state), GATE] = {"Type": "a gate", "Path": place(state)}

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
        elif words["Error"]:
            text = "is left out: the name of an error is letters, digits, dots and underscores"
            self.notes.append(Note(f"{place(state)}.Error", text))
        step = {"Type": "Fail", "Arguments": request}
        return self._added(state, step, "Cause", ways, before)

    def _parallel(
        self, state: State, data: Data, ways: Clauses, before: list[str]
    ) -> tuple[Data, list[str]]:
        given = replace(data, input=self._own(state, data))
        results: list[Any] = []
        last: list[str] = []
        for inner in state.inner:
            result, ends = self.machine(inner, given, ways, before)
            results.append(result)
            last += ends
        return self._passed(state, data, results), list(dict.fromkeys(last)) or before

    def _mapped(
        self, state: State, data: Data, ways: Clauses, before: list[str]
    ) -> tuple[Data, list[str]]:
        passed = self._passed(state, data, Unknown(f"the result of {state.name}"))
        made = self._loop(state, data, ways, before)
        if isinstance(made, str):
            self.notes.append(Note(place(state), f"is left out: {made}"))
            self._gated(state)
            return passed, before
        return passed, made

    def _loop(self, state: State, data: Data, ways: Clauses, before: list[str]) -> list[str] | str:
        """Add the steps of a Map; return the last of them, or why no stage does what it does."""
        given = self._narrowed(state, data)
        call = listing(state, data, given)
        if isinstance(call, str):
            return call
        named = replace(state, name=f"{state.name} objects")
        keys = None if call is None else Place(f"Steps.{self._name(named)}", "Contents[].Key")
        loop = loop_of(state, data, given, keys)
        if isinstance(loop, str):
            return loop
        inner = Reading(names=self.names, layers=self.layers)
        _, last = inner.machine(state.inner[0], loop.data, ways, before)
        if inner.gates:
            return "it waits for somebody for each element"
        looped = for_each(state, loop, inner.steps, [plain(each) for each in inner.deciding()])
        if isinstance(looped, str):
            return looped
        if call is not None:
            self._added(named, call, "ItemReader", ways, before)
        self.inputs |= dict.fromkeys(inputs(loop.items)) | inner.inputs
        self.lists |= dict.fromkeys(inputs(loop.items))
        self.conditions |= inner.conditions
        self.notes += [*inner.notes, *(Note(place(state), text) for text in told(loop, looped))]
        self.steps += [
            {**step, "ForEach": {**looped, "items": plain(loop.items)}} for step in inner.steps
        ]
        return last

    def deciding(self) -> Iterator[dict[str, Any]]:
        """Yield the conditions that decide on steps."""
        taken = {literal for step in self.steps for way in step["Ways"] for literal in way}
        for (choice, number), each in self.conditions.items():
            if any(other == choice and number <= last for other, last in taken):
                yield each

    def _added(
        self, state: State, step: Mapping[str, Any], where: str, ways: Clauses, before: list[str]
    ) -> list[str]:
        """Add a step; return its name, for those that wait for it."""
        self.inputs |= dict.fromkeys(inputs(step))
        known = {
            key: plain(value, lambda layered: self.layers.name(layered, place(state)))
            for key, value in step.items()
        }
        own = {"Name": self._name(state), "Path": place(state), "Field": where}
        self.steps.append({**known, **own, "DependsOn": before, "Ways": ways})
        return [own["Name"]]

    def _name(self, state: State) -> str:
        """Return the name of a state's step; states of branches may have one name."""
        key = (place(state), state.name)
        name = base = state.name.replace(".", "_")
        while name in self.names.values() and key not in self.names:
            name = f"{base} {len(self.names)}"
        return self.names.setdefault(key, name)


def _following(state: State) -> list[str]:
    fields = state.fields
    following = [rule.get("Next") for rule in fields.get("Choices", [])]
    return [str(each) for each in (*following, fields.get("Default"), fields.get("Next")) if each]


def _product(outer: Clauses, inner: Clauses) -> Clauses:
    return frozenset(one | other for one in outer for other in inner)
