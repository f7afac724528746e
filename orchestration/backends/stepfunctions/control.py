"""Control flow as states: a graph's parts one after the other, and the kinds of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import assert_never

from orchestration.backends.jsonata import condition, enclosed, field_value, render, tree
from orchestration.backends.stepfunctions import keeping, values
from orchestration.backends.stepfunctions.calls import reports, sending, timing
from orchestration.backends.stepfunctions.calls.outputs import read_at_once
from orchestration.backends.stepfunctions.facts import exported, row_fields
from orchestration.backends.stepfunctions.integrations import spelling
from orchestration.backends.stepfunctions.names import Scope, Value, state, variable
from orchestration.backends.stepfunctions.nesting import (
    ENDED_BADLY,
    ENDED_WELL,
    ERROR,
    FIRST_ERROR,
    Together,
    attempted,
    carried,
    caught,
    tried,
)
from orchestration.backends.stepfunctions.states import Rule, State, States, choice, fail
from orchestration.backends.stepfunctions.states import following as following_of
from orchestration.execution import wording
from orchestration.expressions import Json, Tree
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
    upstream,
)
from orchestration.graph.composition import Part, Series, compose, leaves, parts_in_series
from orchestration.refs import Expression


@dataclass(frozen=True)
class Writing:
    """A graph to write into a machine, and what is read after its end."""

    graph: Graph
    scope: Scope
    states: States
    last: Tree = None
    """A tree that is read after the last step."""
    opens: bool = False
    """True for a machine's whole graph, so that values can be assigned before its first step."""

    @property
    def first_values(self) -> Sequence[Value]:
        """The values to assign before the first step."""
        return self._plan.get(0, ())

    @property
    def after(self) -> Scope:
        """The scope that sees what all parts leave behind."""
        return self._scopes[-1]

    def write(self, following: str) -> str:
        """Write the parts from the last to the first, each seeing what is before it."""
        parts = list(enumerate(self._parts, start=1))
        for number, part in reversed(parts):
            following = self._part(part, number, following)
        return following

    @property
    def ending(self) -> tuple[Step | None, Scope]:
        """The step that ends it, if it is one, and the scope that sees what is before that."""
        if not self._parts or not isinstance(self._parts[-1], str):
            return None, self.after
        return self._named[self._parts[-1]], self._scopes[-2]

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        if not self.graph.steps:
            return ()
        names = [step.name for step in self.graph.steps]
        return parts_in_series(compose(names, upstream(self.graph)))

    @cached_property
    def _plan(self) -> dict[int, list[Value]]:
        """The values to assign, by the number of the part that they are assigned after."""
        series = [self._steps(part) for part in self._parts]
        return values.planned(series, self.last, self.scope, opens=self.opens)

    @cached_property
    def _scopes(self) -> list[Scope]:
        scopes = [self.scope.knowing(self.first_values)]
        for number, part in enumerate(self._parts, start=1):
            after = self._after(part, scopes[-1])
            scopes.append(after.knowing(self._plan.get(number, ())))
        return scopes

    @cached_property
    def _named(self) -> dict[str, Step]:
        return {step.name: step for step in self.graph.steps}

    def _steps(self, part: Part) -> tuple[Step, ...]:
        if isinstance(part, str):
            return (self._named[part],)
        names = set(leaves(part))
        return tuple(step for step in self.graph.steps if step.name in names)

    def _after(self, part: Part, scope: Scope) -> Scope:
        if isinstance(part, str):
            return _after(self._named[part], scope)
        inside = exported(self._steps(part), scope.facts)
        return carried(Together.of(part).results, inside, scope)

    def _part(self, part: Part, number: int, following: str) -> str:
        before, entering = self._scopes[number - 1], self._plan.get(number, ())
        here = _Here(before, self.states, entering, self._after(part, before))
        if isinstance(part, str):
            return here.step(self._named[part], following)
        if isinstance(part, Series):
            raise ValueError("a series inside a series is flat")
        graphs = [Graph(self._steps(inner)) for inner in part.parts]
        return here.side_by_side(Together.of(part), graphs, following)


def _after(step: Step, scope: Scope) -> Scope:
    match step:
        case Call() | Read() | ForEach() | Clock():
            return scope.extended({step.name: f"${variable(step.name)}"})
        case Parallel():
            inside = tuple(inner for branch in step.branches for inner in branch.steps)
            return carried(Together.named(step).results, exported(inside, scope.facts), scope)
        case Guarded():
            body = f"{variable(step.name, 'Body')}.results"
            results = exported(step.body.steps, scope.facts)
            after = carried(body, results, _after(step.acquire, scope))
            cleaned = exported(step.cleanup.steps, scope.facts)
            return carried(variable(step.name, "Cleanup"), cleaned, after)
        case Concluded():
            body = f"{variable(step.name, 'Body')}.results"
            return carried(body, exported(step.body.steps, scope.facts), scope)
        case Choose() if step.collect:
            return scope.extended({step.name: f"${variable(step.name)}"})
        case Choose() | Require() | Wait() | Fail():
            return scope
        case _:
            assert_never(step)


@dataclass(frozen=True, slots=True)
class _Here:
    """The place of a step."""

    scope: Scope
    states: States
    entering: Sequence[Value]
    """The values to assign at its end."""
    after: Scope
    """The scope that sees what it leaves behind."""

    @property
    def _assigned(self) -> dict[str, Json]:
        return self.after.assigned(self.entering)

    def step(self, step: Step, following: str) -> str:  # noqa: C901 - one arm for each kind
        """Write a step; the name of its first state comes back."""
        if step.name in self.scope.facts.marks:
            following = keeping.marked(step.name, self.states, following)
        match step:
            case Call():
                scope = self.scope.entered_by(step.name, self.entering)
                if step.timed:
                    following = timing.answered(step, self.states, following)
                asked = sending.call(step, scope, self.states, following)
                return timing.asked(step, self.states, asked) if step.timed else asked
            case Read():
                scope = self.scope.entered_by(step.name, self.entering)
                return reports.read(step, scope, self.states, following)
            case Choose():
                return self._choose(step, following)
            case Require():
                return self._require(step, following)
            case ForEach():
                return self._for_each(step, following)
            case Parallel():
                return self.side_by_side(Together.named(step), step.branches, following)
            case Guarded():
                return self._guarded(step, following)
            case Concluded():
                return self._concluded(step, following)
            case Clock():
                at: State = {variable(step.name): {"at": enclosed(timing.NOW)}}
                clock: State = {"Type": "Pass", "Assign": at}
                return self.states.add(state(step.name), clock, following)
            case Wait():
                wait: State = {"Type": "Wait", "Seconds": self._seconds(step.seconds)}
                wait |= {"Assign": self._assigned} if self.entering else {}
                return self.states.add(state(step.name), wait, following)
            case Fail():
                return self.states.last(state(step.name), self._fail(step))
            case _:
                assert_never(step)

    def _fail(self, step: Fail | Require) -> State:
        return fail(field_value(step.error), tree(step.cause, self.scope))

    def _seconds(self, seconds: Tree) -> Json:
        # Step Functions waits whole seconds.
        if isinstance(seconds, Expression):
            return enclosed(f"$ceil({render(seconds, self.scope)})")
        return ceil(seconds) if isinstance(seconds, int | float) else tree(seconds, self.scope)

    def _require(self, step: Require, following: str) -> str:
        otherwise = self.states.last(state(step.name, step.error), self._fail(step))
        rule = Rule(condition(step.condition, self.scope), following, self._assigned)
        return self.states.last(state(step.name), choice(rule, default=otherwise))

    def _choose(self, step: Choose, following: str) -> str:
        then = self._way(step, "Result", step.then, step.collect, following)
        rule = Rule(condition(step.condition, self.scope), then)
        if step.otherwise.steps or not step.absent:
            other = self._way(step, "OtherResult", step.otherwise, step.absent, following)
            nested = {
                state(inner.name) for inner in step.otherwise.steps if isinstance(inner, Choose)
            }
            chosen = choice(rule, default=other)
            if other in nested:
                chosen = self.states.joined(chosen)
            return self.states.last(state(step.name), chosen)
        # Whether it counts for the rule as well does not matter: that way assigns it anew.
        assigned: State = {"Assign": {variable(step.name): tree(step.absent, self.scope)}}
        chosen = {**choice(rule, default=following), **assigned}
        return self.states.last(state(step.name), chosen)

    def _way(
        self, step: Choose, helper: str, graph: Graph, collect: Mapping[str, Tree], following: str
    ) -> str:
        """Write a way of a choice; a state at its end assigns what is collected."""
        writing = Writing(graph, self.scope, self.states, collect)
        if collect:
            assigned: State = {variable(step.name): tree(collect, writing.after)}
            end: State = {"Type": "Pass", "Assign": assigned}
            following = self.states.add(state(step.name, helper), end, following)
        return writing.write(following)

    def side_by_side(self, names: Together, graphs: Sequence[Graph], following: str) -> str:
        """Write graphs that run side by side."""
        branches: list[Json] = []
        for number, graph in enumerate(graphs, start=1):
            label = f"{names.state}-Branch{number}"
            results = exported(graph.steps, self.scope.facts)
            branches.append(tried(label, _machine(label, graph, self.scope, results)))
        parallel: State = {"Type": "Parallel", "Branches": branches, "Output": FIRST_ERROR}
        whole = Graph(tuple(step for graph in graphs for step in graph.steps))
        if exported(whole.steps, self.scope.facts) or keeping.held(whole, self.scope.facts):
            # There are none where all have failed, and the empty object stands for them.
            parallel["Assign"] = {names.results: "{% $merge([{}, $states.result.results]) %}"}
        checked = self._checked(names.state, following)
        return self.states.add(names.state, parallel, checked)

    def _for_each(self, step: ForEach, following: str) -> str:
        name = state(step.name)
        inner = self.scope.looping(step.name, row_fields(step.items, self.scope.facts))
        loop: State = {
            "Type": "Map",
            "Items": tree(step.items, self.scope),
            "MaxConcurrency": step.max_concurrency,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "INLINE"},
                **attempted(step, _iteration(step, inner)),
            },
            "Assign": {variable(step.name): {"items": "{% [$states.result.item] %}"}},
            "Output": FIRST_ERROR,
            "Catch": [self.states.overflow(wording.TOO_LARGE_RESULTS, step.name)],
        }
        return self.states.add(name, loop, self._checked(name, following))

    def _guarded(self, step: Guarded, following: str) -> str:
        acquired, name = _after(step.acquire, self.scope), state(step.name)
        body, facts = variable(step.name, "Body"), self.scope.facts
        after = self._checked(name, following)
        label = f"{name}-Cleanup"
        cleaned = exported(step.cleanup.steps, facts)
        release: State = {
            "Type": "Parallel",
            "Branches": [_machine(label, step.cleanup, acquired, cleaned)],
            # The body's failure comes first.
            "Output": f"{{% $exists(${body}.Error) ? ${body} : {{}} %}}",
            "Catch": [caught(after, f"$exists(${body}.Error) ? ${body} : ")],
        }
        if cleaned:
            release["Assign"] = {variable(step.name, "Cleanup"): "{% $states.result[0].results %}"}
        cleanup = self.states.add(label, release, after)
        label = f"{name}-Body"
        results = exported(step.body.steps, facts)
        work: State = {
            "Type": "Parallel",
            "Branches": [_machine(label, step.body, acquired, results)],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Assign": {body: ERROR}, "Next": cleanup}],
            "Assign": {body: "{% $states.result[0] %}"},
        }
        here = self.states.add(label, work, cleanup)
        return sending.call(step.acquire, self.scope, self.states, here)

    def _concluded(self, step: Concluded, following: str) -> str:
        name, ending = state(step.name), variable(step.name)
        body = variable(step.name, "Body")
        after, label = self._checked(name, following), f"{name}-Afterwards"
        scope = _after(step, self.scope).extended({step.name: f"${ending}"})
        conclusion: State = {
            "Type": "Parallel",
            "Branches": [_machine(label, step.conclusion, scope, ())],
            # The body's failure comes first.
            "Output": f"{{% $exists(${body}.Error) ? ${body} : {{}} %}}",
            "Catch": [caught(after, f"$exists(${body}.Error) ? ${body} : ")],
        }
        afterwards = self.states.add(label, conclusion, after)
        label = f"{name}-Body"
        results = exported(step.body.steps, self.scope.facts)
        well: State = {body: "{% $states.result[0] %}", ending: ENDED_WELL}
        failed: State = {body: ERROR, ending: ENDED_BADLY}
        if step.kept:
            afterwards = keeping.ending(step, body, self.scope, self.states, afterwards)
            del well[ending], failed[ending]
        work: State = {
            "Type": "Parallel",
            "Branches": [_machine(label, step.body, self.scope, results)],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Assign": failed, "Next": afterwards}],
            "Assign": well,
        }
        return self.states.add(label, work, afterwards)

    def _checked(self, name: str, following: str) -> str:
        """Fail with the error in a state's input, or go on."""
        well = Rule("$not($exists($states.input.Error))", following, self._assigned)
        check = choice(well, default=self.states.failed())
        return self.states.last(f"{name}-CheckErrors", check)


def _machine(label: str, graph: Graph, scope: Scope, results: Sequence[str]) -> dict[str, Json]:
    """Write a graph as a machine of its own, which gives back the results of some steps."""
    states = States(label)
    writing = Writing(graph, scope, states, opens=True)
    places = {variable(step): writing.after.places[step] for step in results}
    kept = keeping.held(graph, scope.facts)
    inside: Json = {name: enclosed(text) for name, text in places.items()}
    output: Json = {"results": keeping.written({**kept, **places}) if kept else inside}
    last = states.add(f"{label}-Result", {"Type": "Pass", "Output": output}, None)
    start = writing.write(last)
    if kept:
        keeping.salvage(states, kept)
    assigned = {**scope.assigned(writing.first_values), **keeping.begun(kept), **states.begun}
    if assigned:
        start = states.add(f"{label}-Begin", {"Type": "Pass", "Assign": assigned}, start)
    return states.machine(start)


def _iteration(step: ForEach, scope: Scope) -> dict[str, Json]:
    """Write a loop's body as a machine of its own, which gives back what is collected."""
    name = state(step.name)
    states = States(name)
    writing = Writing(step.body, scope, states, step.collect, opens=True)
    output: Json = {"item": tree(step.collect, writing.after)}
    last = states.add(f"{name}-Result", {"Type": "Pass", "Output": output}, None)
    assigned: dict[str, Json] = {scope.item_variable: "{% $states.input %}"}
    start = writing.write(last)
    _collected_by_call(step, writing, states, last)
    assigned |= scope.reading_item().assigned(writing.first_values)
    begin: State = {"Type": "Pass", "Assign": {**assigned, **states.begun}}
    return states.machine(states.add(f"{name}-Item", begin, start))


def _collected_by_call(step: ForEach, writing: Writing, states: States, last: str) -> None:
    """Let a call that ends a loop's body give back what is collected, without a state after it."""
    call, before = writing.ending
    entering = [name for name, each in states.written.items() if last in following_of(each)]
    if not isinstance(call, Call) or entering != [state(call.name)]:
        return
    scope = read_at_once(spelling.call(call), before)
    sending = states.written[state(call.name)]
    kept = {name: value for name, value in sending.items() if name not in ("Assign", "Next")}
    states.add(state(call.name), {**kept, "Output": {"item": tree(step.collect, scope)}}, None)
