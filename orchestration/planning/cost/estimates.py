"""The parts of a prediction that a search asks for thousands of times, each by itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.memory import memory_use
from orchestration.planning.cost.model_states import parameter_bytes
from orchestration.planning.cost.prediction import USABLE, predict
from orchestration.planning.cost.step_time import step_time
from orchestration.planning.model.configuration import Configuration, Machine
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.model.typical_shapes import transformer

HOST_SHARE: Final = 0.8
"""Share of the host's memory that offloaded states may take; the rest loads data."""


def memory_need(c: Configuration) -> float:
    """GiB that the fullest device needs at the pessimistic end of the prediction."""
    need = memory_use(c, sizes(c.model, c.sequence), fitted()).need
    return need * _margin(c.machine.accelerator, c.model.approximate)


def memory_room(c: Configuration) -> float:
    """GiB of one device that there are to use."""
    return USABLE * c.machine.device_memory_gib


def host_need(c: Configuration) -> float:
    """GiB that offloaded states take on one instance."""
    if c.offload == "none":
        return 0.0
    each = parameter_bytes(c)
    parameters = c.model.parameters
    trained = parameters if c.trainable is None else c.trainable
    moved = float(trained * each.optimizer)
    if c.offload == "all":
        moved += parameters * each.weight + trained * each.gradient
    return moved / c.shards * c.machine.devices_per_node / 2**30


def step_seconds(c: Configuration) -> float:
    """Seconds of one optimizer step."""
    return step_time(c, sizes(c.model, c.sequence), fitted()).total


def computing_seconds(c: Configuration) -> float:
    """Seconds of one optimizer step that go to computing alone."""
    time = step_time(c, sizes(c.model, c.sequence), fitted())
    return time.forward + time.backward + time.recompute + time.head


@cache
def _margin(accelerator: str, approximate: bool) -> float:
    """The pessimistic end of memory over what is expected; it is the same for all of a kind."""
    model = transformer(layers=2, hidden=512, heads=8, vocabulary=32000)
    one = Machine(accelerator=accelerator, devices=1, devices_per_node=1, device_memory_gib=16)
    told = predict(
        Configuration(
            model=replace(model, approximate=approximate), machine=one, sequence=512,
            global_batch=1, micro_batch=1,
        )
    )  # fmt: skip
    return told.memory_high_gib / told.memory_gib
