"""Facts about a whole workflow, collected before any state is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from orchestration.backends.jsonata import Kind
from orchestration.backends.stepfunctions.names import Facts
from orchestration.expressions import (
    All,
    Any,
    Apply,
    Compare,
    Field,
    Function,
    Item,
    Join,
    Json,
    Not,
    Parameter,
    Result,
    Run,
    RunAttempt,
    Tree,
    walk,
)
from orchestration.graph import (
    LATENCY,
    Call,
    Clock,
    Concluded,
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
from orchestration.refs import Expression

_KINDS: Final[Mapping[str, Kind]] = {
    "any": "any",
    "number": "number",
    "string": "string",
    "list": "array",
    "object": "object",
}


def facts(workflow: Workflow) -> Facts:
    """Return the facts about a workflow."""
    kinds = dict(_kinds(workflow.graph))
    parameters: dict[str, Kind] = {p.name: p.type for p in workflow.parameters}
    ends = [step for step in workflow.graph.steps if isinstance(step, Concluded)]
    kept = [each for end in ends for each in end.kept.values()]
    return Facts(
        kinds=kinds,
        parameters=parameters,
        readers=_readers(workflow),
        rows=dict(_rows(workflow.graph, kinds, parameters)),
        integrations=workflow.integrations,
        kept=frozenset(step for each in kept for step in _read(each.value)),
        marks=frozenset(step for each in kept for step in each.steps),
    )


_APPLIED: Final[Mapping[Function, Kind]] = {
    Function.COUNT: "number",
    Function.COUNT_FILES: "number",
    Function.SUM: "number",
    Function.LARGEST: "number",
    Function.NUMBERED: "array",
    Function.WHERE: "array",
    Function.PICKED: "array",
    Function.TOP: "array",
    Function.CONTAINS: "boolean",
    Function.SAME_CONTENT: "boolean",
    Function.COLUMN: "array",
    Function.MISFITS: "string",
    Function.FIRST_OF: "any",
}
"""The kinds of what functions give, but for those that give text."""


def exported(steps: tuple[Step, ...], known: Facts) -> tuple[str, ...]:
    """Return the steps among some, and inside of them, whose results are read by others."""
    inside = {step.name for step in all_steps(Graph(steps))}
    seen = {name for step in steps for name in visible(step)}
    ordered = [step.name for step in all_steps(Graph(steps)) if step.name in seen]
    return tuple(name for name in ordered if known.readers.get(name, frozenset()) - inside)


def row_fields(items: Tree, known: Facts) -> Mapping[str, Kind] | None:
    """Return the fields that each object in a list is sure to have; ``None``: not all objects."""
    if isinstance(items, Result):
        return known.rows.get((items.step, items.output))
    if isinstance(items, Sequence) and not isinstance(items, str):
        rows = [item for item in items if isinstance(item, Mapping)]
        if len(rows) == len(items):
            return _shared([{name: _constant_kind(v) for name, v in row.items()} for row in rows])
    return None


def _shared(rows: Sequence[Mapping[str, Kind]]) -> Mapping[str, Kind]:
    """Return the fields that all rows have, of one kind in all of them."""
    first = rows[0] if rows else {}
    return {n: kind for n, kind in first.items() if all(row.get(n) == kind for row in rows)}


def _rows(
    graph: Graph, kinds: Mapping[tuple[str, str], Kind], parameters: Mapping[str, Kind]
) -> Iterator[tuple[tuple[str, str], Mapping[str, Kind]]]:
    lists: dict[tuple[str, str], Mapping[str, Kind]] = {}
    for step in all_steps(graph):
        match step:
            case Call() | Read():
                for name, output in _outputs(step).items():
                    # A default or a recovery is a value of its own.
                    if output.columns and not _others(step, name, output):
                        texts: dict[str, Kind] = dict.fromkeys(output.texts, "string")
                        numbers: dict[str, Kind] = dict.fromkeys(output.numbers, "number")
                        lists[step.name, name] = {**texts, **numbers}
                        yield (step.name, name), {**texts, **numbers}
            case ForEach(items=items):
                own = lists.get((items.step, items.output)) if isinstance(items, Result) else None
                fields = {
                    n: (own or {}).get(value.key, "any")
                    if isinstance(value, Field) and value.of == Item()
                    else _kind(value, kinds, parameters)
                    for n, value in step.collect.items()
                }
                yield (step.name, "items"), {n: k for n, k in fields.items() if k != "any"}
            case _:
                pass


def kind(value: Tree, known: Facts) -> Kind:
    """Return the kind that a tree is sure to have in a run."""
    return _kind(value, known.kinds, known.parameters)


def _kind(
    value: Tree, kinds: Mapping[tuple[str, str], Kind], parameters: Mapping[str, Kind]
) -> Kind:
    match value:
        case Result(step, output):
            return kinds.get((step, output), "any")
        case Parameter(name):
            return parameters.get(name, "any")
        case Run() | RunAttempt() | Join():
            return "string"
        case Apply(function, _):
            return _APPLIED.get(function, "string")
        case Compare() | All() | Any() | Not():
            return "boolean"
        case Expression():
            return "any"
        case _:
            return _constant_kind(value)


def _read(tree: Tree) -> Iterator[str]:
    """Yield the steps whose results a tree reads."""
    return (node.step for node in walk(tree) if isinstance(node, Result))


def _readers(workflow: Workflow) -> dict[str, frozenset[str]]:
    readers: defaultdict[str, set[str]] = defaultdict(set)

    def note(tree: Tree, reader: str) -> None:
        for step in _read(tree):
            readers[step].add(reader)

    for step in all_steps(workflow.graph):
        for tree in trees(step):
            note(tree, step.name)
    note(workflow.outputs, "")
    return {name: frozenset(names) for name, names in readers.items()}


def _kinds(graph: Graph) -> Iterator[tuple[tuple[str, str], Kind]]:
    for step in all_steps(graph):
        match step:
            case Call() | Read():
                if isinstance(step, Call) and step.pages is not None:
                    for name, fold in step.pages.folds.items():
                        yield (step.name, name), _constant_kind(fold.start)
                for name, output in _outputs(step).items():
                    kind: Kind = "array" if output.columns else _KINDS[output.kind]
                    if output.not_finite == "null":
                        kind = "any"
                    others = _others(step, name, output)
                    same = all(_constant_kind(other) == kind for other in others)
                    yield (step.name, name), kind if same else "any"
                if isinstance(step, Call) and step.timed:
                    yield (step.name, LATENCY), "number"
            case ForEach() | Clock() | Concluded():
                yield from (((step.name, name), kind) for name, kind in _own_kinds(step))
            case _:
                pass


def _own_kinds(step: ForEach | Clock | Concluded) -> Iterator[tuple[str, Kind]]:
    match step:
        case ForEach():
            yield "items", "array"
        case Clock():
            yield "at", "number"
        case Concluded():
            yield "attempt", "number"
            for name in ("state", "error", "cause"):
                yield name, "string"


def _outputs(step: Call | Read) -> Mapping[str, Output]:
    if isinstance(step, Read) or step.until is None:
        return step.outputs
    return {**step.outputs, **step.until.outputs}


def _others(step: Call | Read, name: str, output: Output) -> list[Json]:
    """Return what an output may be instead of what the response has."""
    recoveries = step.recoveries if isinstance(step, Call) else ()
    others = [r.outputs[name] for r in recoveries if name in r.outputs]
    if output.optional:
        others.append(cast(Json, output.default))
    # An empty list is a list of anything.
    return [other for other in others if other not in ((), [])]


def _constant_kind(value: Tree) -> Kind:
    """Return the kind of a value that is known before the run."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, Sequence) else "any"
