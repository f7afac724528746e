"""Which parts of expressions are assigned to variables of their own, where, and under which names.

A part that is needed twice is assigned once, as soon as what it is made of is known, and is checked
there. One that may be refused is not assigned before a step that may end the run on purpose, unless
it is needed before that step: the run would fail with another error than it should.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

from orchestration.backends import jsonata
from orchestration.backends.jsonata import Code, Demand, Leaf, Part, location
from orchestration.backends.stepfunctions.names import Scope, Value, variable
from orchestration.backends.stepfunctions.naming import named
from orchestration.expressions import Item, Join, Parameter, Result, Run, Tree, walk
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
    all_steps,
    bodies,
    ordered,
    trees,
    visible,
)

_WORTH: Final = 28
"""Characters of JSONata from which on a part that is needed twice gets a variable."""


class Use(NamedTuple):
    """A tree that a step reads."""

    tree: Tree
    demand: Demand | None = None
    certain: bool = True
    """True if every run that comes to the step reads it."""
    looping: bool = False
    """True in a loop inside the planned graph."""


@dataclass(eq=False)
class _Occurrence:
    """A part of an expression, where it stands."""

    part: Part
    above: _Occurrence | None
    code: Code = field(default_factory=lambda: Code(""))
    place: int = 0
    certain: bool = False
    looping: bool = False

    def inside(self, texts: Collection[str]) -> bool:
        """Return whether it is a part of one of some parts, given by their JSONata."""
        outer = self.above
        while outer is not None:
            if outer.code.text in texts:
                return True
            outer = outer.above
        return False


@dataclass
class _Group:
    """The occurrences of parts that have the same JSONata."""

    occurrences: list[_Occurrence] = field(default_factory=list)
    parts: dict[Part, None] = field(default_factory=dict)


@dataclass
class _Recorder:
    """Writes expressions like a scope, and notes the parts that they are made of."""

    scope: Scope
    occurrences: list[_Occurrence] = field(default_factory=list)
    _open: list[_Occurrence] = field(default_factory=list)

    def reference(self, leaf: Leaf) -> Code:
        """Return the JSONata that gives a leaf's value."""
        return self.scope.reference(leaf)

    def value(self, part: Part, write: Callable[[], Code]) -> Code:
        """Return a part's variable, or note the part."""
        known = self.scope.known(part)
        if known is not None:
            return known
        occurrence = _Occurrence(part, self._open[-1] if self._open else None)
        self._open.append(occurrence)
        occurrence.code = write()
        self._open.pop()
        self.occurrences.append(occurrence)
        return occurrence.code

    def record(self, use: Use, place: int) -> None:
        """Note the parts of the expressions in a tree."""
        start = len(self.occurrences)
        if use.demand is not None:
            jsonata.written(Part(use.tree, use.demand), self)  # type: ignore[arg-type]  # a condition
        else:
            jsonata.tree(use.tree, self)
        for occurrence in self.occurrences[start:]:
            occurrence.place, occurrence.certain = place, use.certain
            occurrence.looping = use.looping


def planned(
    series: Sequence[Sequence[Step]], last: Tree, scope: Scope, *, opens: bool
) -> dict[int, list[Value]]:
    """Return the values to assign, by the number of the part of a series to assign them after.

    0 stands for the beginning, where values can be assigned if the series ``opens`` a machine.
    ``last`` is read after the last part.
    """
    return _Plan(series, scope, opens).values(last)


@dataclass(frozen=True)
class _Plan:
    series: Sequence[Sequence[Step]]
    scope: Scope
    opens: bool

    def values(self, last: Tree) -> dict[int, list[Value]]:
        """Choose what is worth a variable, and find the place of each."""
        groups = self._groups(last)
        chosen = set(_worth(groups))
        plan: dict[int, list[Value]] = {}
        # From the longest on: what stands inside of others with variables is needed less often.
        for text in sorted(groups, key=len, reverse=True):
            if text in chosen:
                group = groups[text]
                uses = [each for each in group.occurrences if not each.inside(chosen)]
                place = self._place(uses) if len(uses) > 1 else None
                if place is None:
                    chosen.remove(text)
                    continue
                value = Value(tuple(group.parts), named(uses[0].part.node, self.scope))
                plan.setdefault(place, []).append(value)
        return plan

    def _groups(self, last: Tree) -> dict[str, _Group]:
        """Return the parts of all expressions by their JSONata."""
        inside = [step for steps in self.series for step in all_steps(Graph(tuple(steps)))]
        places = {step.name: f"${variable(step.name)}" for step in inside}
        recorder = _Recorder(replace(self.scope, places={**places, **self.scope.places}))
        for number, steps in enumerate(self.series, start=1):
            for use in _in_series(steps):
                recorder.record(use, number)
        recorder.record(Use(last), len(self.series) + 1)
        groups: dict[str, _Group] = {}
        for each in recorder.occurrences:
            named = each.code.atomic or isinstance(each.part.node, Join)
            if named and _hashable(each.part):
                group = groups.setdefault(each.code.text, _Group())
                group.parts[each.part] = None
                # What is asked of a part may add nothing to it: that is one occurrence.
                if each.above is None or each.above.code.text != each.code.text:
                    group.occurrences.append(each)
        return groups

    def _place(self, uses: Sequence[_Occurrence]) -> int | None:
        """Return the part after which a value can be assigned, if there is one."""
        known = self._known(uses[0])
        if known is None:
            return None
        if not uses[0].code.sure:
            certain = [use.place for use in uses if use.certain]
            if not certain:
                return None
            known = max([known, *(gate for gate in self._gates if gate < min(certain))])
        carries = self.opens if known == 0 else _carries(self.series[known - 1])
        return known if carries and sum(use.place > known for use in uses) > 1 else None

    def _known(self, use: _Occurrence) -> int | None:
        """Return the part after which all that a part of an expression reads is known."""
        place = 0
        for leaf in walk(use.part.node):
            match leaf:
                case Result(step, _):
                    if step not in self._owners and step not in self.scope.places:
                        return None
                    place = max(place, self._owners.get(step, 0))
                case Item() if use.looping or not self.scope.loop:
                    return None
                case Parameter() | Run() | _:
                    pass
        return place

    @cached_property
    def _owners(self) -> dict[str, int]:
        return {
            name: number
            for number, steps in enumerate(self.series, start=1)
            for step in steps
            for name in visible(step)
        }

    @cached_property
    def _gates(self) -> list[int]:
        return [number for number, steps in enumerate(self.series, start=1) if _ends(steps)]


def _worth(groups: Mapping[str, _Group]) -> Iterator[str]:
    """Yield the JSONata that is needed twice, and is long even where parts of it have names."""
    named: list[str] = []
    for text in sorted(groups, key=len):
        short = text
        for inner in named:
            short = short.replace(inner, "$")
        if len(short) >= _WORTH and len(groups[text].occurrences) > 1:
            named.insert(0, text)
            yield text


def _ends(steps: Sequence[Step]) -> bool:
    """Return whether steps may end the run on purpose."""
    return any(isinstance(step, Require | Fail) for step in all_steps(Graph(tuple(steps))))


def _carries(steps: Sequence[Step]) -> bool:
    """Return whether the states of a part can assign values at its end, whichever way it ends."""
    if len(steps) > 1:
        return True
    match steps[0]:
        case Call(until=until) as step:
            names = step.outputs.keys() | ({} if until is None else until.outputs).keys()
            whole = all(names <= recovery.outputs.keys() for recovery in step.recoveries)
            adopted = step.adopt is not None and until is None
            one_way = whole and not adopted and not step.may_fail
            return one_way and not step.timed and (until is None or until.gone is None)
        case Choose() | Clock() | Fail():
            return False
        case _:
            return True


def _in_series(
    steps: Sequence[Step], *, certain: bool = True, looping: bool = False
) -> Iterator[Use]:
    for step in ordered(Graph(tuple(steps))):
        yield from _uses(step, certain, looping)
        certain = certain and not _ends((step,))


def _uses(step: Step, certain: bool, looping: bool) -> Iterator[Use]:
    match step:
        case Call():
            first, *others = trees(step)
            yield Use(first, None, certain, looping)
            yield from (Use(tree, None, False, looping) for tree in others)
        case Read(uri=uri):
            yield Use(list(location(uri)), None, certain, looping)
        case Require() | Choose():
            yield Use(step.condition, "boolean", certain, looping)
            if isinstance(step, Require):
                yield Use(step.cause, None, False, looping)
            else:
                yield Use(step.collect, None, False, looping)
                yield Use(step.absent, None, False, looping)
        case ForEach():
            yield Use(step.items, None, certain, looping)
            yield Use(step.collect, None, False, looping=True)
        case Wait(seconds=tree):
            yield Use(tree, None, certain, looping)
        case Fail(cause=tree):
            yield Use(tree, None, False, looping)
        case Parallel() | Guarded() | Concluded() | Clock():
            pass
    inside = isinstance(step, Parallel | Guarded | Concluded)
    for body in bodies(step):
        yield from _in_series(
            body.steps,
            certain=certain and inside,
            looping=looping or isinstance(step, ForEach),
        )


def _hashable(part: Part) -> bool:
    try:
        hash(part)
    except TypeError:  # a list or an object inside of it
        return False
    return True
