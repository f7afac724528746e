"""The tasks that a step can join: those of its stage in the graph that is being cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field

from orchestration.backends.airflow.draft import Draft, stage_of
from orchestration.graph import Step


@dataclass(slots=True)
class Around:
    """A graph that is being cut: its steps' order, and the tasks made of it so far."""

    before: Mapping[str, frozenset[str]]
    order: InitVar[Sequence[Step]]
    _stages: dict[str, list[Draft]] = field(default_factory=dict)
    """The tasks made of the graph so far, by their stage."""
    _places: dict[str, int] = field(default_factory=dict)
    _ancestors: dict[str, int] = field(default_factory=dict)
    """All steps before each, as bits."""
    _readers: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self, order: Sequence[Step]) -> None:
        for place, step in enumerate(order):
            self._places[step.name] = place
            bits = 0
            for name in self.before[step.name]:
                bits |= self._ancestors[name] | 1 << self._places[name]
                self._readers.setdefault(name, []).append(step.name)
            self._ancestors[step.name] = bits

    def taker(self, step: Step, waits: Sequence[Draft]) -> Draft | None:
        """Return a task of the same stage that the step can be performed in."""
        return next(
            (
                task
                for task in self._of_stage(step)
                if task.may_take(step, waits) and self._delays_nobody(task, step)
            ),
            None,
        )

    def lister(self, step: Step, waits: Sequence[Draft]) -> Draft | None:
        """Return a task of the same stage that the step waits for, and that can return its list."""
        return next(
            (
                task
                for task in self._of_stage(step)
                if task.open
                and not task.has_return
                and task in waits
                and all(other is task or task.waits_for(other) for other in waits)
            ),
            None,
        )

    def _of_stage(self, step: Step) -> Iterator[Draft]:
        return reversed(self._stages.get(stage_of(step), []))

    def add(self, tasks: Iterable[Draft]) -> None:
        """Take in tasks that were made of the graph."""
        for task in tasks:
            self._stages.setdefault(task.stage, []).append(task)

    def _delays_nobody(self, task: Draft, step: Step) -> bool:
        """Return whether all that waits for the task's steps waits for this one too."""
        own = {inner.name for inner in task.steps}
        if task.gathers is not None and task.loop_step is not None:
            own.add(task.loop_step.name)
        bit = 1 << self._places[step.name]
        return all(
            reader in own or reader == step.name or self._ancestors[reader] & bit
            for name in own
            for reader in self._readers.get(name, ())
        )
