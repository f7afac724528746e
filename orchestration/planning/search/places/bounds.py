"""Lower bounds on the time of a task: computing alone, without any communication."""

from __future__ import annotations

from orchestration.planning.model.configuration import Configuration, Machine, Recompute
from orchestration.planning.search.configurations import configuration
from orchestration.planning.search.layouts import Degrees, Layout
from orchestration.planning.search.places.memory import micro_batches
from orchestration.planning.search.places.predictions import Predictions
from orchestration.planning.search.task import Task

Way = tuple[float, int, Recompute]
"""A lower bound in seconds, a micro-batch, and what is recomputed."""
Devices = tuple[str, float | None, tuple[Recompute, ...]]
"""The accelerator, its interconnect, and kinds of recomputation: what bounds depend on."""


class Bounds:
    """Ways to compute a batch, on any cluster of the same devices."""

    def __init__(self, task: Task, devices: Devices, predictions: Predictions) -> None:
        """Begin without any."""
        self._task = task
        self._accelerator, self._interconnect, self._recomputes = devices
        self._predictions = predictions
        self._ways: dict[tuple[int, int, Degrees], list[Way]] = {}
        self._computing: dict[Degrees, dict[int, tuple[float, ...]]] = {}
        self._layouts: dict[Degrees, tuple[Layout, Configuration]] = {}

    def ways(self, batch: int, samples: int, degrees: Degrees) -> list[Way]:
        """Return the ways to compute a batch with so many samples for each replica, best first."""
        key = (batch, samples, degrees)
        ways = self._ways.get(key)
        if ways is None:
            steps = self._task.steps(batch)
            ways = self._ways[key] = []
            for micro in micro_batches(samples):
                repeated = steps * (samples // micro)
                ways += [
                    (repeated * seconds, micro, kind)
                    for kind, seconds in zip(
                        self._recomputes, self._least_s(micro, degrees), strict=True
                    )
                ]
            ways.sort()
        return ways

    def _least_s(self, micro: int, degrees: Degrees) -> tuple[float, ...]:
        """Return lower bounds on the seconds of a micro-batch, by the kind of recomputation."""
        known = self._computing.setdefault(degrees, {})
        if micro not in known:
            if degrees not in self._layouts:
                self._layouts[degrees] = self._laid_out(degrees)
            layout, c = self._layouts[degrees]
            c = c.working(
                global_batch=micro * layout.expert, micro_batch=micro,
                recompute="none", offload="none",
            )  # fmt: skip
            known[micro] = self._predictions.least_seconds(c, layout, self._recomputes)
        return known[micro]

    def _laid_out(self, degrees: Degrees) -> tuple[Layout, Configuration]:
        """Return replicas that share experts, on one machine."""
        tensor, pipeline, context, expert = degrees
        layout = Layout(
            family="replicated", rank=0,
            tensor=tensor, pipeline=pipeline, context=context, expert=expert,
        )  # fmt: skip
        devices = layout.replica * expert
        machine = Machine(
            accelerator=self._accelerator, devices=devices, devices_per_node=devices,
            device_memory_gib=0.0, interconnect_gb_per_s=self._interconnect,
        )  # fmt: skip
        return layout, configuration(
            self._task, layout, machine,
            batch=expert, micro=1, recompute="none", offload="none",
        )  # fmt: skip
