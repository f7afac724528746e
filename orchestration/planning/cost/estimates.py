"""Parts of a prediction, each by itself, for a search that needs them by the thousand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from orchestration.planning.cost.coefficients import fitted
from orchestration.planning.cost.collectives import cluster_links
from orchestration.planning.cost.data_parallel import Exchange, exchange, optimizer_time
from orchestration.planning.cost.devices import device
from orchestration.planning.cost.memory import (
    Held,
    Passing,
    held_bytes,
    joint_need,
    passing_bytes,
)
from orchestration.planning.cost.model_states import parameter_bytes
from orchestration.planning.cost.prediction import USABLE, predict
from orchestration.planning.cost.rates import rates
from orchestration.planning.cost.step_time import (
    DeviceTime,
    MicroTime,
    ReplicaTime,
    computing_times,
    device_time,
    micro_time,
    step_time,
)
from orchestration.planning.model.configuration import Configuration, Machine, Offload, Recompute
from orchestration.planning.model.layer_sizes import sizes
from orchestration.planning.model.shapes import ModelShape
from orchestration.planning.model.typical_shapes import transformer

HOST_SHARE: Final = 0.8
"""Fraction of the host's memory for offloaded states; the rest is for loading data."""


def memory_need(c: Configuration) -> float:
    """Return the GiB that the fullest device needs at the high end of the prediction."""
    return joint_need(held(c), passing(c)) * margin(c.machine.accelerator, c.model)


def held(c: Configuration) -> Held:
    """Predict the part of a device's memory that no micro-batch and no recomputation changes."""
    return held_bytes(c, sizes(c.model, c.sequence))


def passing(c: Configuration) -> Passing:
    """Predict activations, which no way to shard or to offload states changes."""
    return passing_bytes(c, sizes(c.model, c.sequence))


def margin(accelerator: str, model: ModelShape) -> float:
    """Return the high end of predicted memory over its expected value."""
    return _margin(accelerator, model.approximate)


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


def device_seconds(c: Configuration) -> DeviceTime:
    """Predict the computing of a micro-batch on one device, of all clusters that have it."""
    return device_time(c, sizes(c.model, c.sequence), fitted())


def micro_seconds(c: Configuration, computing: DeviceTime) -> MicroTime:
    """Predict one of any number of micro-batches, whatever way states are sharded or offloaded."""
    return micro_time(c, sizes(c.model, c.sequence), fitted(), computing)


def replica_seconds(c: Configuration, micro: MicroTime) -> ReplicaTime:
    """Predict the part of a step that all ways to shard or to offload states have in common."""
    return micro.replica(c, sizes(c.model, c.sequence), fitted())


class Ranks(NamedTuple):
    """Seconds that a layout's ranks take for states, whatever they compute."""

    exchanged: Exchange
    update: float
    """Updating states on the device or, if that takes less, on the host."""

    def least_step(self, replica: ReplicaTime) -> float:
        """Return the seconds of a step, which no offloading makes less."""
        return replica.seconds(self.exchanged, self.update)


def ranks_seconds(c: Configuration, offloads: Iterable[Offload]) -> Ranks:
    """Predict the seconds that the ranks of a layout take, with one of several ways to offload."""
    s, k, d = sizes(c.model, c.sequence), fitted(), device(c.machine.accelerator)
    batch = c.data  # one micro-batch: more of them only send the host more
    ways = (
        c.working(global_batch=batch, micro_batch=1, recompute="none", offload=offload)
        for offload in offloads
    )
    update = min(optimizer_time(way, s, rates(way, d, k), k) for way in ways)
    return Ranks(exchange(c, s, cluster_links(c, d, k)), update)


def computing_seconds(
    c: Configuration, computing: DeviceTime, kinds: Iterable[Recompute]
) -> tuple[float, ...]:
    """Predict a step without communication and optimizer, by the kind of recomputation."""
    return computing_times(c, sizes(c.model, c.sequence), fitted(), computing, kinds)


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
