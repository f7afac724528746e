"""One layout on one cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from orchestration.planning.cost.estimates import Ranks, ranks_seconds
from orchestration.planning.cost.step_time import ReplicaTime
from orchestration.planning.model.configuration import (
    Configuration,
    Offload,
    Recompute,
)
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.places.memory import Memory, Room
from orchestration.planning.search.places.predictions import Predictions


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that fits, with the seconds of the whole training."""

    seconds: float
    layout: Layout
    configuration: Configuration

    @property
    def order(self) -> Order:
        """Sort key, for the lowest to be the best."""
        c = self.configuration
        return order(self.seconds, self.layout, c.global_batch, c.micro_batch)


Order = tuple[float, int, int, int]


def order(seconds: float, layout: Layout, batch: int, micro: int) -> Order:
    """Return a sort key: faster, then simpler, then a smaller batch, then larger micro-batches."""
    return (seconds, layout.rank, batch, -micro)


class Place:
    """One layout on one cluster, whatever its work."""

    def __init__(
        self,
        layout: Layout,
        c: Configuration,
        offloads: tuple[Offload, ...],
        room: Room,
        predictions: Predictions,
    ) -> None:
        """Take the layout's configuration, with any work, and what it may offload."""
        self.layout = layout
        self.configuration = c
        self.offloads = offloads
        self.memory = Memory(layout, c, room, predictions)
        self.kin = layout.kin
        self.candidates: dict[tuple[int, int, Recompute, Offload], Candidate] = {}
        """Configurations that were tried, by their work."""
        self._predictions = predictions

    @cached_property
    def is_barren(self) -> bool:
        """True if no work fits, as far as formulas tell."""
        return all(self.memory.is_too_small(offload) for offload in self.offloads)

    @cached_property
    def _ranks(self) -> Ranks:
        return ranks_seconds(self.configuration, self.offloads)

    def least_step_s(self, replica: ReplicaTime) -> float:
        """Return the least seconds of a step, by that part of it which its kin have in common."""
        return self._ranks.least_step(replica) * self._predictions.least_factor

    def least_s(self, seconds: float) -> float:
        """Return the least of a predicted time, whatever was measured."""
        return seconds * self._predictions.least_factor

    def working(
        self, batch: int, micro: int, recompute: Recompute, offload: Offload
    ) -> Configuration:
        """Return the configuration for some work."""
        return self.configuration.working(
            global_batch=batch, micro_batch=micro, recompute=recompute, offload=offload
        )
