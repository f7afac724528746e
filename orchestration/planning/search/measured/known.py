"""Measurements of a task, with the configurations that they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestration.catalog import accelerators, instances
from orchestration.planning.cost.prediction import Prediction
from orchestration.planning.model.configuration import Configuration, ConfigurationError
from orchestration.planning.model.measurements import MeasuredLayout, model_digest
from orchestration.planning.search.configurations import configuration, machine_of
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.suitability import peak_tflops

if TYPE_CHECKING:
    from orchestration.planning.model.measurements import Measurement
    from orchestration.planning.search.task import Task


@dataclass(frozen=True, slots=True)
class Known:
    """A measurement, and the configuration that it is of."""

    measurement: Measurement
    configuration: Configuration
    prediction: Prediction
    """The prediction without any measurement."""


def known_of(task: Task, predict: Callable[[Configuration], Prediction]) -> Iterator[Known | str]:
    """Return the measurements with their configurations, or the reason to leave one out.

    `predict`: makes the prediction without any measurement.
    """
    digest = model_digest(task.model) if task.measurements else ""
    for each in task.measurements:
        if each.model != digest:
            yield "of another model"
            continue
        c = configuration_of(task, each)
        try:
            known = None if c is None else Known(each, c, predict(c))
        except ConfigurationError:  # nothing is known of the accelerator
            known = None
        if known is None:
            yield "of machines that are unknown, or too small for the layout"
        elif _mfu(task, known) > 1:
            yield "faster than the devices can be"
        else:
            yield known


def _mfu(task: Task, known: Known) -> float:
    """Return the share of the devices' peak that a measured step would have taken."""
    c, seconds = known.configuration, known.measurement.step_time_s
    peak = peak_tflops(accelerators()[c.machine.accelerator], c.precision)
    if seconds is None or not peak:
        return 0.0
    flops = replace(task, sequence=c.sequence).flops_per_token * c.tokens
    return flops / seconds / (peak * 1e12 * c.machine.devices)


def configuration_of(task: Task, measured: Measurement) -> Configuration | None:
    """Return the configuration of a measurement; ``None``: the catalog can't describe it."""
    instance = instances().get(measured.instance_type)
    if instance is None or instance.accelerator is None:
        return None
    layout = Layout(rank=0, **measured.layout.model_dump())
    same = replace(
        task,
        sequence=measured.sequence,
        precision=measured.precision,
        optimizer=measured.optimizer,
    )
    try:
        return configuration(
            same, layout, machine_of(instance, measured.instance_count, layout),
            batch=measured.global_batch, micro=measured.micro_batch,
            recompute=measured.recompute, offload=measured.offload,
        )  # fmt: skip
    except ConfigurationError:
        return None


def measured_layout(layout: Layout) -> MeasuredLayout:
    """Return a layout as a file of measurements holds it."""
    return MeasuredLayout(**{name: getattr(layout, name) for name in MeasuredLayout.model_fields})
