"""State machines as a tree: those inside of Map and Parallel states hang on these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Language = Literal["JSONPath", "JSONata"]


@dataclass(slots=True, eq=False)
class Machine:
    """A state machine: the definition's own, or one inside of a state."""

    fields: Mapping[str, Any]
    path: str
    outer: State | None = None
    language: Language = "JSONPath"
    """The one of its states that name none."""
    states: dict[str, State] = field(default_factory=dict)

    @property
    def is_distributed(self) -> bool:
        """True if its executions are executions of their own."""
        return self.outer is not None and self.outer.is_distributed

    @property
    def is_express(self) -> bool:
        """True if a distributed Map runs it as Express executions."""
        if self.outer is None:
            return False
        if not self.is_distributed:
            return self.outer.machine.is_express
        config = self.fields.get("ProcessorConfig")
        return isinstance(config, Mapping) and config.get("ExecutionType") == "EXPRESS"


@dataclass(slots=True, eq=False)
class State:
    """A state, and the state machines inside of it."""

    name: str
    fields: Mapping[str, Any]
    path: str
    language: Language
    machine: Machine
    inner: list[Machine] = field(default_factory=list)

    @property
    def type(self) -> str:
        """The type of the state, empty if it has none."""
        kind = self.fields.get("Type")
        return kind if isinstance(kind, str) else ""

    @property
    def resource(self) -> str:
        """The resource of a Task, empty if it has none."""
        resource = self.fields.get("Resource")
        return resource if isinstance(resource, str) else ""

    @property
    def is_distributed(self) -> bool:
        """True for a Map whose iterations are executions of their own."""
        processor = self.fields.get("ItemProcessor")
        config = processor.get("ProcessorConfig") if isinstance(processor, Mapping) else None
        return isinstance(config, Mapping) and config.get("Mode") == "DISTRIBUTED"

    def objects(self, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the objects in a list of the state, each with its path."""
        values = self.fields.get(name)
        for index, value in enumerate(values if isinstance(values, list) else []):
            if isinstance(value, Mapping):
                yield f"{self.path}/{name}/{index}", value


def read(definition: Mapping[str, Any]) -> Machine:
    """Return the tree of a definition; what is not an object in it is left out."""
    return _machine(definition, "", None, _language(definition, "JSONPath"))


def machines(machine: Machine) -> Iterator[Machine]:
    """Yield a state machine and all that are inside of it."""
    yield machine
    for state in machine.states.values():
        for inner in state.inner:
            yield from machines(inner)


def pointer(name: str) -> str:
    """Return a key as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _language(fields: Mapping[str, Any], outer: Language) -> Language:
    language = fields.get("QueryLanguage")
    return language if language in ("JSONPath", "JSONata") else outer


def _machine(
    fields: Mapping[str, Any], path: str, outer: State | None, language: Language
) -> Machine:
    machine = Machine(fields, path, outer, language)
    states = fields.get("States")
    for name, value in states.items() if isinstance(states, Mapping) else ():
        if isinstance(value, Mapping):
            where = f"{path}/States/{pointer(str(name))}"
            state = State(str(name), value, where, _language(value, language), machine)
            machine.states[state.name] = state
            for below, inner in _inside(state):
                state.inner.append(_machine(inner, below, state, language))
    return machine


def _inside(state: State) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if state.type == "Parallel":
        yield from state.objects("Branches")
    for key in ("ItemProcessor", "Iterator") if state.type == "Map" else ():
        inner = state.fields.get(key)
        if isinstance(inner, Mapping):
            yield f"{state.path}/{key}", inner
