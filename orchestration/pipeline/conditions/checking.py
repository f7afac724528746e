"""Checks of conditions, and of what is read of stages that may be skipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from orchestration.errors import Problem
from orchestration.expressions import (
    All,
    Any,
    ArnName,
    Compare,
    FirstOf,
    Join,
    Not,
    Parameter,
    Tree,
)
from orchestration.expressions.conditions import COMPARISONS
from orchestration.pipeline import looping
from orchestration.pipeline.afterwards import reading
from orchestration.pipeline.conditions.inheriting import Conditions, needed
from orchestration.pipeline.conditions.logic import always_holds
from orchestration.refs import Expression, Ref, Run, RunOutcome, TimeText

if TYPE_CHECKING:
    from orchestration.pipeline.draft import Draft, Written

_NAMES = {op: name for name, op in COMPARISONS.items()}


def problems(draft: Draft) -> Iterator[Problem]:
    """Yield what is wrong with conditions, and with values that may be absent."""
    checks = _Checks(draft)
    for written in draft.stages:
        yield from checks.of(written)


@dataclass(frozen=True)
class _Checks:
    draft: Draft

    @cached_property
    def _stages(self) -> Mapping[str, Written]:
        return {written.name: written for written in self.draft.stages}

    @cached_property
    def _conditions(self) -> Mapping[str, Conditions]:
        return reading.conditions(self._stages.values())

    def of(self, written: Written) -> Iterator[Problem]:
        stage = written.name
        if written.stage is not None and (when := written.stage.when) is not None:
            for path, message in self._condition(when, "when", written):
                yield Problem(path, message, stage=stage)
        for path, ref in needed(written.references):
            if path == "when" and self._may_lack(ref, written):
                why = f"stage {ref.stage!r} may be skipped"
                if self._is_unsure(ref, written):
                    why = f"a run that failed may not have come to {ref.stage}"
                message = (
                    f"{why}, and then there is no {ref.output} to compare; say what counts then: "
                    f"{{first_of: [{{ref: {ref.stage}.{ref.output}}}, <value>]}}"
                )
                yield Problem(path, message, stage=stage)
        for path, node in written.references:
            for message in self._typed(node, written):
                yield Problem(path, message, stage=stage)

    def _condition(
        self, node: Expression[object], path: str, reader: Written
    ) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the types in a condition, with paths into it."""
        match node:
            case All(parts) | Any(parts):
                inside = f"{path}.{'all' if isinstance(node, All) else 'any'}"
                for number, part in enumerate(parts):
                    yield from self._condition(part, f"{inside}[{number}]", reader)
            case Not(part):
                yield from self._condition(part, f"{path}.not", reader)
            case Compare():
                for message in self._comparison(node, reader):
                    yield f"{path}.{_NAMES[node.op]}", message
            case _ if (kind := self._kind(node, reader)) not in (None, "boolean"):
                message = f"{_shown(node)} is a {kind}, and a condition is true or false"
                yield path, f"{message}; compare it: {{equal: [<reference>, <value>]}}"

    def _comparison(self, node: Compare, reader: Written) -> Iterator[str]:
        left, right = self._kind(node.left, reader), self._kind(node.right, reader)
        if not any(isinstance(side, Expression) for side in (node.left, node.right)):
            yield "compares two values that are known already; leave it out"
        elif node.op in ("eq", "ne"):
            if None not in (left, right) and left != right:
                yield (
                    f"{_shown(node.left)} is a {left} and {_shown(node.right)} is a {right}: they "
                    "are never equal"
                )
        else:
            for side, kind in ((node.left, left), (node.right, right)):
                if kind not in (None, "number"):
                    yield f"{_shown(side)} is a {kind}; only numbers are less or greater"

    def _typed(self, node: Expression[object], reader: Written) -> Iterator[str]:
        """Yield what is wrong with the types of what a reference is made of."""
        if isinstance(node, FirstOf):
            yield from self._first_of(node, reader)
        elif isinstance(node, TimeText):
            yield from self._time(node, reader)

    def _time(self, node: TimeText, reader: Written) -> Iterator[str]:
        if (kind := self._kind(node.of, reader)) not in (None, "string"):
            hint = "; declare it with type: string" if isinstance(node.of, Parameter) else ""
            yield f"{_shown(node.of)} is a {kind}, and a time is a text{hint}"

    def _kind(self, value: Tree, reader: Written) -> str | None:
        """Return the type of a value; ``None``: known only in a run."""
        match value:
            case bool():
                return "boolean"
            case int() | float():
                return "number"
            case str() | Join() | ArnName() | TimeText() | Run() | RunOutcome():
                return "string"
            case Parameter(name):
                declared = self.draft.parameters.get(name)
                return None if declared is None else declared.type
            case Ref(stage, output) if stage in self._stages:
                written = self._stages[stage]
                if written.stage is None:
                    return None
                own = looping.group(written)
                together = own is not None and own == looping.group(reader)
                if written.stage.for_each is not None and not together:
                    return "list"
                return type(written.stage).outputs.kind_of(written.stage, output)
            case FirstOf(parts):
                return next((kind for part in parts if (kind := self._kind(part, reader))), None)
            case _:
                return None

    def _first_of(self, node: FirstOf[object], reader: Written) -> Iterator[str]:
        kinds = {
            kind: part for part in node.parts if (kind := self._kind(part, reader)) is not None
        }
        if len(kinds) > 1:
            types = ", ".join(f"{_shown(part)} is a {kind}" for kind, part in kinds.items())
            yield f"expected values of one type in first_of, got others: {types}"
        certain = [part for part in node.parts if not self._may_lack(part, reader)]
        if certain:
            if certain[0] is not node.parts[-1]:
                yield f"{_shown(certain[0])} is always there; leave out what follows it in first_of"
            return
        ways: list[Expression[bool]] = [
            Compare("ne", part, None)
            if self._is_unsure(part, reader)
            else All(self._conditions[part.stage])
            for part in node.parts
            if isinstance(part, Ref)
        ]
        if not always_holds(Any((Not(All(self._conditions.get(reader.name, ()))), *ways))):
            names = ", ".join(_shown(part) for part in node.parts)
            message = f"it may be that none of {names} is there; give first_of a last value that"
            if any(self._is_unsure(part, reader) for part in node.parts):
                yield f"{message} always is"
            else:
                yield (
                    f"{message} always is, or one of the stages the opposite condition: "
                    "when: {not: <condition>}"
                )

    def _may_lack(self, part: object, reader: Written) -> bool:
        if self._is_unsure(part, reader):
            return True
        return isinstance(part, Ref) and bool(self._conditions.get(part.stage))

    def _is_unsure(self, part: object, reader: Written) -> bool:
        """Return whether a run that failed may not have come to what is read."""
        of = self._stages.get(part.stage) if isinstance(part, Ref) else None
        return of is not None and reading.is_unsure(reader.section, of.section)


def _shown(value: Tree) -> str:
    match value:
        case Ref(stage, output):
            return f"{stage}.{output}"
        case Parameter(name):
            return f"parameter {name!r}"
        case FirstOf():
            return "first_of"
        case Expression():
            return "the text" if isinstance(value, Join) else "the run"
        case _:
            return repr(value)
