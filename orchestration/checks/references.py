"""The rule that a step reads only results that are there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestration.errors import Problem, near
from orchestration.expressions import Item, Parameter, Result, Tree, walk
from orchestration.graph import (
    CONCLUDED,
    LATENCY,
    Call,
    Choose,
    Clock,
    Concluded,
    ForEach,
    Graph,
    Guarded,
    Pages,
    Read,
    Step,
    Workflow,
    all_steps,
    bodies,
    candidates,
    lasting,
    trees,
    visible,
)
from orchestration.refs import Expression, Ref


def outputs_of(step: Step) -> frozenset[str]:
    """The names of a step's outputs."""
    match step:
        case Call(pages=pages) if pages is not None:
            return frozenset(pages.folds)
        case Call():
            waited = step.until.outputs if step.until is not None else {}
            return frozenset([*step.outputs, *waited, *([LATENCY] if step.timed else [])])
        case Read():
            return frozenset(step.outputs)
        case ForEach():
            return frozenset(["items"])
        case Choose():
            return frozenset(step.collect)
        case Concluded():
            return frozenset([*CONCLUDED, *step.kept])
        case Clock():
            return frozenset(["at"])
        case _:
            return frozenset()


def references(workflow: Workflow) -> Iterator[Problem]:
    """Every result, parameter and loop element that is read is there to be read."""
    readers = _Readers(
        {step.name: step for step in all_steps(workflow.graph)},
        frozenset(spec.name for spec in workflow.parameters),
    )
    yield from readers.graph(workflow.graph, None, looping=False)
    top = _Scope(_visible(workflow.graph))
    for problem in readers.tree("outputs", workflow.outputs, top, looping=False):
        yield Problem("outputs", problem.message)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The names that can be read at one place.

    Scopes are linked, not merged: a set of all names for each step takes quadratic time.
    """

    names: frozenset[str]
    around: _Scope | None = None
    hidden: frozenset[str] = frozenset()
    """The names around that can't be read here: those of the step that this is a part of."""

    def __contains__(self, name: str) -> bool:
        if name in self.names:
            return True
        return self.around is not None and name not in self.hidden and name in self.around

    def __iter__(self) -> Iterator[str]:
        yield from self.names
        for name in self.around or ():
            if name not in self.hidden:
                yield name


def _visible(graph: Graph) -> frozenset[str]:
    return frozenset(name for step in graph.steps for name in visible(step))


def _bodies(step: Step) -> Iterator[tuple[Graph, frozenset[str]]]:
    """The graphs inside a step, each with what of the step has run before it."""
    if isinstance(step, Guarded):
        acquired = frozenset([step.acquire.name])
        yield Graph((step.acquire,)), frozenset()
        # The body may have failed anywhere, so the clean-up can't read it.
        yield step.body, acquired
        yield step.cleanup, acquired
    elif isinstance(step, Concluded):
        yield step.body, frozenset()
        yield step.conclusion, frozenset([step.name]) | _visible(step.body)
    else:
        for body in bodies(step):
            yield body, frozenset()


def _folds(call: Call, pages: Pages) -> Iterator[Problem]:
    """Yield the folds of a listing that read something else than the listing."""
    own = [*call.outputs, *pages.folds]
    for name, fold in pages.folds.items():
        for node in walk(fold.then):
            match node:
                case Result(call.name, output) if output in own:
                    pass
                case Result() | Parameter() | Item() | Ref():
                    message = f"the fold {name!r} reads {node!r}; it may read {', '.join(own)}"
                    yield Problem("", message, step=call.name)
                case _:
                    pass


def _where(itself: bool) -> str:
    if itself:
        return "which is itself"
    return "which need not have run by then: it is in a branch, a loop, or what this is part of"


@dataclass(frozen=True, slots=True)
class _Readers:
    steps: dict[str, Step]
    parameters: frozenset[str]

    def graph(self, graph: Graph, outer: _Scope | None, *, looping: bool) -> Iterator[Problem]:
        seen = _Scope(_visible(graph), outer)
        for step in graph.steps:
            yield from self._own(step, seen, looping=looping)
            inside = looping or isinstance(step, ForEach)
            for body, before in _bodies(step):
                # A step is over, and can be read, after its bodies; so are its other branches.
                yield from self.graph(body, _Scope(before, seen, visible(step)), looping=inside)

    def _own(self, step: Step, seen: _Scope, *, looping: bool) -> Iterator[Problem]:
        others = _Scope(frozenset(), seen, visible(step))
        if isinstance(step, ForEach):
            # A loop's list is read outside of it, what it collects inside.
            yield from self.tree(step.name, step.items, others, looping=looping)
            inner = _Scope(_visible(step.body), others)
            yield from self.tree(step.name, step.collect, inner, looping=True)
        elif isinstance(step, Choose):
            yield from self.tree(step.name, step.condition, others, looping=looping)
            for way, collected in ((step.then, step.collect), (step.otherwise, step.absent)):
                inner = _Scope(_visible(way), others)
                yield from self.tree(step.name, collected, inner, looping=looping)
        elif isinstance(step, Call):
            yield from self._call(step, others, looping=looping)
        elif isinstance(step, Concluded):
            yield from self._kept(step, others)
        else:
            for tree in trees(step):
                yield from self.tree(step.name, tree, others, looping=looping)
        for name in step.after:
            if name not in others:
                yield from self._waits(step.name, name, others)

    def _kept(self, step: Concluded, others: _Scope) -> Iterator[Problem]:
        inner = _Scope(frozenset(each.name for each in lasting(step.body)), others)
        for kept in step.kept.values():
            yield from self.tree(step.name, kept.value, inner, looping=False)
            for name in kept.steps:
                if name not in inner:
                    yield from self._waits(step.name, name, inner)

    def _waits(self, where: str, name: str, seen: _Scope) -> Iterator[Problem]:
        if name in self.steps:
            yield Problem("", f"waits for {name!r}, {_where(name == where)}", step=where)
        else:
            yield Problem("", f"waits for the unknown step {name!r}{near(name, seen)}", step=where)

    def _call(self, call: Call, others: _Scope, *, looping: bool) -> Iterator[Problem]:
        for step in candidates(call):
            yield from self._candidate(step, others, looping=looping)
            if step.fallback is not None:
                yield from self.tree(step.name, step.fallback.label, others, looping=looping)
        if call.failure is not None:
            yield from self.tree(call.name, call.failure.remedy, others, looping=looping)
        if call.within is not None:
            yield from self.tree(call.name, call.within.since, others, looping=looping)
        if call.pages is not None:
            yield from _folds(call, call.pages)

    def _candidate(self, step: Call, others: _Scope, *, looping: bool) -> Iterator[Problem]:
        yield from self.tree(step.name, step.operation.request, others, looping=looping)
        yield from self.tree(step.name, step.operation.assumes, others, looping=looping)
        if step.until is None:
            return
        # What the call itself gave is known by then; what the last poll gives is not.
        own = _Scope(frozenset([step.name]), others)
        stop, person = step.until.stop, step.until.person
        asked = [step.until.poll, *([stop] if stop is not None else [])]
        if person is not None:
            asked.append(person.token)
            yield from self.tree(step.name, person.question, others, looping=looping)
        for operation in asked:
            yield from self.tree(step.name, operation.request, own, looping=looping)
            yield from self.tree(step.name, operation.assumes, own, looping=looping)
            for node in walk(operation.request):
                if (
                    isinstance(node, Result)
                    and node.step == step.name
                    and node.output in step.until.outputs
                ):
                    message = f"polls with its output {node.output!r}, known only afterwards"
                    yield Problem("", message, step=step.name)

    def tree(self, where: str, tree: Tree, seen: _Scope, *, looping: bool) -> Iterator[Problem]:
        for node in walk(tree):
            yield from self._node(where, node, seen, looping=looping)

    def _node(
        self, where: str, node: Expression[object], seen: _Scope, *, looping: bool
    ) -> Iterator[Problem]:
        match node:
            case Result(step, output):
                yield from self._result(where, step, output, seen)
            case Parameter(name) if name not in self.parameters:
                message = f"there is no parameter {name!r}{near(name, self.parameters)}"
                yield Problem("", message, step=where)
            case Item() if not looping:
                yield Problem("", "reads a loop's element outside of any loop", step=where)
            case Ref(stage, output):
                yield Problem("", f"still refers to the stage output {stage}.{output}", step=where)
            case _:
                pass

    def _result(self, where: str, step: str, output: str, seen: _Scope) -> Iterator[Problem]:
        if step not in seen:
            if step in self.steps:
                yield Problem("", f"reads the step {step!r}, {_where(step == where)}", step=where)
            else:
                message = f"reads the step {step!r} that does not exist{near(step, seen)}"
                yield Problem("", message, step=where)
        elif output not in (given := outputs_of(self.steps[step])):
            message = f"reads {step}.{output}, which it does not give{near(output, given)}"
            yield Problem("", message, step=where)
