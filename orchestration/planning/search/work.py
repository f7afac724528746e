"""Work that a search tries, and predictions that its clusters share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from orchestration.planning.model.configuration import Configuration, Offload, Recompute
from orchestration.planning.search.layouts import Layout, layouts
from orchestration.planning.search.strategy_choice import StrategyCache

if TYPE_CHECKING:
    from orchestration.catalog import Instance
    from orchestration.planning.search.task import Task

Degrees = tuple[int, int, int, int]
"""Degrees of tensor, pipeline, context and expert parallelism."""
Bounds = dict[tuple[object, ...], dict[int, tuple[float, ...]]]
"""Least seconds of one micro-batch for each kind of recomputation, by its samples, and before by
what else they depend on."""


Way = tuple[float, int, Recompute]
"""A lower bound in seconds, a micro-batch, and what is recomputed."""


@dataclass(slots=True)
class Known:
    """Answers about one cluster, which every search for a task asks for again."""

    hosts: dict[tuple[Layout, Offload], bool] = field(default_factory=dict)
    """Hosts hold what is offloaded."""
    limits: dict[tuple[Layout, int, Recompute, Offload], Limit] = field(default_factory=dict)
    candidates: dict[tuple[Layout, int, int, Recompute, Offload], Candidate] = field(
        default_factory=dict
    )


@dataclass(slots=True)
class Shared:
    """Predictions that the searches for a task share."""

    bounds: Bounds = field(default_factory=dict)
    needs: dict[tuple[object, ...], float] = field(default_factory=dict)
    """GiB that the fullest device needs, by everything that it depends on."""
    places: dict[tuple[object, ...], int] = field(default_factory=dict)
    """Numbers of layouts on machines, which stand for them in `needs`."""
    ways: dict[tuple[object, ...], list[Way]] = field(default_factory=dict)
    """Ways to compute a batch, that with the lowest bound first."""
    choices: dict[object, StrategyCache] = field(default_factory=dict)
    """Strategies that were chosen, by those allowed."""
    layouts: dict[tuple[int, int, str], tuple[Layout, ...]] = field(default_factory=dict)
    """Layouts by what they depend on: devices of an instance, instances, family."""
    clusters: dict[tuple[str, int], Known] = field(default_factory=dict)
    considered: int = 0
    """Number of predictions, of memory or of time."""

    def layouts_of(self, task: Task, instance: Instance, count: int) -> tuple[Layout, ...]:
        """Return every layout of a task on this many instances, simple ones first."""
        key = (instance.devices, count, instance.family)
        if key not in self.layouts:
            self.layouts[key] = tuple(layouts(task, instance, count))
        return self.layouts[key]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that fits, with the seconds of the whole training."""

    seconds: float
    layout: Layout
    configuration: Configuration

    @property
    def order(self) -> tuple[float, int, int, int]:
        """Sort key: faster, then simpler, then a smaller batch, then larger micro-batches."""
        c = self.configuration
        return (self.seconds, self.layout.rank, c.global_batch, -c.micro_batch)


@dataclass(frozen=True, slots=True)
class Miss:
    """The configuration that is nearest to fitting."""

    need_gib: float
    layout: Layout
    batch: int
    recompute: Recompute
    offload: Offload


class Limit(NamedTuple):
    """The largest micro-batch that fits; 0: none does, and `miss` says by how much."""

    micro_batch: int
    """The largest of which a step takes several."""
    miss: Miss | None
    single: int = 0
    """The one that is a step of its own, if it fits."""

    @property
    def largest(self) -> int:
        """The largest of both."""
        return max(self.micro_batch, self.single)

    def holds(self, micro_batch: int) -> bool:
        """Return whether a micro-batch fits."""
        return micro_batch <= self.micro_batch or micro_batch == self.single


class Work(NamedTuple):
    """Computing that several layouts share, however they shard states."""

    bound: float
    """Seconds of the whole training without communication and optimizer."""
    batch: int
    micro_batch: int
    recompute: Recompute
    layouts: tuple[Layout, ...]
    """Layouts with the same degrees and number of replicas."""
    limits: list[int | None]
    """The largest micro-batch that fits each of them, whatever is offloaded; ``None``: unknown.

    Shared with the work of other micro-batches, of the same batch and recomputation."""
