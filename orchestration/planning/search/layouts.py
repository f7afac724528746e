"""Layouts of a model over the devices of a cluster, as strategies allow them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestration.catalog import Instance
from orchestration.planning.model.configuration import LayoutFamily
from orchestration.planning.search.task import Task
from orchestration.strategies import (
    SMDDP,
    Horovod,
    MultiWorkerMirrored,
    NoStrategy,
    ParameterServer,
    PyTorchDDP,
    SMPv1,
    SMPv2,
    Strategy,
    TorchDistributed,
)

Degrees = tuple[int, int, int, int]
Sort = tuple[LayoutFamily, int, bool, bool, bool, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Degrees of parallelism and sharding, apart from batch and recomputation."""

    family: LayoutFamily
    rank: int
    """Complexity; of two equally fast layouts the simpler is chosen."""
    zero: int = 0
    shard: int | None = None
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    devices_per_instance: int | None = None
    """Devices in use per instance; ``None``: all."""

    @property
    def replica(self) -> int:
        """Number of devices that process one sample together."""
        return self.tensor * self.pipeline * self.context

    @property
    def degrees(self) -> Degrees:
        """Degrees of tensor, pipeline, context and expert parallelism."""
        return (self.tensor, self.pipeline, self.context, self.expert)

    @property
    def alike(self) -> tuple[LayoutFamily, int, Degrees]:
        """Engine, ZeRO stage and degrees: layouts that have them in common compute alike.

        They may differ in the number of ranks that share states.
        """
        return self.family, self.zero, self.degrees

    @property
    def sort(self) -> Sort:
        """All that support rules depend on: which degrees are above one, not how high they are."""
        above = (self.tensor > 1, self.pipeline > 1, self.context > 1, self.expert > 1)
        return (self.family, self.zero, *above)

    def __str__(self) -> str:
        """Name the layout with its degrees above one."""
        named = {"single": "one device", "replicated": "data parallel", "servers": "servers"}
        sharded = {1: "ZeRO-1", 2: "ZeRO-2", 3: "FSDP"}.get(self.zero, "")
        over = f"{sharded} over {self.shard}" if self.shard else sharded
        library = {"smp_v1": "SMP v1", "smp_v2": "SMP v2", "neuron": "NeuronX"}
        parts = [named.get(self.family) or library.get(self.family) or "", over]
        for name in ("tensor", "pipeline", "context", "expert"):
            if (degree := getattr(self, name)) > 1:
                parts.append(f"{name} {degree}")
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, eq=False)
class Kin:
    """Layouts that compute alike: they differ in the number of ranks that share states alone."""

    layouts: tuple[Layout, ...]
    sort: Sort

    @property
    def first(self) -> Layout:
        """One of them."""
        return self.layouts[0]


def kins(every: Iterable[Layout]) -> tuple[Kin, ...]:
    """Group layouts that compute alike."""
    alike: dict[object, list[Layout]] = {}
    for layout in every:
        alike.setdefault(layout.alike, []).append(layout)
    return tuple(Kin(tuple(same), same[0].sort) for same in alike.values())


def layouts(task: Task, instance: Instance, count: int) -> Iterator[Layout]:
    """Return every layout of the model on this many instances, simple ones first."""
    every = _layouts(task, instance, count)
    if task.lora is None or task.lora.bits is None:
        yield from every
        return
    yield from (layout for layout in every if _keeps_few_bits(layout, task.lora.bits))


def _keeps_few_bits(layout: Layout, bits: int) -> bool:
    """Return whether bitsandbytes' weights work in a layout.

    With FSDP and ZeRO 3 that is documented of 4 bits only:
    https://huggingface.co/docs/bitsandbytes/fsdp_qlora
    """
    most = 3 if bits == 4 else 2
    return layout.family in ("single", "replicated", "sharded") and layout.zero <= most


def _layouts(task: Task, instance: Instance, count: int) -> Iterator[Layout]:
    world = instance.devices * count
    if task.model.kind == "custom":
        yield from _whole(instance, count)
        return
    if instance.accelerator is not None and instance.family.startswith("trn"):
        yield from _neuron(task, instance, world)
        return
    if count == 1:
        yield Layout(family="single", rank=0, devices_per_instance=1)
    if task.framework.name == "mxnet":
        yield Layout(family="servers", rank=2, devices_per_instance=1)
    torch = task.framework.name in ("pytorch", "huggingface")
    if torch and world == 1:
        yield Layout(family="sharded", rank=3, zero=2, shard=1)  # only to offload states
    if world > 1:
        yield Layout(family="replicated", rank=1)
        if torch:
            yield from _sharded(world)
            yield from _smp_v2(task, instance, world)
            yield from _smp_v1(task, instance, world)


def _kind(layout: Layout) -> str:
    if layout.family == "sharded":
        return {1: "ZeRO-1", 2: "ZeRO-2", 3: "FSDP"}[layout.zero]
    return {
        "single": "one device", "replicated": "data parallel", "servers": "servers",
        "smp_v1": "SMP v1", "smp_v2": "SMP v2", "neuron": "NeuronX",
    }[layout.family]  # fmt: skip


def by_kind(every: Iterable[Kin]) -> dict[str, list[Kin]]:
    """Group layouts by what a person would call the same."""
    kinds: dict[str, list[Kin]] = {}
    for kin in every:
        kinds.setdefault(_kind(kin.first), []).append(kin)
    return kinds


def strategies(layout: Layout, framework: str) -> tuple[Strategy, ...]:
    """Return the strategies that can start a layout, in order of preference."""
    match layout.family:
        case "single":
            return (NoStrategy(),)
        case "servers":
            return (ParameterServer(),)
        case "neuron":
            return (TorchDistributed(),)
        case "replicated" if framework == "tensorflow":
            return (MultiWorkerMirrored(), Horovod())
        case "replicated" if framework == "mxnet":
            return (Horovod(),)
        case "replicated":
            return (TorchDistributed(), SMDDP(), PyTorchDDP())
        case "sharded":
            return (TorchDistributed(), SMDDP(launcher="torchrun"))
        case "smp_v2":
            return (_smp_v2_strategy(layout),)
        case "smp_v1":
            return (_smp_v1_strategy(layout),)


def _smp_v2_strategy(layout: Layout) -> SMPv2:
    return SMPv2(
        hybrid_shard_degree=layout.shard,
        tensor_parallel_degree=_above_one(layout.tensor),
        context_parallel_degree=_above_one(layout.context),
        expert_parallel_degree=_above_one(layout.expert),
    )


def _smp_v1_strategy(layout: Layout) -> SMPv1:
    return SMPv1(
        ddp=True,
        pipeline_parallel_degree=layout.pipeline,
        tensor_parallel_degree=_above_one(layout.tensor),
        shard_optimizer_state=True if layout.zero == 1 else None,
        sharded_data_parallel_degree=layout.shard if layout.zero == 3 else None,
    )


def _above_one(degree: int) -> int | None:
    return degree if degree > 1 else None


def _whole(instance: Instance, count: int) -> Iterator[Layout]:
    """Return layouts that need not know the model: whole copies of it."""
    if instance.devices == count == 1:
        yield Layout(family="single", rank=0, devices_per_instance=1)
    elif not instance.family.startswith("trn"):
        yield Layout(family="replicated", rank=1)


def _sharded(world: int) -> Iterator[Layout]:
    yield Layout(family="sharded", rank=2, zero=1, shard=world)
    yield Layout(family="sharded", rank=3, zero=2, shard=world)
    for shard in _degrees(world, world):
        yield Layout(family="sharded", rank=4 if shard == world else 5, zero=3, shard=shard)


def _smp_v2(task: Task, instance: Instance, world: int) -> Iterator[Layout]:
    """Return FSDP with tensor, context and expert parallelism."""
    for tensor in _tensor_degrees(task, instance):
        ranks = world // tensor
        for context in (1, *_degrees(ranks, ranks)):
            for expert in (1, *_expert_degrees(task, ranks)):
                if tensor == context == expert == 1:
                    continue  # plain FSDP, which torchrun starts
                for shard in _degrees(ranks, ranks):
                    if shard >= max(context, expert):
                        yield Layout(
                            family="smp_v2", rank=6, zero=3, shard=shard,
                            tensor=tensor, context=context, expert=expert,
                        )  # fmt: skip


def _smp_v1(task: Task, instance: Instance, world: int) -> Iterator[Layout]:
    """Return pipelines and tensor parallelism; in bf16 only sharded data parallelism.

    https://sagemaker.readthedocs.io/en/v2.199.0/api/training/smd_model_parallel_general.html
    """
    for tensor in _tensor_degrees(task, instance):
        if task.precision == "bf16":
            for shard in _degrees(world // tensor, world // tensor):
                yield Layout(family="smp_v1", rank=8, zero=3, shard=shard, tensor=tensor)
            continue
        for pipeline in (1, *_pipeline_degrees(task, world // tensor)):
            if tensor * pipeline > 1:
                for zero in (0, 1):
                    yield Layout(
                        family="smp_v1", rank=8, zero=zero, tensor=tensor, pipeline=pipeline
                    )


def _neuron(task: Task, instance: Instance, world: int) -> Iterator[Layout]:
    """Return tensor and pipeline parallelism with ZeRO-1 of neuronx-distributed."""
    for tensor in _tensor_degrees(task, instance):
        for pipeline in (1, *_pipeline_degrees(task, world // tensor)):
            ranks = world // tensor // pipeline
            yield Layout(
                family="neuron", rank=4 + (tensor > 1) + 2 * (pipeline > 1),
                zero=1 if ranks > 1 else 0, tensor=tensor, pipeline=pipeline,
            )  # fmt: skip


def _tensor_degrees(task: Task, instance: Instance) -> Iterator[int]:
    """Return degrees within an instance that divide heads and the feed-forward network evenly."""
    model = task.model
    for degree in (1, *_degrees(instance.devices, instance.devices)):
        shared = model.kv_heads % degree == 0 or degree % model.kv_heads == 0
        if model.heads % degree == 0 and shared and model.ffn % degree == 0:
            yield degree


def _pipeline_degrees(task: Task, ranks: int) -> Iterator[int]:
    layers = task.model.layers
    return (degree for degree in _degrees(ranks, layers) if layers % degree == 0)


def _expert_degrees(task: Task, ranks: int) -> Iterator[int]:
    experts = task.model.experts
    return (degree for degree in _degrees(ranks, experts) if experts % degree == 0)


def _degrees(whole: int, most: int) -> Iterator[int]:
    """Return powers of two above one that divide a number of ranks, and that number itself."""
    degree = 2
    while degree <= most and whole % degree == 0:
        yield degree
        degree *= 2
    if 1 < whole <= most and whole & (whole - 1):
        yield whole
