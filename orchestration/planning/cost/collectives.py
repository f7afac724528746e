"""Time of collective communication."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.devices import Device
from orchestration.planning.model.configuration import Configuration

_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Links:
    """Bandwidths reached, bytes per second, and latencies, seconds."""

    inside: float
    """From one device to the others of its node."""
    node: float
    """Out of a node, all its devices together."""
    inside_latency: float
    node_latency: float
    hop: float
    devices_per_node: int
    """Devices that share `inside`, and `node`: a node, or a rack that one NVLink switch joins."""
    interference: float
    """Slow-down of the shorter of computing and communicating while both run."""
    exposed: float
    """Share of communication inside a replica that stays visible."""
    sync: float
    """Time lost where the framework waits for the device around a collective."""


def links(c: Configuration, d: Device, k: Coefficients) -> Links:
    """What the cluster's links reach."""
    machine = c.machine
    inside = machine.interconnect_gb_per_s or d.interconnect_gb_per_s
    joined = max(d.domain, machine.devices_per_node)
    network = (machine.network_gbps or 0.0) * joined / machine.devices_per_node
    return Links(
        inside * _GIGA * k.interconnect_share,
        network / 8 * _GIGA * (k.omnipath_share if machine.omnipath else k.network_share),
        k.interconnect_latency_us * 1e-6,
        k.network_start_us * 1e-6,
        k.network_latency_us * 1e-6,
        joined,
        k.overlap_interference,
        k.tensor_exposed if c.overlap_tensor else 1.0,
        k.sync_latency_us * 1e-6 if c.deepspeed else 0.0,
    )


def latency(ranks: int, inside: int, to: Links) -> float:
    """What one collective takes however little it moves: a ring passes every node."""
    if ranks <= 1:
        return 0.0
    if inside >= ranks:
        return to.inside_latency
    return to.node_latency + to.hop * (ranks / inside - 1)


def gather(buffer: float, ranks: int, inside: int, to: Links) -> float:
    """An all-gather to, or a reduce-scatter of, `buffer` bytes on each of `ranks`.

    `inside` of the ranks share a node. The other devices of the node do the same in other groups,
    so a group has its share of the node's network only.
    """
    if ranks <= 1:
        return 0.0
    moved = buffer * (ranks - 1) / ranks
    if inside >= ranks:
        return moved / to.inside
    groups = max(1, to.devices_per_node // inside)
    return moved / min(to.inside, to.node / groups)


def reduce(buffer: float, ranks: int, inside: int, to: Links) -> float:
    """An all-reduce: a reduce-scatter and an all-gather."""
    return 2 * gather(buffer, ranks, inside, to)


def transfer(message: float, crosses: bool, to: Links) -> float:
    """A message from every device to its partner, in another node or not."""
    if crosses:
        return message / min(to.inside, to.node / to.devices_per_node) + to.node_latency
    return message / to.inside + to.inside_latency


def beside(computing: float, communicating: float, to: Links) -> float:
    """Time that communicating adds to computing when both run at once."""
    shorter = min(computing, communicating)
    return communicating - shorter + to.interference * shorter
