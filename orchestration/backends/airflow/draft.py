"""Tasks while a graph is being cut into them: they grow, and are named at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from orchestration.backends.airflow.spec import TriggerRule
from orchestration.execution.sending import reads
from orchestration.expressions import Json, Result, Tree, walk
from orchestration.graph import (
    Call,
    Choose,
    Concluded,
    ForEach,
    Graph,
    Guarded,
    Read,
    Step,
    all_steps,
    lasting,
    trees,
    visible,
)

Kind: TypeAlias = Literal[
    "inputs", "outputs", "steps", "mapped", "choose", "join", "outcome", "leftovers"
]

_OVERWRITES: Final = frozenset({"CopyObject", "PutObject", "TagResource", "UpdateModelPackage"})
"""Calls that do the same however often they are sent."""
_TOKENS: Final = frozenset({"ClientRequestToken", "ClientToken"})


@dataclass(eq=False, slots=True, kw_only=True)
class Draft:
    """One task to be."""

    stage: str
    kind: Kind = "steps"
    steps: list[Step] = field(default_factory=list)
    upstream: list[Draft] = field(default_factory=list)
    trigger_rule: TriggerRule = "all_success"
    returns: Tree = None
    """The task's return value, where it has one."""
    has_return: bool = False
    writes: dict[str, Tree] = field(default_factory=dict)
    """Its assets, and their S3 URIs."""
    options: dict[str, Json] = field(default_factory=dict)
    """Its stage's settings."""
    loop_step: ForEach | None = None
    """Of a mapped task, the loop it performs; of one that gathers, the loop it ends."""
    items: Draft | None = None
    """Of a mapped task and of one that gathers, the task that returns the list."""
    gathers: Draft | None = None
    """The task whose instances' return values are the loop's results."""
    choice: Choose | None = None
    ends: Concluded | None = None
    """Of the task that says how a body ended, the step with that body."""
    collects: Choose | None = None
    """The choice whose outputs it leaves, where the two ways of one meet."""
    ways: tuple[list[Draft], list[Draft]] = ((), ())  # type: ignore[assignment]  # filled for choices only
    loop: str | None = None
    """The mapped task group it is in."""
    optional: bool = False
    """True in a way of a choice of its own stage, where it may be skipped."""
    skips: bool = False
    """True if it ends as skipped where the condition of its stage does not hold."""
    begun_by: Draft | None = None
    """The task that begins the place where it stands in every run; ``None`` in a way of a choice
    and in a mapped group, which may be skipped as a whole."""
    setup: bool = False
    teardown_of: Draft | None = None
    named_by: str = ""
    """The step that the task is named after."""
    open: bool = True
    """True while further steps may join."""
    number: int = 0
    ancestors: int = 0
    """The tasks that it comes after, as bits by their numbers."""

    @property
    def job(self) -> Call | None:
        """The job that it waits for, where there is one."""
        return next((s for s in self.steps if isinstance(s, Call) and s.starts_job), None)

    @property
    def step_names(self) -> Iterator[str]:
        """The names of the steps that it performs or is named after."""
        yield self.named_by
        yield from (step.name for step in self.steps)

    @property
    def produced(self) -> frozenset[str]:
        """The steps whose results it leaves."""
        # Those in choices are read only by what follows the end of a run.
        names = {step.name for step in lasting(Graph(tuple(self.steps)))}
        names |= {name for step in self.steps for name in visible(step)}
        if self.gathers is not None and self.loop_step is not None:
            names.add(self.loop_step.name)
        if self.collects is not None:
            names.add(self.collects.name)
        if self.kind == "outcome":
            names.add(self.named_by)
        return frozenset(names)

    @property
    def consumed(self) -> frozenset[str]:
        """The steps whose results it reads, its own left out."""
        inner = {step.name for step in all_steps(Graph(tuple(self.performed)))}
        read = {
            node.step for tree in self._trees() for node in walk(tree) if isinstance(node, Result)
        }
        if self.ends is not None:
            read |= {step for kept in self.ends.kept.values() for step in kept.steps}
        return frozenset(read - inner - self.produced)

    @property
    def performed(self) -> list[Step]:
        """Everything that is performed in it."""
        if self.kind == "mapped" and self.loop_step is not None:
            return list(self.loop_step.body.steps)
        return self.steps

    def waits_for(self, other: Draft) -> bool:
        """Return whether it comes after another task."""
        return bool(self.ancestors >> other.number & 1)

    def _trees(self) -> Iterator[Tree]:
        for step in all_steps(Graph(tuple(self.performed))):
            yield from trees(step)
        if self.kind == "mapped" and self.loop_step is not None:
            yield self.loop_step.collect
        if self.has_return:
            yield self.returns
        if self.choice is not None:
            yield self.choice.condition
        if self.ends is not None:
            yield from trees(self.ends)
        if self.collects is not None:
            yield from trees(self.collects)
        yield from self.writes.values()

    def may_take(self, step: Step, before: Iterable[Draft]) -> bool:
        """Return whether a step that waits for some tasks can be performed at the end of this."""
        waits = list(before)
        if not self.open or self.has_return:
            return False
        if not all(task is self or self.waits_for(task) for task in waits):
            return False
        heavy = has_job(step)
        if (heavy or self.job is not None) and self not in waits:
            # What does not wait for the job runs beside it.
            return False
        if heavy and (self.job is not None or self.gathers is not None):
            return False
        return not (_changes(step) and any(_reads(earlier) for earlier in self.steps))


def stage_of(step: Step) -> str:
    """Return the stage a step belongs to."""
    return step.name.partition(".")[0]


def has_job(step: Step) -> bool:
    """Return whether a step starts a job, itself or inside, or acquires what must be released."""
    return any(
        isinstance(inner, Guarded | Concluded) or (isinstance(inner, Call) and inner.starts_job)
        for inner in all_steps(Graph((step,)))
    )


def _reads(step: Step) -> bool:
    return any(
        isinstance(inner, Read) or (isinstance(inner, Call) and reads(inner.operation.name))
        for inner in all_steps(Graph((step,)))
    )


def _changes(step: Step) -> bool:
    """Return whether a replay would change once more what was read before.

    Not where the service recognises the request as one it has had: by a name that exists, a token,
    or because it overwrites with the same.
    """
    return any(
        isinstance(inner, Call)
        and not reads(inner.operation.name)
        and inner.adopt is None
        and not inner.recoveries
        and not _TOKENS & inner.operation.request.keys()
        and inner.operation.name not in _OVERWRITES
        and not inner.operation.name.startswith("Invoke")
        for inner in all_steps(Graph((step,)))
    )
