"""Parts of a prediction, each by itself, for a search that needs them by the thousand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Final

from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.memory import memory_use
from orchestration.planning.cost.model_states import parameter_bytes
from orchestration.planning.cost.prediction import USABLE, predict
from orchestration.planning.cost.step_time import computing_times, step_time
from orchestration.planning.model.configuration import Configuration, Machine, Recompute
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.model.typical_shapes import transformer

HOST_SHARE: Final = 0.8
"""Fraction of the host's memory for offloaded states; the rest is for loading data."""


def memory_need(c: Configuration) -> float:
    """Return the GiB that the fullest device needs at the high end of the prediction."""
    need = memory_use(c, sizes(c.model, c.sequence), fitted()).need
    return need * _margin(c.machine.accelerator, c.model.approximate)


def memory_room(c: Configuration) -> float:
    """Return the GiB of one device that programs can use."""
    return USABLE * c.machine.device_memory_gib


def host_need(c: Configuration) -> float:
    """Return the GiB that offloaded states take in the memory of one host."""
    if c.offload == "none":
        return 0.0
    per_parameter = parameter_bytes(c)
    parameters = c.model.parameters
    trained = parameters if c.trainable is None else c.trainable
    moved = float(trained * per_parameter.optimizer)
    if c.offload == "all":
        moved += parameters * per_parameter.weight + trained * per_parameter.gradient
    return moved / c.shards * c.machine.devices_per_node / 2**30


def step_seconds(c: Configuration) -> float:
    """Predict the seconds of one optimizer step."""
    return step_time(c, sizes(c.model, c.sequence), fitted()).total


def computing_seconds(c: Configuration, kinds: Iterable[Recompute]) -> tuple[float, ...]:
    """Predict a step without communication and optimizer, by the kind of recomputation."""
    return computing_times(c, sizes(c.model, c.sequence), fitted(), kinds)


@cache
def _margin(accelerator: str, approximate: bool) -> float:
    """Return the high end of predicted memory over its expected value."""
    model = transformer(layers=2, hidden=512, heads=8, vocabulary=32000)
    machine = Machine(accelerator=accelerator, devices=1, devices_per_node=1, device_memory_gib=16)
    prediction = predict(
        Configuration(
            model=replace(model, approximate=approximate), machine=machine, sequence=512,
            global_batch=1, micro_batch=1,
        )
    )  # fmt: skip
    return prediction.memory_high_gib / prediction.memory_gib
