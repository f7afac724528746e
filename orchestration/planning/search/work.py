"""Work that a search tries, and predictions that its clusters share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from orchestration.planning.model.configuration import Configuration, Recompute
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.strategy_choice import StrategyCache

Degrees = tuple[int, int, int, int]
"""Degrees of tensor, pipeline, context and expert parallelism."""
Bounds = dict[tuple[str, int, Recompute, Degrees], float]
"""Computing seconds of one micro-batch, by everything that they depend on."""


Way = tuple[float, int, Recompute]
"""A lower bound in seconds, a micro-batch, and what is recomputed."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Predictions that the clusters of a search share."""

    bounds: Bounds = field(default_factory=dict)
    needs: dict[tuple[object, ...], float] = field(default_factory=dict)
    """GiB that the fullest device needs, by everything that it depends on."""
    ways: dict[tuple[object, ...], list[Way]] = field(default_factory=dict)
    """Ways to compute a batch, that with the lowest bound first."""
    choices: dict[object, StrategyCache] = field(default_factory=dict)
    """Strategies that were chosen, by those allowed."""


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
    configuration: Configuration


class Work(NamedTuple):
    """Computing that several layouts share, however they shard states."""

    bound: float
    """Seconds of the whole training without communication and optimizer."""
    batch: int
    micro_batch: int
    recompute: Recompute
    layouts: tuple[Layout, ...]
    """Layouts with the same degrees and number of replicas."""
