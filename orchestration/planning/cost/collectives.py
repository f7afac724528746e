"""Time of collective communication."""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.planning.cost.coefficients import Coefficients
from orchestration.planning.cost.devices import Device
from orchestration.planning.model.configuration import Configuration

_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Links:
    """Bandwidths that a cluster reaches, in bytes per second, and latencies in seconds."""

    inside: float
    """Bandwidth from one device to the others of its node."""
    node: float
    """Bandwidth out of a node, for all its devices together."""
    inside_latency: float
    node_latency: float
    hop: float
    """Latency of each further node in a ring."""
    devices_per_node: int
    """Devices that share `inside` and `node`: those of a node, or of an NVL72 rack."""
    interference: float
    """Seconds lost per second in which computing and communicating overlap."""
    exposed: float
    """Fraction of the communication inside a replica that nothing hides."""
    sync: float
    """Time that the framework loses per collective by waiting for the device."""


def cluster_links(c: Configuration, d: Device, k: Coefficients) -> Links:
    """Return what the links of the configuration's cluster reach."""
    machine = c.machine
    inside = machine.interconnect_gb_per_s or d.interconnect_gb_per_s
    joined = max(d.domain, machine.devices_per_node)
    reached = machine.collective_gbps or (machine.network_gbps or 0.0) * k.network_share
    network = reached * joined / machine.devices_per_node
    return Links(
        inside * _GIGA * k.interconnect_share,
        network / 8 * _GIGA,
        k.interconnect_latency_us * 1e-6,
        k.network_start_us * 1e-6,
        k.network_latency_us * 1e-6,
        joined,
        k.overlap_interference,
        k.tensor_exposed if c.overlap_tensor else 1.0,
        k.sync_latency_us * 1e-6 if c.deepspeed else 0.0,
    )


def latency(ranks: int, inside: int, links: Links) -> float:
    """Return the time of a collective that moves nothing: its ring still passes every node."""
    if ranks <= 1:
        return 0.0
    if inside >= ranks:
        return links.inside_latency
    return links.node_latency + links.hop * (ranks / inside - 1)


def broadcast_latency(ranks: int, inside: int, links: Links) -> float:
    """Return the time of a broadcast that moves nothing: a chain of all ranks.

    Each node passes the data on from device to device before the next one has them, where all
    nodes of another collective's ring send at once.
    """
    if inside >= ranks:
        return latency(ranks, inside, links)
    return latency(ranks, inside, links) + links.inside_latency * (ranks / inside - 1)


def gather(buffer: float, ranks: int, inside: int, links: Links) -> float:
    """Return the time of an all-gather, or a reduce-scatter, of `buffer` bytes on each rank.

    `inside` of the `ranks` share a node. The other devices of the node run the same collective in
    other groups, so that each group has only its share of the node's network.
    """
    if ranks <= 1:
        return 0.0
    moved = buffer * (ranks - 1) / ranks
    if inside >= ranks:
        return moved / links.inside
    groups = max(1, links.devices_per_node // inside)
    return moved / min(links.inside, links.node / groups)


def reduce(buffer: float, ranks: int, inside: int, links: Links) -> float:
    """Return the time of an all-reduce: a reduce-scatter and an all-gather."""
    return 2 * gather(buffer, ranks, inside, links)


def transfer(message: float, crosses: bool, links: Links) -> float:
    """Return the time of a message from every device to its partner, in another node or its own."""
    if crosses:
        bandwidth = min(links.inside, links.node / links.devices_per_node)
        return message / bandwidth + links.node_latency
    return message / links.inside + links.inside_latency


def exposed_time(computing: float, communicating: float, links: Links) -> float:
    """Return the time that communicating adds to computing when they overlap."""
    shorter = min(computing, communicating)
    return communicating - shorter + links.interference * shorter
