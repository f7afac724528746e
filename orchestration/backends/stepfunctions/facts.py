"""What is known of a whole workflow before any state is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from orchestration.backends.jsonata import Kind
from orchestration.backends.stepfunctions.names import Facts
from orchestration.expressions import Json, Result, Tree, walk
from orchestration.graph import (
    Call,
    ForEach,
    Graph,
    Output,
    Read,
    Step,
    Workflow,
    all_steps,
    trees,
    visible,
)

_KINDS: Final[Mapping[str, Kind]] = {
    "any": "any",
    "number": "number",
    "string": "string",
    "list": "array",
}


def facts(workflow: Workflow) -> Facts:
    """The facts about a workflow."""
    return Facts(
        kinds=dict(_kinds(workflow.graph)),
        parameters={p.name: p.type for p in workflow.parameters},
        readers=_readers(workflow),
        rows=frozenset(_rows(workflow.graph)),
    )


def exported(steps: tuple[Step, ...], known: Facts) -> tuple[str, ...]:
    """The steps among some, and inside of them, whose results are read by others."""
    inside = {step.name for step in all_steps(Graph(steps))}
    seen = {name for step in steps for name in visible(step)}
    ordered = [step.name for step in all_steps(Graph(steps)) if step.name in seen]
    return tuple(name for name in ordered if known.readers.get(name, frozenset()) - inside)


def rows(items: Tree, known: Facts) -> bool:
    """Whether a list is sure to hold objects and nothing else."""
    if isinstance(items, Result):
        return (items.step, items.output) in known.rows
    if isinstance(items, Sequence) and not isinstance(items, str):
        return all(isinstance(item, Mapping) for item in items)
    return False


def _rows(graph: Graph) -> Iterator[tuple[str, str]]:
    for step in all_steps(graph):
        match step:
            case Call() | Read():
                for name, output in _outputs(step).items():
                    # A default or a recovery is a value of its own.
                    if output.columns and not _others(step, name, output):
                        yield step.name, name
            case ForEach():
                yield step.name, "items"
            case _:
                pass


def _readers(workflow: Workflow) -> dict[str, frozenset[str]]:
    readers: defaultdict[str, set[str]] = defaultdict(set)

    def note(tree: Tree, reader: str) -> None:
        for node in walk(tree):
            if isinstance(node, Result):
                readers[node.step].add(reader)

    for step in all_steps(workflow.graph):
        for tree in trees(step):
            note(tree, step.name)
    note(workflow.outputs, "")
    return {name: frozenset(found) for name, found in readers.items()}


def _kinds(graph: Graph) -> Iterator[tuple[tuple[str, str], Kind]]:
    for step in all_steps(graph):
        match step:
            case Call() | Read():
                for name, output in _outputs(step).items():
                    kind: Kind = "array" if output.columns else _KINDS[output.kind]
                    others = _others(step, name, output)
                    same = all(_kind_of(other) == kind for other in others)
                    yield (step.name, name), kind if same else "any"
            case ForEach():
                yield (step.name, "items"), "array"
            case _:
                pass


def _outputs(step: Call | Read) -> Mapping[str, Output]:
    if isinstance(step, Read) or step.until is None:
        return step.outputs
    return {**step.outputs, **step.until.outputs}


def _others(step: Call | Read, name: str, output: Output) -> list[Json]:
    """What an output may be instead of what the response has."""
    recoveries = step.recoveries if isinstance(step, Call) else ()
    found = [r.outputs[name] for r in recoveries if name in r.outputs]
    if output.optional:
        found.append(cast(Json, output.default))
    # An empty list is a list of anything.
    return [other for other in found if other not in ((), [])]


def _kind_of(value: Json) -> Kind:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "any" if value is None or isinstance(value, Mapping) else "array"
