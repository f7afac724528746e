"""A state machine as a pipeline, and what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestration.errors import PipelineError, Problem
from orchestration.importing.imported import Imported, Note
from orchestration.importing.state_machines.choices import compared
from orchestration.importing.state_machines.data import Data, Place, inputs, plain
from orchestration.importing.state_machines.flow import Clauses, Literal_
from orchestration.importing.state_machines.reading import Reading
from orchestration.importing.steps.building import Source, built
from orchestration.importing.steps.step import Branch, Step, pipeline_name, renamed, stage_names
from orchestration.lint import machines


def from_state_machine(
    definition: Mapping[str, Any], *, name: str | None = None, file: str = "imported"
) -> Imported:
    """Return the pipeline that does what a state machine does, and notes on what it does otherwise.

    Raises :class:`~orchestration.errors.PipelineError` where no pipeline can be made of it.
    """
    called = name or pipeline_name(file.removesuffix(".asl"))
    machine = machines.read(_usual(definition))
    if definition.get("StartAt") not in machine.states:
        raise PipelineError([Problem("StartAt", "names no state")])
    reading = Reading()
    for key in definition.keys() - {"StartAt", "States", "Comment", "QueryLanguage", "Version"}:
        reading.notes.append(Note(str(key), "is left out"))
    reading.machine(machine, Data(Place("Parameters")), frozenset([frozenset()]), ())
    conditions = {key: plain(each) for key, each in reading.conditions.items()}
    for each in reading.conditions.values():
        for place in inputs(each):
            reading.inputs[place] = None
    if not reading.steps:
        why = [Problem(note.path, note.message) for note in reading.notes]
        raise PipelineError([Problem("States", "none of them does what a stage does"), *why])
    names = renamed(list(reading.inputs))
    reading.notes += _renamed(names)
    parameters: dict[str, dict[str, Any]] = {
        own: {"type": "array"} if theirs in reading.lists else {} for theirs, own in names.items()
    }
    for each in conditions.values():
        _typed(each, names, parameters)
    stages = stage_names([step["Name"] for step in reading.steps], called)
    for given in reading.steps:
        _send_known(given, reading)
    steps = [_step(given, stages, conditions) for given in reading.steps]
    return built(Source(called, steps, names, parameters, reading.notes))


def _usual(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition whose resources are those of the usual partition."""
    text = json.dumps(definition)
    usual: dict[str, Any] = json.loads(
        text.replace('"arn:${AWS::Partition}:states:::', '"arn:aws:states:::')
    )
    return usual


def _renamed(names: Mapping[str, str]) -> Iterator[Note]:
    """Yield what of the execution's input has another name as a parameter."""
    for theirs, own in names.items():
        if theirs != own and not theirs.startswith("${"):
            yield Note(f"Input.{theirs}", f"is the parameter {own} here")


def _send_known(step: dict[str, Any], reading: Reading) -> None:
    """Send a function what is known of its input, where it is sent all of that."""
    request = step["Arguments"]
    if step["Type"] != "Lambda" or (isinstance(request, dict) and "Get" not in request):
        return
    sent: dict[str, Any] = {}
    text = "what it is sent is not known before a run: it is sent nothing"
    if request == {"Get": "all of Parameters"}:
        known = [place for place in reading.inputs if place.isidentifier()]
        sent = {place: {"Get": f"Parameters.{place}"} for place in known}
        text = f"sends only {', '.join(known) or 'nothing'} of the execution's input"
    for layer, name in reading.layers.named:
        if request == {"Get": name}:
            laid = plain(layer.known())
            known = [place for place in reading.inputs if place.isidentifier() and layer.is_input]
            sent = {place: {"Get": f"Parameters.{place}"} for place in known} | laid
            text = f"sends only {', '.join(sent) or 'nothing'} of its input"
    if isinstance(request, dict):
        step["Arguments"] = sent
        reading.notes.append(
            Note(f"{step['Path']}.{step['Field']}", f"{text}; name what else the function reads")
        )


def _step(
    given: Mapping[str, Any],
    stages: Mapping[str, str],
    conditions: Mapping[Literal_, dict[str, Any]],
) -> Step:
    return Step(
        given["Name"],
        stages[given["Name"]],
        given["Type"],
        given["Path"],
        given,
        _branches(given["Ways"], conditions),
        given["Field"],
        keeps_names=True,
    )


def _branches(ways: Clauses, conditions: Mapping[Literal_, dict[str, Any]]) -> tuple[Branch, ...]:
    """Return the condition under which one of the ways is taken."""
    if not ways or frozenset() in ways:
        return ()
    every = [
        [test for literal in sorted(clause) for test in _taken(literal, conditions)]
        for clause in sorted(ways, key=sorted)
    ]
    choices = sorted({choice for clause in ways for choice, _ in clause})
    place = f"{choices[0]}.Choices"
    tests = (
        every[0] if len(every) == 1 else [{"Type": "Or", "Conditions": [_and(e) for e in every]}]
    )
    return (Branch(choices[0], tests, holds=True, after=(), path=place, implied=True),)


def _taken(
    literal: Literal_, conditions: Mapping[Literal_, dict[str, Any]]
) -> Sequence[dict[str, Any]]:
    """Return what holds where a rule is taken: none before it does, and it does."""
    choice, number = literal
    earlier = [{"Type": "Not", "Condition": conditions[choice, n]} for n in range(number)]
    own = conditions.get((choice, number))
    return [*earlier, *([] if own is None else [own])]


def _and(tests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return tests[0] if len(tests) == 1 else {"Type": "And", "Conditions": list(tests)}


def _typed(
    condition: Mapping[str, Any], names: Mapping[str, str], parameters: dict[str, dict[str, Any]]
) -> None:
    """Note the types of the parameters that conditions compare with literals."""
    for place, literal in compared(condition):
        own = names.get(place.removeprefix("Parameters."))
        if own is not None:
            parameters[own]["type"] = "boolean" if isinstance(literal, bool) else "number"
