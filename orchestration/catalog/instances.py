"""Instance types and their accelerators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from orchestration.catalog.tables import number, rows, text, truth, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """The peak performance of one device: a GPU, or one NeuronCore of a Trainium chip.

    Rates are dense peaks in 10^12 operations per second; ``None`` if the hardware has no units of
    that precision, or no source states the rate.
    """

    key: str
    """``a100-40``, as in `Instance.accelerator`."""
    name: str
    vendor: str
    """``nvidia`` or ``aws``."""
    devices_per_chip: int
    """Processes that drive one chip: 1 on GPUs, the (logical) NeuronCores on Trainium."""
    capability: str | None
    """Compute capability of a GPU, ``9.0``, by https://developer.nvidia.com/cuda-gpus."""
    fp32_tflops: float | None
    tf32_tflops: float | None
    fp16_tflops: float | None
    bf16_tflops: float | None
    fp8_tflops: float | None
    matmul_bf16_tflops: float | None
    """The best published measurement for a bf16 matrix product of any size."""
    memory_gb_per_s: float | None
    """Bandwidth of the device's memory."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance type."""

    name: str
    """``ml.p4d.24xlarge``."""
    training: bool
    """True if CreateTrainingJob accepts it."""
    accelerator: str | None
    """The key of its accelerators; ``None`` on a CPU."""
    accelerator_chips: int
    devices: int
    """Processes that torchrun or mpirun start for its accelerators: GPUs, NeuronCores; 0 on a
    CPU."""
    device_memory_gib: float | None
    """Memory of one device; a chip's memory is divided evenly among its devices."""
    vcpus: int | None
    host_memory_gib: float | None
    local_storage_gb: float | None
    """NVMe disks of the instance itself; 0 if it has none."""
    network_gbps: float | None
    """Gbit/s of the instance, sustained."""
    efa_interfaces: int | None
    """Elastic Fabric Adapters; 0 if it has none."""
    gpudirect_rdma: bool | None
    """True if EFA reads device memory directly, not through the host."""
    interconnect_gb_per_s: float | None
    """GB/s from one device to the others of the instance, one way (NVLink, NeuronLink, PCIe)."""
    source: str

    @property
    def family(self) -> str:
        """The family: ``p4d``."""
        return self.name.removeprefix("ml.").partition(".")[0]

    @property
    def size(self) -> str:
        """The size within the family: ``24xlarge``."""
        return self.name.rpartition(".")[2]

    @property
    def efa(self) -> bool | None:
        """True if the type has an Elastic Fabric Adapter."""
        return None if self.efa_interfaces is None else self.efa_interfaces > 0

    @property
    def memory_gib(self) -> float | None:
        """Memory of all devices together."""
        return None if self.device_memory_gib is None else self.device_memory_gib * self.devices


@cache
def instances() -> Mapping[str, Instance]:
    """List every instance type in the table: accelerators first, each family by size."""
    return MappingProxyType({row["name"]: _instance(row) for row in rows("instances.csv")})


def instance(name: str) -> Instance | None:
    """Look up an instance type; ``None`` if the table has no such type.

    >>> instance("ml.p4d.24xlarge").devices
    8
    """
    return instances().get(name)


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Return every accelerator by its key."""
    return MappingProxyType({row["key"]: _accelerator(row) for row in rows("accelerators.csv")})


_RESERVED: Final = frozenset({
    "ml.p4d.24xlarge", "ml.p4de.24xlarge", "ml.p5.4xlarge", "ml.p5.48xlarge", "ml.p5e.48xlarge",
    "ml.p5en.48xlarge", "ml.p6-b200.48xlarge", "ml.p6-b300.48xlarge", "ml.p6e-gb200.36xlarge",
    "ml.trn1.32xlarge", "ml.trn2.48xlarge",
})  # fmt: skip


def is_scarce(name: str) -> bool:
    """Return whether an instance type is often out of stock.

    A prior, not an observation: AWS sells these types as reserved capacity (training plans), by
    botocore's ``ReservedCapacityInstanceType``.
    """
    return name in _RESERVED


@cache
def training_types() -> frozenset[str]:
    """List the instance types that CreateTrainingJob accepts; source: ``botocore-1.43.117``."""
    return frozenset(text("training_types.txt").split())


def _instance(row: Mapping[str, str]) -> Instance:
    return Instance(
        name=row["name"],
        training=row["training"] == "yes",
        accelerator=row["accelerator"] or None,
        accelerator_chips=int(row["accelerator_chips"]),
        devices=int(row["devices"]),
        device_memory_gib=number(row["device_memory_gib"]),
        vcpus=whole(row["vcpus"]),
        host_memory_gib=number(row["host_memory_gib"]),
        local_storage_gb=number(row["local_storage_gb"]),
        network_gbps=number(row["network_gbps"]),
        efa_interfaces=whole(row["efa_interfaces"]),
        gpudirect_rdma=truth(row["gpudirect_rdma"]),
        interconnect_gb_per_s=number(row["interconnect_gb_per_s"]),
        source=row["source"],
    )


def _accelerator(row: Mapping[str, str]) -> Accelerator:
    return Accelerator(
        key=row["key"],
        name=row["name"],
        vendor=row["vendor"],
        devices_per_chip=int(row["devices_per_chip"]),
        capability=row["capability"] or None,
        fp32_tflops=number(row["fp32_tflops"]),
        tf32_tflops=number(row["tf32_tflops"]),
        fp16_tflops=number(row["fp16_tflops"]),
        bf16_tflops=number(row["bf16_tflops"]),
        fp8_tflops=number(row["fp8_tflops"]),
        matmul_bf16_tflops=number(row["matmul_bf16_tflops"]),
        memory_gb_per_s=number(row["memory_gb_per_s"]),
        source=row["source"],
    )
