"""The variables that each launcher sets for the processes it starts.

https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html
https://www.tensorflow.org/guide/distributed_training#TF_CONFIG
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .environment import Variables

# Variables of different launchers that mean the same. Some launchers start others.
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "XRT_SHARD_ORDINAL")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL_RANKS = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "XRT_SHARD_LOCAL_ORDINAL",
)
_LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")

_TF_WORKERS = ("chief", "master", "worker")
_ROLES = {
    "chief": "worker",
    "master": "worker",
    "worker": "worker",
    "ps": "server",
    "server": "server",
    "scheduler": "scheduler",
    "evaluator": "evaluator",
}


@dataclass(frozen=True)
class Place:
    """A process's place among those of its launcher; None where the launcher gives no value."""

    launcher: str
    rank: int
    world_size: int
    local_rank: int | None = None
    local_size: int | None = None
    node_rank: int | None = None
    host_count: int | None = None
    role: str = "worker"
    hosts: tuple[str, ...] = ()
    current_host: str | None = None
    master_address: str | None = None
    master_port: int | None = None
    named: tuple[str, ...] = ()
    """The variables this was read from, for messages."""


def launched(variables: Variables) -> Place | None:
    """Return the place that a launcher gave this process; None without a launcher."""
    nested = _torchrun_inside_mpirun(variables)
    if "RANK" in variables and not nested:
        for names in (_RANKS, _SIZES, _LOCAL_RANKS, _LOCAL_SIZES):
            variables.agree(names)
    # The innermost first: torchrun may run inside mpirun, and mpirun's script may use TF_CONFIG.
    if "TORCHELASTIC_RUN_ID" in variables and "RANK" in variables:
        return _torchrun(variables)
    for read in (_open_mpi, _pmi, _torchrun, _lightning, _xrt, _tf_config, _dmlc):
        place = read(variables)
        if place is not None:
            return place
    return None


def _torchrun_inside_mpirun(variables: Variables) -> bool:
    """Return whether mpirun started one torchrun per host; its ranks then count hosts."""
    inside = "TORCHELASTIC_RUN_ID" in variables and "OMPI_COMM_WORLD_SIZE" in variables
    return inside and (
        variables.number("OMPI_COMM_WORLD_SIZE") == variables.number("GROUP_WORLD_SIZE")
        and variables.number("OMPI_COMM_WORLD_RANK") == variables.number("GROUP_RANK")
    )


def _torchrun(variables: Variables) -> Place | None:
    if "RANK" not in variables:
        return None
    rank, world_size = variables.numbers("RANK", "WORLD_SIZE") or (0, 1)
    return Place(
        launcher="torchrun",
        rank=rank,
        world_size=world_size,
        local_rank=variables.number("LOCAL_RANK"),
        local_size=variables.number("LOCAL_WORLD_SIZE", 1),
        node_rank=variables.number("GROUP_RANK"),
        host_count=variables.number("GROUP_WORLD_SIZE", 1),
        named=(
            "RANK",
            "WORLD_SIZE",
            "LOCAL_RANK",
            "LOCAL_WORLD_SIZE",
            "GROUP_RANK",
            "GROUP_WORLD_SIZE",
        ),
    )


def _lightning(variables: Variables) -> Place | None:
    """Read PyTorch Lightning, which starts a process per device without setting RANK."""
    names = ("LOCAL_RANK", "WORLD_SIZE")
    if any(name not in variables for name in names):
        return None
    local_rank, world_size = variables.numbers(*names) or (0, 1)
    node_rank = variables.number("NODE_RANK") or 0
    host_count = len(variables.words("SM_HOSTS")) or 1
    local_size = max(1, world_size // host_count)
    return Place(
        launcher="lightning",
        rank=node_rank * local_size + local_rank,
        world_size=world_size,
        local_rank=local_rank,
        local_size=local_size,
        node_rank=node_rank,
        host_count=host_count,
        named=(*names, "NODE_RANK", "SM_HOSTS"),
    )


def _open_mpi(variables: Variables) -> Place | None:
    # OMPI_COMM_WORLD_NODE_RANK is the rank of the process on its node, not that of the node.
    names = tuple(
        f"OMPI_COMM_WORLD_{word}" for word in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")
    )
    values = variables.numbers(*names)
    if values is None:
        return None
    smddp = ("SMDATAPARALLEL_USE_SINGLENODE", "SMDATAPARALLEL_USE_HOMOGENEOUS")
    return Place(
        launcher="smddp" if any(name in variables for name in smddp) else "mpirun",
        rank=values[0],
        world_size=values[1],
        local_rank=values[2],
        local_size=values[3],
        master_address=variables.text("SMDATAPARALLEL_SERVER_ADDR"),
        named=names,
    )


def _pmi(variables: Variables) -> Place | None:
    """Read MPICH and Intel MPI."""
    world = variables.numbers("PMI_RANK", "PMI_SIZE")
    if world is None:
        return None
    return Place(
        launcher="mpirun",
        rank=world[0],
        world_size=world[1],
        local_rank=variables.number("MPI_LOCALRANKID"),
        local_size=variables.number("MPI_LOCALNRANKS", 1),
        named=("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    )


def _xrt(variables: Variables) -> Place | None:
    """Read PyTorch/XLA's xla_spawn; a process that has yet to spawn represents its host."""
    host = variables.number("XRT_HOST_ORDINAL")
    names = ("XRT_SHARD_ORDINAL", "XRT_SHARD_WORLD_SIZE")
    if host is None and names[0] not in variables:
        return None
    workers = [worker for worker in (variables.text("XRT_WORKERS") or "").split("|") if worker]
    # localservice:0;algo-1:43857
    hosts = tuple(worker.rpartition(";")[2].rpartition(":")[0] for worker in workers)
    mesh = variables.text("XRT_MESH_SERVICE_ADDRESS")
    address, port = _address(variables, "XRT_MESH_SERVICE_ADDRESS", mesh) if mesh else (None, None)
    size = variables.number(names[1], 1)
    if size is None:
        variables.object(f"{variables.show('XRT_HOST_ORDINAL', names[0])} without {names[1]}")
    alone = names[0] not in variables
    return Place(
        launcher="xla",
        rank=(host if alone else variables.number(names[0])) or 0,
        world_size=size or 1,
        local_rank=0 if alone else variables.number("XRT_SHARD_LOCAL_ORDINAL"),
        local_size=1 if alone else None,
        node_rank=host,
        host_count=variables.number("XRT_HOST_WORLD_SIZE", 1) or len(hosts) or None,
        hosts=hosts,
        master_address=address,
        master_port=port,
        named=(*names, "XRT_SHARD_LOCAL_ORDINAL", "XRT_HOST_ORDINAL", "XRT_WORKERS"),
    )


def _tf_config(variables: Variables) -> Place | None:
    """Read TensorFlow's description of its cluster: parameter servers or mirrored workers."""
    config = variables.mapping("TF_CONFIG")
    cluster, task = config.get("cluster"), config.get("task")
    if not cluster:
        return None
    if not isinstance(cluster, dict) or not isinstance(task, dict):
        variables.object("TF_CONFIG must hold the objects 'cluster' and 'task'")
        return None
    kind, index = task.get("type"), task.get("index")
    members = {str(name): _members(variables, name, cluster[name]) for name in cluster}
    own = members.get(str(kind), [])
    is_evaluator = kind == "evaluator"
    if (
        kind not in _ROLES
        or not isinstance(index, int)
        or not (index in range(len(own)) or is_evaluator)
    ):
        variables.object(f"TF_CONFIG's task {kind!r} {index!r} is not in its cluster")
        return None
    workers = [member for name in _TF_WORKERS for member in members.get(name, [])]
    if not workers:
        variables.object("TF_CONFIG's cluster has no workers")
        return None
    first = sum(len(members.get(name, [])) for name in _TF_WORKERS[: _worker_kind(kind)])
    host = own[index][0] if own else None
    return _among(workers, first + index, _ROLES[kind], host)


def _worker_kind(kind: Any) -> int:
    return _TF_WORKERS.index(kind) if kind in _TF_WORKERS else 0


def _members(variables: Variables, name: object, addresses: Any) -> list[tuple[str, int]]:
    where = f"TF_CONFIG's cluster.{name}"
    return [_address(variables, where, text) for text in variables.strings(addresses, where)]


def _among(workers: list[tuple[str, int]], position: int, role: str, host: str | None) -> Place:
    """Find the place of a worker, or of another process, in a list of addresses."""
    processes: dict[str, list[int]] = {}
    for rank, (name, _port) in enumerate(workers):
        processes.setdefault(name, []).append(rank)
    hosts = tuple(processes)
    trains = role == "worker"
    own = processes.get(host or "", [])
    return Place(
        launcher="tensorflow",
        rank=position if trains else -1,
        world_size=len(workers),
        local_rank=own.index(position) if trains else -1,
        local_size=max(1, len(own)),
        node_rank=hosts.index(host) if host in processes else -1,
        host_count=len(hosts),
        role=role,
        hosts=hosts,
        current_host=host,
        master_address=workers[0][0],
        master_port=workers[0][1],
        named=("TF_CONFIG",),
    )


def _dmlc(variables: Variables) -> Place | None:
    """Read MXNet's parameter server, with one worker per host."""
    kind = variables.text("DMLC_ROLE")
    if kind is None:
        return None
    if kind not in ("worker", "server", "scheduler"):
        variables.object(f"DMLC_ROLE={kind!r} is not worker, server or scheduler")
    size = variables.number("DMLC_NUM_WORKER", 1)
    if size is None:
        variables.object(f"DMLC_ROLE={kind} without DMLC_NUM_WORKER")
    rank = variables.number("DMLC_WORKER_ID")
    hosts = variables.words("SM_HOSTS")
    current = variables.text("SM_CURRENT_HOST")
    if rank is None and size is not None and kind == "worker":
        if size == 1:
            rank = 0
        elif size == len(hosts) and current in hosts:
            rank = hosts.index(current)
        else:
            variables.object(
                f"{variables.show('DMLC_NUM_WORKER', 'SM_HOSTS', 'SM_CURRENT_HOST')} don't tell "
                "which worker this is: set DMLC_WORKER_ID"
            )
    trains = kind == "worker"
    return Place(
        launcher="mxnet",
        rank=rank or 0 if trains else -1,
        world_size=size or 1,
        local_size=None if hosts else 1,
        local_rank=None if trains else -1,
        node_rank=None if trains else hosts.index(current) if current in hosts else -1,
        role=_ROLES.get(kind, "worker"),
        master_address=variables.text("DMLC_PS_ROOT_URI"),
        master_port=variables.number("DMLC_PS_ROOT_PORT", 1),
        named=("DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_WORKER_ID"),
    )


def _address(variables: Variables, name: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        variables.object(f"{name}: {text!r} is not HOST:PORT")
        return text, 0
    return host, int(port)
