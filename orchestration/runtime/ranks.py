"""This process's place among those that train together."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Mapping

from .environment import Variables
from .launchers import Place, launched
from .machines import InstanceGroup, Machines

# SageMaker's PyTorch container sets MASTER_PORT to this before it launches anything.
_SAGEMAKER_PORT = 7777
# PyTorch's and TensorFlow's examples, and torchrun's default.
_LOCAL_PORT = 29500


@dataclass(frozen=True)
class Cluster:
    """The processes that train together, seen from this one.

    >>> Cluster.from_environment({}).world_size
    1
    >>> toolkit = {"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2"}
    >>> torchrun = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    >>> here = Cluster.from_environment({**toolkit, **torchrun})
    >>> here.launcher, here.node_rank, here.current_host, here.is_first
    ('torchrun', 1, 'algo-2', False)
    """

    launcher: str
    """`torchrun`, `mpirun`, `smddp` (SageMaker's data parallel library, and its `pytorchddp`),
    `xla` (xla_spawn), `lightning` (processes that Lightning starts), `tensorflow` (TF_CONFIG),
    `mxnet` (DMLC), `sagemaker` (the script started once per host) or `none` (not on SageMaker)."""
    world_size: int
    """Processes that train together."""
    rank: int
    """From 0; -1 in a process that does not train (parameter server, scheduler, evaluator)."""
    local_size: int
    """Processes that train on this host."""
    local_rank: int
    """From 0, on this host; -1 in a process that does not train."""
    host_count: int
    node_rank: int
    """This host among the hosts; -1 if it holds no process that trains."""
    hosts: tuple[str, ...]
    """The hosts that train together; empty if there are several and their names are unknown."""
    current_host: str | None
    master_address: str
    master_port: int
    devices_per_host: int
    """GPUs or Neuron devices; 0 on CPUs, and if SageMaker does not state it."""
    accelerator: str
    """`gpu`, `neuron` or `none`."""
    role: str = "worker"
    """`worker`, `server`, `scheduler` or `evaluator`."""
    groups: tuple[InstanceGroup, ...] = ()
    """All instance groups of the job, including those that do not train with this one."""
    group: str | None = None
    """The instance group of this host."""

    @property
    def is_first(self) -> bool:
        """True in the one process that writes shared results."""
        return self.rank == 0

    @property
    def is_first_on_host(self) -> bool:
        """True in the one process per host that does work needed once per host."""
        return self.local_rank == 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Cluster:
        """Read the variables of the launcher in use; a pure function of `environ`.

        `environ`: `os.environ` by default.

        Raises ClusterError, with all problems, if they are incomplete or contradict each other.
        """
        variables = Variables(os.environ if environ is None else environ)
        machines = Machines.read(variables)
        place = launched(variables)
        variables.check()
        place = _alone(machines, variables) if place is None else place
        variables.check()
        return _seated(place, machines, variables)


def cluster() -> Cluster:
    """Return this process's place among those that train together.

    >>> cluster().world_size >= 1
    True
    """
    return Cluster.from_environment()


def _alone(machines: Machines, variables: Variables) -> Place:
    """Place one process per host, without a launcher."""
    hosts = machines.training_with(machines.current_host)
    if not hosts:
        return Place("none", 0, 1, 0, 1, 0, 1, hosts=("localhost",), current_host="localhost")
    if machines.current_host is None:
        variables.object(f"{variables.show('SM_HOSTS')} without SM_CURRENT_HOST")
        return Place("sagemaker", 0, len(hosts))
    rank = hosts.index(machines.current_host)
    return Place("sagemaker", rank, len(hosts), 0, 1, rank, len(hosts), hosts=hosts)


def _seated(place: Place, machines: Machines, variables: Variables) -> Cluster:
    # mpirun hands the first host's variables on to processes on other hosts.
    by_rank = place.launcher in ("mpirun", "smddp")
    hosts = place.hosts or machines.training_with(machines.current_host)
    place = _completed(place, hosts, variables)
    variables.check()
    local_size, host_count = place.local_size or 1, place.host_count or 1
    node_rank = place.node_rank if place.node_rank is not None else _node_rank(place, variables)
    _check(replace(place, node_rank=node_rank), hosts, variables)
    variables.check()
    if not hosts and host_count == 1:
        hosts = (machines.current_host or "localhost",)
    current = place.current_host or machines.current_host
    if hosts and (by_rank or current is None) and node_rank >= 0:
        current = hosts[node_rank]
    if machines.hosts and place.current_host in machines.hosts:
        _check_host(place, machines, variables)
    group = machines.group_of(current)
    address = place.master_address or variables.text("MASTER_ADDR")
    port = place.master_port or variables.number("MASTER_PORT", 1)
    variables.check()
    return Cluster(
        launcher=place.launcher,
        world_size=place.world_size,
        rank=place.rank,
        local_size=local_size,
        local_rank=place.local_rank or 0,
        host_count=host_count,
        node_rank=node_rank,
        hosts=hosts,
        current_host=current,
        master_address=address or (hosts[0] if machines.hosts and hosts else "127.0.0.1"),
        master_port=port or (_SAGEMAKER_PORT if machines.hosts else _LOCAL_PORT),
        devices_per_host=machines.devices_per_host,
        accelerator=machines.accelerator,
        role=place.role,
        groups=machines.groups,
        group=group.name if group else None,
    )


def _completed(place: Place, hosts: tuple[str, ...], variables: Variables) -> Place:
    """Fill in what follows if every host runs the same number of processes."""
    given = variables.show(*place.named)
    host_count, local_size, world = place.host_count, place.local_size, place.world_size
    if host_count is None and local_size and world % local_size == 0:
        host_count = world // local_size
    if host_count is None:
        host_count = len(hosts) or (1 if world == 1 else None)
    if host_count is None:
        variables.object(f"{given} don't tell how many processes each host has")
        return place
    if local_size is None:
        if world % host_count:
            variables.object(f"{given}: {world} processes are not evenly on {host_count} hosts")
            return place
        local_size = world // host_count
    local_rank = place.rank % local_size if place.local_rank is None else place.local_rank
    return replace(place, host_count=host_count, local_size=local_size, local_rank=local_rank)


def _node_rank(place: Place, variables: Variables) -> int:
    """Find the host of a process from the way ranks are assigned to hosts."""
    rank, local_rank = place.rank, place.local_rank or 0
    local_size, host_count = place.local_size or 1, place.host_count or 1
    if local_size * host_count == place.world_size:
        if rank % local_size == local_rank:
            return rank // local_size
        if rank // host_count == local_rank:
            # mpirun --map-by node
            return rank % host_count
    variables.object(f"{variables.show(*place.named)} don't tell which host this process is on")
    return 0


def _check(place: Place, hosts: tuple[str, ...], variables: Variables) -> None:
    given = variables.show(*place.named)
    local_size, host_count = place.local_size or 1, place.host_count or 1
    local_rank, node_rank = place.local_rank or 0, place.node_rank or 0
    if place.rank >= place.world_size or local_rank >= local_size or node_rank >= host_count:
        variables.object(f"{given}: a rank is as great as its size, or greater")
    elif local_size > place.world_size or host_count > place.world_size:
        variables.object(f"{given}: {place.world_size} processes are fewer than hosts or slots")
    elif (
        place.launcher in ("torchrun", "lightning", "xla")
        and local_size * host_count == place.world_size
        and place.rank != node_rank * local_size + local_rank
    ):
        variables.object(f"{given} contradict each other")
    if hosts and host_count != len(hosts):
        variables.object(
            f"{given}: {place.launcher} runs on {host_count} hosts, of {len(hosts)} "
            f"({', '.join(hosts)}): the others would train by themselves"
        )


def _check_host(place: Place, machines: Machines, variables: Variables) -> None:
    if machines.current_host is not None and place.current_host != machines.current_host:
        variables.object(
            f"{' and '.join(place.named)} says that this is {place.current_host}, "
            f"SM_CURRENT_HOST={machines.current_host}"
        )
