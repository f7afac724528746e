"""Lower bounds on the time of a task: computing alone, without any communication."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.planning.model.configuration import (
    Configuration,
    LayoutFamily,
    Machine,
    Recompute,
)
from orchestration.planning.search.configurations import configuration
from orchestration.planning.search.layouts import Degrees, Layout
from orchestration.planning.search.places.memory import micro_batches
from orchestration.planning.search.places.predictions import Predictions
from orchestration.planning.search.task import Task

Devices = tuple[str, float | None, tuple[Recompute, ...]]
"""The accelerator, its interconnect, and kinds of recomputation: what bounds depend on."""


class Bounds:
    """Ways to compute a batch, on any cluster of the same devices."""

    def __init__(self, task: Task, devices: Devices, predictions: Predictions) -> None:
        """Begin without any."""
        self._task = task
        self._accelerator, self._interconnect, self._recomputes = devices
        self._predictions = predictions
        self._least: dict[tuple[int, Degrees], tuple[int, float]] = {}
        self._computing: dict[tuple[int, int, int, float], tuple[float, ...]] = {}
        self._layouts: dict[Degrees, list[tuple[Layout, Configuration]]] = {}

    def least_s(self, steps: int, samples: int, degrees: Degrees) -> float:
        """Return the lowest bound of all ways to compute steps with so many samples in a replica.

        It is that of the largest micro-batch, which takes the least time for each sample.
        """
        key = (samples, degrees)
        least = self._least.get(key)
        if least is None:
            micro = micro_batches(samples)[-1]
            least = self._least[key] = (samples // micro, min(self.micro_s(micro, degrees)))
        count, seconds = least
        return steps * count * seconds

    def micro_s(self, micro: int, degrees: Degrees) -> tuple[float, ...]:
        """Return lower bounds on the seconds of a micro-batch, by the kind of recomputation.

        Context parallelism divides its tokens, and changes nothing else about computing.
        """
        tensor, pipeline, context, expert = degrees
        key = (tensor, pipeline, expert, micro / context)
        known = self._computing.get(key)
        if known is None:
            if degrees not in self._layouts:
                self._layouts[degrees] = list(self._laid_out(degrees))
            times = [
                self._predictions.least_seconds(
                    c.working(
                        global_batch=micro * layout.expert, micro_batch=micro,
                        recompute="none", offload="none",
                    ),
                    layout,
                    self._recomputes,
                )
                for layout, c in self._layouts[degrees]
            ]  # fmt: skip
            known = self._computing[key] = tuple(map(min, zip(*times, strict=True)))
        return known

    def _laid_out(self, degrees: Degrees) -> Iterator[tuple[Layout, Configuration]]:
        """Return replicas that share experts, on one machine: those that compute unlike others.

        Under autocast products cast their operands, unless FSDP has cast the weights; beside
        weights of few bits DeepSpeed's adapters have 16 bits, and others 32.
        """
        tensor, pipeline, context, expert = degrees
        few_bits = self._task.lora is not None and self._task.lora.bits is not None
        engines: tuple[tuple[LayoutFamily, int], ...] = (("replicated", 0), ("replicated", 3))
        if few_bits:
            engines = (("replicated", 0), ("sharded", 1), ("sharded", 3))
        for family, zero in engines:
            layout = Layout(
                family=family, rank=0, zero=zero,
                tensor=tensor, pipeline=pipeline, context=context, expert=expert,
            )  # fmt: skip
            devices = layout.replica * expert
            machine = Machine(
                accelerator=self._accelerator, devices=devices, devices_per_node=devices,
                device_memory_gib=0.0, interconnect_gb_per_s=self._interconnect,
            )  # fmt: skip
            c = configuration(
                self._task, layout, machine,
                batch=expert, micro=1, recompute="none", offload="none",
            )  # fmt: skip
            yield layout, c
            if not c.autocast and not few_bits:
                return
