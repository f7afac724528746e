"""A step graph cut into tasks: a task is what a person would name.

Within a stage, steps that wait for nothing run together. A job has one task, with the short steps
that hang on it. A loop over jobs is one mapped task; the task before it returns the list, and the
one after it gathers. A choice is a branch only where a job hangs on it. What is acquired and
released is setup and teardown, and waiting for what was acquired begins the body: a failed setup
takes its teardown along.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from orchestration.backends.airflow.around import Around
from orchestration.backends.airflow.draft import Draft, has_job, stage_of
from orchestration.errors import Problem
from orchestration.execution import wording
from orchestration.graph import (
    Call,
    Choose,
    Clock,
    Concluded,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    Step,
    all_steps,
    ordered,
    upstream,
)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a graph: the tasks before its first ones, and what is around it."""

    entry: tuple[Draft, ...]
    loop: str | None = None
    begun_by: Draft | None = None
    """The task that begins it, where what stands in it is in every run."""


@dataclass(frozen=True, slots=True)
class Group:
    """A loop whose elements need several tasks each."""

    step: ForEach
    items: Draft
    name: str


@dataclass(slots=True)
class Cutter:
    """Cuts graphs; its tasks are in an order in which each comes after those it waits for."""

    tasks: list[Draft] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    """The steps of which it is kept that they have ended well."""

    def graph(self, graph: Graph, place: Place) -> tuple[Draft, ...]:
        """Add a graph's tasks; returns those that what follows waits for."""
        before = upstream(graph)
        ends: dict[str, tuple[Draft, ...]] = {}
        order = ordered(graph, before)
        around = Around(before, order)
        for step in order:
            waits = _union(ends[name] for name in sorted(before[step.name]))
            at = len(self.tasks)
            ends[step.name] = self._step(step, waits, around, place)
            around.add(self.tasks[at:])
        inner = frozenset[str]().union(*before.values())
        exits = _union(ends[name] for name in ends if name not in inner)
        # A step may have joined a task that another one's end stands for. A teardown stands for
        # nothing: it succeeds after a body that failed.
        last = [task for task in exits if task.teardown_of is None]
        return tuple(t for t in exits if not any(o.waits_for(t) for o in last)) or place.entry

    def _step(
        self, step: Step, waits: tuple[Draft, ...], around: Around, place: Place
    ) -> tuple[Draft, ...]:
        if isinstance(step, Clock):
            # What it reads outlives the retries of all that counts from it.
            clock = Draft(stage=stage_of(step), steps=[step], named_by=step.name, open=False)
            return (self._add(clock, waits or place.entry, place),)
        if not has_job(step) or (isinstance(step, Call) and step.starts_job):
            return self._joined(step, waits, around, place)
        if isinstance(step, ForEach) and place.loop is not None:
            return self._nested(step, waits, around, place)
        entry = replace(place, entry=waits or place.entry)
        match step:
            case Parallel():
                return _union(self.graph(branch, entry) for branch in step.branches) or entry.entry
            case Choose():
                return self._choose(step, entry)
            case ForEach():
                return self._for_each(step, waits, around, entry)
            case Guarded():
                return self._guarded(step, entry)
            case Concluded():
                return self._concluded(step, entry)
            case _:
                raise TypeError(f"{step.name} holds no job")

    def _joined(
        self, step: Step, waits: tuple[Draft, ...], around: Around, place: Place
    ) -> tuple[Draft, ...]:
        task = around.taker(step, waits)
        if task is None:
            task = self._add(Draft(stage=stage_of(step)), waits or place.entry, place)
        task.steps.append(step)
        if has_job(step):
            task.named_by = step.name
        return (task,)

    def _add(self, task: Draft, entry: Iterable[Draft], place: Place) -> Draft:
        task.upstream = list(dict.fromkeys(entry))
        task.loop, task.begun_by = place.loop, place.begun_by
        task.number = len(self.tasks)
        for before in task.upstream:
            task.ancestors |= before.ancestors | 1 << before.number
        self.tasks.append(task)
        return task

    def _choose(self, step: Choose, place: Place) -> tuple[Draft, ...]:
        stage = stage_of(step)
        task = Draft(stage=stage, kind="choose", choice=step, named_by=step.name, open=False)
        choosing = self._add(task, place.entry, place)
        ways, exits = [], []
        for graph in (step.then, step.otherwise):
            at = len(self.tasks)
            exits.append(self.graph(graph, replace(place, entry=(choosing,), begun_by=None)))
            way = self.tasks[at:]
            ways.append([new for new in way if choosing in new.upstream])
            for new in way:
                new.optional = new.optional or new.stage == stage
        leaves = bool(step.collect) or step.name in self.kept
        join = Draft(
            stage=stage,
            kind="steps" if leaves else "join",
            collects=step if leaves else None,
            named_by=f"{step.name}__join",
            trigger_rule="none_failed_min_one_success",
            open=False,
        )
        joined = self._add(join, _union(exits), place)
        choosing.ways = (ways[0] or [joined], ways[1] or [joined])
        return (joined,)

    def _for_each(
        self, step: ForEach, waits: tuple[Draft, ...], around: Around, place: Place
    ) -> tuple[Draft, ...]:
        items = self._listing(step, waits, around, place)
        if _has_several_tasks(step.body):
            last = self._elements(step, items)
        else:
            mapped = Draft(
                stage=stage_of(step),
                kind="mapped",
                loop_step=step,
                items=items,
                named_by=step.name,
                open=False,
            )
            last = self._add(mapped, [items], place)
        end = Draft(
            stage=stage_of(step),
            loop_step=step,
            items=items,
            gathers=last,
            # An empty list leaves the mapped task skipped, and the loop has run all the same.
            trigger_rule="none_failed_min_one_success",
        )
        return (self._add(end, [items, last], place),)

    def _nested(
        self, step: ForEach, waits: tuple[Draft, ...], around: Around, place: Place
    ) -> tuple[Draft, ...]:
        """Perform a loop inside of a mapped group in one task: Airflow nests no mapped groups."""
        if any(isinstance(inner, Guarded) for inner in all_steps(step.body)):
            message = "Airflow can't release what each element of a loop in a loop acquires"
            self.problems.append(Problem(step.name, f"{message}; acquire it around the inner loop"))
        return self._joined(step, waits, around, place)

    def _listing(
        self, step: ForEach, waits: tuple[Draft, ...], around: Around, place: Place
    ) -> Draft:
        """Return the task that returns the list: only a return value can be mapped over."""
        stage = stage_of(step)
        task = around.lister(step, waits)
        if task is None:
            named = f"{step.name}__items"
            task = self._add(Draft(stage=stage, named_by=named), waits or place.entry, place)
        task.returns, task.has_return = step.items, True
        return task

    def _elements(self, step: ForEach, items: Draft) -> Draft:
        """Add the tasks of a mapped group; returns the one that returns what is collected."""
        name = f"{step.name.partition('.')[2].replace('.', '-') or step.name}-elements"
        self.groups.append(Group(step, items, name))
        exits = self.graph(step.body, Place((items,), loop=step.name))
        collecting = Draft(
            stage=stage_of(step),
            returns=step.collect,
            has_return=True,
            named_by=f"{step.name}__collect",
            open=False,
        )
        return self._add(collecting, exits, Place((items,), loop=step.name))

    def _guarded(self, step: Guarded, place: Place) -> tuple[Draft, ...]:
        if step.swept:
            message = wording.filled(wording.UNSWEPT, driver="on Airflow")
            self.problems.append(Problem(step.name, message))
        acquire = step.acquire
        setup = self._add(
            Draft(
                stage=stage_of(acquire),
                steps=[acquire],
                setup=bool(step.cleanup.steps),
                named_by=acquire.name,
                open=False,
            ),
            place.entry,
            place,
        )
        at = len(self.tasks)
        exits = self.graph(step.body, replace(place, entry=(setup,)))
        body = self.tasks[at:]
        if not step.cleanup.steps:
            return exits
        # It waits for every task, not for the last ones only, so that nothing is released while
        # anything uses it: a failure marks what follows it at once, while others still run.
        teardown = Draft(
            stage=stage_of(step.cleanup.steps[0]),
            steps=list(ordered(step.cleanup)),
            teardown_of=setup,
            named_by=step.cleanup.steps[-1].name,
            open=False,
        )
        self._add(teardown, body or [setup], place)
        return (*(exits if body else ()), teardown)

    def _concluded(self, step: Concluded, place: Place) -> tuple[Draft, ...]:
        at = len(self.tasks)
        self.kept |= {name for kept in step.kept.values() for name in kept.steps}
        exits = self.graph(step.body, place)
        ended = Draft(
            stage=stage_of(step),
            kind="outcome",
            ends=step,
            named_by=step.name,
            trigger_rule="all_done",
            open=False,
        )
        # It waits for every task: a failure marks what follows it at once, while others still run.
        # Airflow lets no such rule follow a setup directly; what the setup is for stands for it.
        body = [task for task in self.tasks[at:] if not task.setup]
        self._add(ended, body or place.entry, place)
        # It succeeds after a body that failed, so that it stands for none of these tasks.
        ended.ancestors = 0
        after = replace(place, entry=(ended,), begun_by=ended)
        return (*exits, *self.graph(step.conclusion, after))


def _has_several_tasks(body: Graph) -> bool:
    """Return whether one task can't stand for a loop's body: it guards something, or has stages."""
    steps = list(all_steps(body))
    guards = any(isinstance(step, Guarded) for step in steps)
    return guards or len({stage_of(step) for step in steps if has_job(step)}) > 1


def _union(parts: Iterable[Iterable[Draft]]) -> tuple[Draft, ...]:
    return tuple(dict.fromkeys(task for part in parts for task in part))
