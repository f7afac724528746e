"""Checks that a strategy's processes fit its hosts, and its degrees the processes."""

from __future__ import annotations

from collections.abc import Iterator

from orchestration.catalog import Instance, instance
from orchestration.strategies.degrees import model_parallel, world
from orchestration.strategies.facts import machines
from orchestration.strategies.smp import SMPv1, SMPv2
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.use import Finding, Use

_PATH = "strategy.processes_per_host"


def process_findings(strategy: Strategy, use: Use) -> Iterator[Finding]:
    """Find what does not fit on any of the candidate clusters."""
    for name, count in machines(strategy, use):
        host = instance(name)
        if host is None:
            continue
        yield from _on_host(strategy, host)
        processes = None if count is None else world(strategy, count, host.devices)
        if processes is not None:
            yield from _over_world(strategy, processes, f"{count} x {name}")


def _on_host(strategy: Strategy, host: Instance) -> Iterator[Finding]:
    processes: int | None = getattr(strategy, "processes_per_host", None)
    if processes is None:
        return
    devices = host.devices
    if host.vcpus is not None and processes > host.vcpus:
        yield Finding(
            _PATH,
            f"{processes} is more than the {host.vcpus} vCPUs of {host.name}; leave it out for one "
            "process per accelerator",
            True,
        )
    elif devices and processes > devices:
        # SMP maps its processes to GPUs one to one; other libraries might share a GPU.
        yield Finding(
            _PATH,
            f"{processes} is more than the {devices} accelerators of {host.name}: processes would "
            f"share one, which NCCL refuses; give {devices}, or leave it out",
            isinstance(strategy, SMPv1),
        )
    elif devices and processes < devices:
        yield Finding(
            _PATH,
            f"{devices - processes} of the {devices} accelerators of {host.name} stay idle; leave "
            "it out for one process each",
            False,
        )


def _over_world(strategy: Strategy, processes: int, where: str) -> Iterator[Finding]:
    match strategy:
        case SMPv1():
            yield from _over_v1(strategy, processes, where)
        case SMPv2():
            yield from _over_v2(strategy, processes, where)
        case _:
            pass


def _over_v1(smp: SMPv1, processes: int, where: str) -> Iterator[Finding]:
    unit = model_parallel(smp)
    replicas, rest = divmod(processes, unit)
    if rest:
        yield _uneven(
            f"strategy.{_degree(smp)}",
            f"the model takes {unit} processes (pipeline times tensor parallelism)",
            processes,
            where,
        )
        return
    sharded = smp.sharded_data_parallel_degree or 1
    if replicas % sharded:
        yield _uneven(
            "strategy.sharded_data_parallel_degree",
            f"each {sharded} of the {replicas} copies of the model are sharded among themselves",
            processes,
            where,
        )
    if replicas > 1 and not smp.ddp and not smp.horovod:
        yield Finding(
            "strategy.ddp",
            f"{where} hold {replicas} copies of the model, and nothing keeps them the same; set "
            "ddp: true (PyTorch) or horovod: true (TensorFlow)",
            False,
        )


def _degree(smp: SMPv1) -> str:
    """Return the field that sets how many processes one copy of the model takes."""
    if (smp.tensor_parallel_degree or 1) > 1:
        return "tensor_parallel_degree"
    return "pipeline_parallel_degree" if smp.partitions is None else "partitions"


def _over_v2(smp: SMPv2, processes: int, where: str) -> Iterator[Finding]:
    tensor, sharded = smp.tensor_parallel_degree or 1, smp.hybrid_shard_degree or 1
    if processes % (tensor * sharded):
        yield _uneven(
            "strategy.hybrid_shard_degree" if sharded > 1 else "strategy.tensor_parallel_degree",
            f"a copy of the model takes {tensor * sharded} processes (hybrid_shard_degree times "
            "tensor_parallel_degree)",
            processes,
            where,
        )
    expert = smp.expert_parallel_degree or 1
    if processes % expert:
        yield _uneven(
            "strategy.expert_parallel_degree",
            f"a group has {expert} processes",
            processes,
            where,
        )
    unit = model_parallel(smp)
    if (smp.context_parallel_degree or 1) > 1 and processes % unit:
        yield _uneven(
            "strategy.context_parallel_degree",
            f"a copy of the model takes {unit} processes (tensor times context parallelism)",
            processes,
            where,
        )


def _uneven(path: str, what: str, processes: int, where: str) -> Finding:
    return Finding(
        path,
        f"{what}, and the {processes} processes on {where} can't be divided so; change the degree "
        "or the cluster",
        True,
    )
