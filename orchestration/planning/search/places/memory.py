"""The memory that layouts need, whatever the machines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from orchestration.planning.cost.estimates import held, passing
from orchestration.planning.cost.memory import Held, Passing, joint_need
from orchestration.planning.cost.step_time import ROUNDED
from orchestration.planning.model.configuration import Configuration, Offload, Recompute
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.places.predictions import Predictions

Passings = dict[tuple[float, int, Recompute], Passing]
"""Activations, by samples of a micro-batch on one rank, their number, and what is recomputed."""


@dataclass(frozen=True, slots=True)
class Miss:
    """The configuration that is nearest to fitting."""

    need_gib: float
    layout: Layout
    recompute: Recompute
    offload: Offload


class Room(NamedTuple):
    """Memory of a cluster, and what may fill it."""

    device_gib: float
    host_gib: float | None
    """``None``: unknown, which counts as enough."""
    recomputes: tuple[Recompute, ...]
    """Kinds of recomputation that the cluster can use."""
    batch: int
    """Samples of the largest batch."""

    @property
    def least(self) -> Recompute:
        """The recomputation with which least memory is needed."""
        return "full" if "full" in self.recomputes else self.recomputes[-1]


class LaidOut(NamedTuple):
    """Layouts that compute alike, on some machines."""

    configurations: tuple[Configuration, ...]
    """One for each layout, with any work."""
    offloads: tuple[Offload, ...]
    """States that they may offload."""


class Needs:
    """Expected GiB of layouts that compute alike, on any machines with as many devices."""

    def __init__(self, laid_out: LaidOut, passings: Passings, predictions: Predictions) -> None:
        """Take known activations, which no sharding of states changes."""
        configurations, self._offloads = laid_out
        self._configurations = configurations
        self._passings = passings
        self._predictions = predictions
        self._c = c = configurations[0]
        self._flying = max(2, 2 * c.pipeline)
        """Beyond what a pipeline has in flight, more micro-batches need no more memory."""
        self._held: dict[tuple[int, Offload, bool], Held] = {}
        """States and buffers, by what is offloaded and whether whole gradients are summed."""
        self._least_held: dict[bool, Held] = {}
        self._needs: dict[tuple[int, int, int, Recompute, Offload], float] = {}
        self._least: dict[tuple[int, int, Recompute], float] = {}

    def need(
        self, index: int, micro: int, count: int, recompute: Recompute, offload: Offload
    ) -> float:
        """Return the need of one layout with so many micro-batches in a step."""
        count = min(count, self._flying)
        key = (index, micro, count, recompute, offload)
        need = self._needs.get(key)
        if need is None:
            self._predictions.considered += 1
            states = self._states(index, offload, summing=self._is_summing(count))
            need = self._needs[key] = joint_need(states, self._passing(micro, count, recompute))
        return need

    def least(self, micro: int, count: int, recompute: Recompute) -> float:
        """Return a need that no layout is below, whatever it offloads."""
        count = min(count, self._flying)
        key = (micro, count, recompute)
        need = self._least.get(key)
        if need is None:
            self._predictions.considered += 1
            states = self._least_states(summing=self._is_summing(count))
            need = joint_need(states, self._passing(micro, count, recompute)) * ROUNDED
            self._least[key] = need
        return need

    def _is_summing(self, count: int) -> bool:
        """Return whether ranks keep sums of whole gradients, for which a step needs several."""
        return self._c.whole_gradients and count > 1

    def _least_states(self, *, summing: bool) -> Held:
        """Return the least of each part of what layouts hold: a need grows with each of them."""
        least = self._least_held.get(summing)
        if least is None:
            every = (
                self._states(index, offload, summing=summing)
                for index in range(len(self._configurations))
                for offload in self._offloads
            )
            least = self._least_held[summing] = Held(*map(min, zip(*every, strict=True)))
        return least

    def _states(self, index: int, offload: Offload, *, summing: bool) -> Held:
        key = (index, offload, summing)
        states = self._held.get(key)
        if states is None:
            c = self._configurations[index]
            states = self._held[key] = held(_working(c, 1, 2 if summing else 1, "none", offload))
        return states

    def _passing(self, micro: int, count: int, recompute: Recompute) -> Passing:
        key = (micro / self._c.context, count, recompute)
        activations = self._passings.get(key)
        if activations is None:
            c = _working(self._c, micro, count, recompute, "none")
            activations = self._passings[key] = passing(c)
        return activations


def _working(
    c: Configuration, micro: int, count: int, recompute: Recompute, offload: Offload
) -> Configuration:
    return c.working(
        global_batch=micro * count * c.data, micro_batch=micro,
        recompute=recompute, offload=offload,
    )  # fmt: skip


@cache
def micro_batches(samples: int) -> tuple[int, ...]:
    """Return the micro-batches that divide a replica's samples: 2^n and 3 x 2^n, ascending.

    >>> micro_batches(12)
    (1, 2, 3, 4, 6, 12)
    """
    powers = (1 << n for n in range(samples.bit_length()))
    sizes = (size for power in powers for size in (power, power // 2 * 3))
    return tuple(size for size in sizes if size and samples % size == 0)
