"""Work that a search tries, and predictions that its clusters share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from orchestration.planning.cost.step_time import MicroTime
from orchestration.planning.model.configuration import Configuration, Recompute
from orchestration.planning.search.layouts import Degrees, Layout, layouts
from orchestration.planning.search.places.bounds import Bounds, Devices
from orchestration.planning.search.places.place import Place
from orchestration.planning.search.places.predictions import Predictions
from orchestration.planning.search.strategy_choice import StrategyCache

if TYPE_CHECKING:
    from orchestration.catalog import Instance
    from orchestration.planning.search.task import Task


class Known:
    """Predictions of one cluster, which every search for a task asks for again."""

    def __init__(self) -> None:
        """Begin without any."""
        self.places: dict[Layout, Place] = {}
        self.laid_out: dict[tuple[object, ...], Configuration] = {}
        """Configurations of layouts that differ in the sharding of states alone."""
        self.micros: dict[tuple[object, ...], MicroTime] = {}
        """Times of a micro-batch by what it is and how it is laid out."""


class Shared:
    """Predictions that the searches for a task share."""

    def __init__(self, task: Task) -> None:
        """Begin without any."""
        self.task = task
        self.predictions = Predictions(task)
        self.spans: dict[int, tuple[int, float]] = {}
        """Steps of the whole training, and seconds beside them, by batch."""
        self.choices: dict[object, StrategyCache] = {}
        """Strategies that were chosen, by those allowed."""
        self.clusters: dict[tuple[str, int], Known] = {}
        """Predictions by instance type and count."""
        self._bounds: dict[Devices, Bounds] = {}
        self._layouts: dict[tuple[int, int, str], tuple[Layout, ...]] = {}

    def bounds_of(self, devices: Devices) -> Bounds:
        """Return the bounds on every cluster of the same devices."""
        if devices not in self._bounds:
            self._bounds[devices] = Bounds(self.task, devices, self.predictions)
        return self._bounds[devices]

    def layouts_of(self, instance: Instance, count: int) -> tuple[Layout, ...]:
        """Return every layout of the task on this many instances, simple ones first."""
        key = (instance.devices, count, instance.family)
        if key not in self._layouts:
            self._layouts[key] = tuple(layouts(self.task, instance, count))
        return self._layouts[key]


class Group:
    """Layouts that split a batch and its computing alike on one cluster."""

    def __init__(self, replicas: int, degrees: Degrees, layouts: tuple[Layout, ...]) -> None:
        """Leave the places to whoever tries one."""
        self.replicas = replicas
        self.degrees = degrees
        self.layouts = layouts
        self.places: list[Place] = []
        self.kins: list[Place] = []


class Work(NamedTuple):
    """Computing that several layouts share, in the order in which it is tried."""

    bound: float
    """Seconds of the whole training without communication and optimizer."""
    order: int
    """Order of what has the same bound."""
    micro_batch: int
    recompute: Recompute
    batch: int
    group: Group
    limits: list[float]
    """The largest micro-batch that fits each layout, whatever is offloaded; infinite: unknown.

    Shared with the work of other micro-batches, of the same batch and recomputation."""
