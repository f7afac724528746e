"""Stages that go through a list together: a loop whose body holds all of them.

A stage of a group reads what the others came to for the same element; stages outside of it read
lists. The first step of the body keeps the element, so that loops in there can read it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from orchestration.errors import PipelineError, Problem
from orchestration.expressions import (
    Compare,
    Each,
    Field,
    Function,
    Item,
    Result,
    Tree,
    apply,
    join,
    substitute,
)
from orchestration.graph import Choose, Graph, rewrite
from orchestration.graph.ordering import circle
from orchestration.pipeline import looping
from orchestration.pipeline.afterwards.sections import STAGES
from orchestration.pipeline.conditions.inheriting import Conditions
from orchestration.pipeline.placing.fragments import fragments, once
from orchestration.pipeline.placing.lowered import Lowered
from orchestration.pipeline.placing.placement import Placement
from orchestration.pipeline.placing.timing import timed
from orchestration.refs import WHOLE, Expression, Ref
from orchestration.stages import Context, Fragment, Stage
from orchestration.stages.stage import ForEachItem

if TYPE_CHECKING:
    from orchestration.pipeline.draft import Draft

_ELEMENT: Final = "element"
"""The step that keeps the element."""


@dataclass(frozen=True)
class Group:
    """Stages that go through a list together."""

    name: str
    stages: tuple[Stage, ...]
    loop: ForEachItem
    conditions: Mapping[str, Conditions]
    """Of each of its stages."""
    read: frozenset[Ref[object]]
    """The outputs that are read outside of it, or shown."""

    @property
    def shared(self) -> Conditions:
        """Return the conditions that all stages have, whatever the element: those of the loop."""
        first, *others = (self.conditions[stage.name] for stage in self.stages)
        return tuple(
            condition
            for condition in first
            if not looping.of_element(condition) and all(condition in other for other in others)
        )

    @property
    def aliases(self) -> dict[str, dict[str, Ref[object]]]:
        """Return where the outputs of each stage are found outside: as lists of the whole group."""
        found: dict[str, dict[str, Ref[object]]] = {stage.name: {} for stage in self.stages}
        for ref in self.read:
            found[ref.stage][ref.output] = Ref(self.name, _collected(ref))
        return found

    def lowered(self, context: Context) -> tuple[Fragment, list[Problem]]:
        """Return one loop over the steps of all stages, and what is wrong with it."""
        names = {stage.name for stage in self.stages}
        needed = {stage.name: looping.reading(stage) & names for stage in self.stages}
        direct = {s.name: needed[s.name].union(names.intersection(s.after)) for s in self.stages}
        if members := circle(direct):
            message = f"stages wait for each other: {' -> '.join(members)}"
            raise PipelineError([Problem("", message, stage=members[0])])
        inside = self._inside(context)
        inner = fragments({s.name: partial(self._once, s, inside) for s in self.stages}, direct)
        wrong = [
            Problem("for_each", text, stage=name)
            for name, fragment in inner.items()
            for text in looping.impossible(fragment, self.loop)
        ]
        shared = self.shared
        stages = Lowered(
            fragments=inner,
            direct=direct,
            readers={n: frozenset(o for o in names if n in needed[o]) for n in names},
            shown=dict.fromkeys(inner, ()),
            written=dict.fromkeys(inner, ()),
            conditions={
                name: tuple(self._of_element(c) for c in self.conditions[name] if c not in shared)
                for name in inner
            },
        )
        settled = Placement.of(stages).settled(self.read)
        body = Graph((self._keeping(), *settled.graph.steps))
        collect = {_collected(ref): tree for ref, tree in settled.read.items()}
        fragment = looping.run_through(self.name, self.loop, body, dict(sorted(collect.items())))
        permissions = tuple(each for found in settled.permissions.values() for each in found)
        return replace(fragment, permissions=permissions), wrong

    def _keeping(self) -> Choose:
        """Return the step that keeps the element for all others, those in loops as well."""
        item = Item()
        kept: dict[str, Tree] = {name: Field(item, name) for name in self.loop.fields}
        kept = kept or {WHOLE: item}
        # Both ways are the same: it is a choice because that is what has outputs without a call.
        key = next(iter(kept.values()))
        return Choose(
            name=f"{self.name}.{_ELEMENT}",
            condition=Compare("eq", key, key),
            then=Graph(),
            otherwise=Graph(),
            collect=kept,
            absent=kept,
        )

    def _inside(self, context: Context) -> Context:
        own = apply(Function.TEXT, Result(f"{self.name}.{_ELEMENT}", self.loop.key or WHOLE))
        element = own if context.element is None else join(context.element, "/", own)
        return replace(context, element=element)

    def _once(self, stage: Stage, context: Context) -> tuple[Fragment, list[Problem]]:
        fragment, wrong = once(stage, context)
        fragment, late = timed(stage, fragment)
        change, gate = self._of_element, fragment.gate
        return replace(
            fragment,
            steps=tuple(rewrite(step, change) for step in fragment.steps),
            outputs=change(fragment.outputs),
            gate=None if gate is None else replace(gate, condition=change(gate.condition)),
            permissions=tuple(
                replace(each, resources=change(each.resources)) for each in fragment.permissions
            ),
        ), [*wrong, *late]

    def _of_element(self, tree: Any) -> Any:
        def value(node: Expression[object]) -> Tree:
            if isinstance(node, Each):
                return Result(f"{self.name}.{_ELEMENT}", node.field)
            return node

        return substitute(tree, value)


def unit_of(stage: Stage) -> str:
    """Return the group that a stage belongs to, or its own name where it stands alone."""
    loop = stage.for_each
    return stage.name if loop is None or loop.together is None else loop.together


def units(stages: Iterable[Stage]) -> dict[str, tuple[Stage, ...]]:
    """Return groups with their stages, and single stages, by name and in order."""
    found: dict[str, tuple[Stage, ...]] = {}
    for stage in stages:
        name = unit_of(stage)
        found[name] = (*found.get(name, ()), stage)
    return found


def read_outside(members: Collection[Stage], others: Iterable[Stage]) -> frozenset[Ref[object]]:
    """Return the outputs of a group that other stages read, or that a run shows."""
    names = {stage.name for stage in members}
    read = {Ref[object](s.name, o) for s in members for o in type(s).outputs.shown(s)}
    for stage in others:
        if stage.name not in names:
            nodes = (node for _, node in stage.references())
            read |= {node for node in nodes if isinstance(node, Ref) and node.stage in names}
    return frozenset(read)


def problems(draft: Draft) -> Iterator[Problem]:
    """Yield groups whose stages do not belong together."""
    stages = {each.name: each for each in draft.stages}
    for written in draft.stages:
        if written.section != STAGES and looping.group(written) is not None:
            message = "belongs to `stages`; what follows the end of a run has no groups"
            yield Problem("for_each.together", message, stage=written.name)
    whole = [w.stage for w in draft.stages if w.stage is not None and w.section == STAGES]
    for name, members in units(whole).items():
        first = members[0]
        if first.for_each is None or first.for_each.together is None:
            continue
        if name in stages:
            message = f"there is a stage {name}; a group has a name of its own"
            yield Problem("for_each.together", message, stage=first.name)
        for stage in members[1:]:
            if stage.for_each != first.for_each:
                message = (
                    f"goes through another list than {first.name}, or otherwise; stages together "
                    "have the same for_each"
                )
                yield Problem("for_each", message, stage=stage.name)


def _collected(ref: Ref[object]) -> str:
    return f"{ref.stage}.{ref.output}"
