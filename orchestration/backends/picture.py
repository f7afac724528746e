"""A workflow as a picture: Mermaid for pages, DOT for Graphviz.

Stages are boxes, and steps have a shape for their kind. The inside of a loop, a guard or a branch
gets its own box. An edge means "waits for".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, assert_never

from orchestration.graph import (
    Call,
    Choose,
    Clock,
    Concluded,
    Fail,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    Read,
    Require,
    Step,
    Wait,
    Workflow,
    candidates,
    ordered,
    upstream,
)

_Shape: TypeAlias = Literal["call", "job", "read", "choose", "wait", "fail"]

_MERMAID_SHAPES: Final[Mapping[_Shape, tuple[str, str]]] = {
    "call": ("[", "]"),
    "job": ("[[", "]]"),
    "read": ("[(", ")]"),
    "choose": ("{", "}"),
    "wait": ("([", "])"),
    "fail": ("{{", "}}"),
}
_DOT_SHAPES: Final[Mapping[_Shape, str]] = {
    "call": "box",
    "job": "box3d",
    "read": "cylinder",
    "choose": "diamond",
    "wait": "ellipse",
    "fail": "octagon",
}


@dataclass(frozen=True, slots=True)
class _Node:
    id: str
    lines: tuple[str, ...]
    shape: _Shape


@dataclass(frozen=True, slots=True)
class _Box:
    id: str
    label: str
    children: tuple[_Node | _Box, ...]
    dashed: bool = False

    @property
    def anchor(self) -> str:
        """A node inside: DOT draws edges between nodes only, and cuts them at a box."""
        inner = self.children[0]
        return inner.id if isinstance(inner, _Node) else inner.anchor


@dataclass(frozen=True, slots=True)
class _Edge:
    source: str
    target: str
    label: str = ""


def mermaid(workflow: Workflow) -> str:
    """Return the workflow as a Mermaid flowchart."""
    drawing = _Drawing()
    children = drawing.graph(workflow.graph, "")
    lines = ["---", f"title: {json.dumps(workflow.name)}", "---", "flowchart TD"]
    lines += _mermaid_children(children, "  ")
    for edge in drawing.edges:
        label = f"|{_mermaid_text(edge.label)}| " if edge.label else ""
        lines.append(f"  {edge.source} --> {label}{edge.target}")
    return "\n".join(lines) + "\n"


def dot(workflow: Workflow) -> str:
    """Return the workflow as a Graphviz graph."""
    drawing = _Drawing()
    children = drawing.graph(workflow.graph, "")
    boxes = dict(_boxes(children))
    lines = [
        f"digraph {_dot_text(workflow.name)} {{",
        "  compound=true",
        f"  label={_dot_text(workflow.name)}",
        '  node [fontname="sans-serif" fontsize=11]',
        '  edge [fontname="sans-serif" fontsize=9]',
        *_dot_children(children, "  "),
        *(f"  {_dot_edge(edge, boxes)}" for edge in drawing.edges),
        "}",
    ]
    return "\n".join(lines) + "\n"


@dataclass(slots=True)
class _Drawing:
    """Draws nodes and boxes of graphs, and collects the edges between them."""

    edges: list[_Edge] = field(default_factory=list)
    stages: Counter[str] = field(default_factory=Counter)
    """The number of boxes of each stage so far: a gate or a guard can split one."""

    def graph(self, graph: Graph, stage: str) -> tuple[_Node | _Box, ...]:
        """Draw the steps of a graph; steps of another stage get their own box."""
        steps = {step.name: step for step in ordered(graph)}
        for name, sources in _reduced(graph).items():
            for source in (steps[other] for other in sorted(sources)):
                label = "yes" if isinstance(source, Require) else ""
                self.edges.append(_Edge(_leave(source), _enter(steps[name]), label))
        concluded = [_stage(step) for step in graph.steps if isinstance(step, Concluded)]
        drawn: dict[str, list[_Node | _Box]] = {}
        for step in steps.values():
            drawn.setdefault(_stage(step), []).extend(self._step(step))
        return tuple(
            child
            for name, inner in drawn.items()
            for child in (
                inner if name in (stage, *concluded) else [self._stage_box(name, tuple(inner))]
            )
        )

    def _stage_box(self, stage: str, children: tuple[_Node | _Box, ...]) -> _Box:
        self.stages[stage] += 1
        number = self.stages[stage]
        return _Box(_id("stage", stage if number == 1 else f"{stage}.{number}"), stage, children)

    def _step(  # noqa: C901 - one arm for each kind of step
        self, step: Step
    ) -> tuple[_Node | _Box, ...]:
        match step:
            case Call(until=until):
                shape: _Shape = "call" if until is None else "job"
                return (_Node(_id("step", step.name), _called(step), shape),)
            case Read():
                return (_Node(_id("step", step.name), (step.name, "read JSON from S3"), "read"),)
            case Clock():
                return (_Node(_id("step", step.name), (step.name, "read the clock"), "read"),)
            case Wait():
                return (_Node(_id("step", step.name), (step.name, "wait"), "wait"),)
            case Fail():
                return (_Node(_id("step", step.name), (step.name, f"fail: {step.error}"), "fail"),)
            case Require():
                lines = (step.name, f"else fail: {step.error}")
                return (_Node(_id("step", step.name), lines, "choose"),)
            case Choose():
                return self._choose(step)
            case ForEach():
                label = f"{step.name}: for each, at most {step.max_concurrency} at a time"
                return self._box(step, label, {"": step.body})
            case Parallel():
                branches = {f"branch {n}": b for n, b in enumerate(step.branches, start=1)}
                return self._box(step, f"{step.name}: in parallel", branches)
            case Guarded():
                return self._guarded(step)
            case Concluded():
                return self._concluded(step)
            case _:
                assert_never(step)

    def _choose(self, step: Choose) -> tuple[_Node | _Box, ...]:
        node = _Node(_id("step", step.name), (step.name,), "choose")
        children: list[_Node | _Box] = [node]
        for label, branch in (("yes", step.then), ("no", step.otherwise)):
            self.edges += [_Edge(node.id, _enter(inner), label) for inner in _roots(branch)]
            children += self.graph(branch, _stage(step))
        return (_Box(_id("box", step.name), step.name, tuple(children), dashed=True),)

    def _guarded(self, step: Guarded) -> tuple[_Node | _Box, ...]:
        stage = _stage(step)
        acquire = self.graph(Graph((step.acquire,)), stage)
        body, cleanup = self.graph(step.body, stage), self.graph(step.cleanup, stage)
        last = _leaves(step.body) or [step.acquire]
        for inner in _roots(step.body):
            self.edges.append(_Edge(_leave(step.acquire), _enter(inner)))
        for inner in _roots(step.cleanup):
            self.edges += [_Edge(_leave(before), _enter(inner), "always") for before in last]
        box = _Box(_id("box", f"{step.name}.cleanup"), "always, at the end", cleanup, dashed=True)
        children = (*acquire, *body, *((box,) if cleanup else ()))
        return (
            _Box(_id("box", step.name), f"{step.name}: always released", children, dashed=True),
        )

    def _concluded(self, step: Concluded) -> tuple[_Node | _Box, ...]:
        body, conclusion = self.graph(step.body, ""), self.graph(step.conclusion, "")
        for inner in _roots(step.conclusion):
            self.edges += [
                _Edge(_leave(before), _enter(inner), "at the end") for before in _leaves(step.body)
            ]
        label = "after the end, whether it succeeded or failed"
        return (*body, _Box(_id("box", step.name), label, conclusion, dashed=True))

    def _box(self, step: Step, label: str, graphs: Mapping[str, Graph]) -> tuple[_Node | _Box, ...]:
        children: list[_Node | _Box] = []
        for number, (title, graph) in enumerate(graphs.items()):
            inner = self.graph(graph, _stage(step))
            if title and inner:
                children.append(
                    _Box(_id("box", f"{step.name}.{number}"), title, inner, dashed=True)
                )
            else:
                children += inner
        if not children:
            return (_Node(_id("box", step.name), (label,), "wait"),)
        return (_Box(_id("box", step.name), label, tuple(children), dashed=True),)


def _stage(step: Step) -> str:
    return step.name.partition(".")[0]


def _id(kind: str, name: str) -> str:
    # A prefix, since "end" and the like are words of Mermaid.
    return f"{kind}_{name.replace('.', '__')}"


def _reduced(graph: Graph) -> dict[str, set[str]]:
    """Return what each step waits for, without what those wait for themselves."""
    before = upstream(graph)
    whole: dict[str, set[str]] = {}
    for step in ordered(graph):
        whole[step.name] = set(before[step.name]).union(*(whole[n] for n in before[step.name]))
    return {
        name: set(sources).difference(*(whole[source] for source in sources))
        for name, sources in before.items()
    }


def _called(step: Call) -> tuple[str, ...]:
    lines = (step.name, f"{step.operation.service}:{step.operation.name}")
    if step.fallback is None:
        return lines
    labels = (candidate.fallback.label for candidate in candidates(step) if candidate.fallback)
    # A label that is an expression is known only in a run.
    first, *others = (label if isinstance(label, str) else "other machines" for label in labels)
    return (*lines, first, *(f"else {label}" for label in others))


def _enter(step: Step) -> str:
    boxed = isinstance(step, ForEach | Parallel | Guarded)
    return _id("box" if boxed else "step", step.name)


def _leave(step: Step) -> str:
    if isinstance(step, Choose):
        return _id("box", step.name)
    return _enter(step)


def _roots(graph: Graph) -> list[Step]:
    before = upstream(graph)
    return [step for step in graph.steps if not before[step.name]]


def _leaves(graph: Graph) -> list[Step]:
    read = {name for names in upstream(graph).values() for name in names}
    return [step for step in graph.steps if step.name not in read]


def _mermaid_children(children: tuple[_Node | _Box, ...], indent: str) -> Iterator[str]:
    for child in children:
        if isinstance(child, _Node):
            opening, closing = _MERMAID_SHAPES[child.shape]
            label = "<br/>".join(_mermaid_text(line) for line in child.lines)
            yield f'{indent}{child.id}{opening}"{label}"{closing}'
        else:
            yield f'{indent}subgraph {child.id} ["{_mermaid_text(child.label)}"]'
            yield from _mermaid_children(child.children, indent + "  ")
            yield f"{indent}end"
            if child.dashed:
                yield f"{indent}style {child.id} stroke-dasharray: 4 4"


def _mermaid_text(text: str) -> str:
    """Escape text inside quotes: Mermaid's entities, by code point, for what it reads as markup."""
    return "".join(c if c.isalnum() or c in " _-.,:/()" else f"#{ord(c)};" for c in text)


def _dot_children(children: tuple[_Node | _Box, ...], indent: str) -> Iterator[str]:
    for child in children:
        if isinstance(child, _Node):
            label = _dot_text("\n".join(child.lines))
            yield f"{indent}{child.id} [label={label} shape={_DOT_SHAPES[child.shape]}]"
        else:
            yield f"{indent}subgraph cluster_{child.id} {{"
            yield f"{indent}  label={_dot_text(child.label)}"
            yield f"{indent}  style={'dashed' if child.dashed else 'rounded'}"
            yield from _dot_children(child.children, indent + "  ")
            yield f"{indent}}}"


def _dot_text(text: str) -> str:
    # Graphviz reads HTML's entities in labels, and backslash escapes of its own (\\N, \\G, \\l).
    escaped = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n") + '"'


def _dot_edge(edge: _Edge, boxes: Mapping[str, _Box]) -> str:
    attributes = [f"label={_dot_text(edge.label)}"] if edge.label else []
    ends = []
    for end, attribute in ((edge.source, "ltail"), (edge.target, "lhead")):
        if end in boxes:
            attributes.append(f"{attribute}=cluster_{end}")
        ends.append(boxes[end].anchor if end in boxes else end)
    shown = f" [{' '.join(attributes)}]" if attributes else ""
    return f"{ends[0]} -> {ends[1]}{shown}"


def _boxes(children: tuple[_Node | _Box, ...]) -> Iterator[tuple[str, _Box]]:
    for child in children:
        if isinstance(child, _Box):
            yield child.id, child
            yield from _boxes(child.children)
