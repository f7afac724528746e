"""Configurations of a task's layouts, with the settings that each layout's engine has."""

from __future__ import annotations

from typing import Final

from orchestration.catalog import Instance
from orchestration.planning.cost.devices import device
from orchestration.planning.model.configuration import (
    Attention,
    Configuration,
    Machine,
    Offload,
    Recompute,
)
from orchestration.planning.model.recipes import Recipe, engine_settings, kernels_of, recipe
from orchestration.planning.search.layouts import Layout
from orchestration.planning.search.task import Task


def configuration(
    task: Task,
    layout: Layout,
    machine: Machine,
    *,
    batch: int,
    micro: int,
    recompute: Recompute,
    offload: Offload,
) -> Configuration:
    """Return the configuration of a layout on machines."""
    engine = engine_of(task, layout, machine.accelerator)
    return Configuration(
        model=task.model,
        machine=machine,
        sequence=task.sequence,
        global_batch=batch,
        micro_batch=micro,
        precision=task.precision,
        tensor=layout.tensor,
        sequence_parallel=layout.tensor > 1,
        pipeline=layout.pipeline,
        context=layout.context,
        expert=layout.expert,
        zero=layout.zero,
        shard=layout.shard,
        offload=offload,
        recompute=recompute,
        attention=_attention(task, machine.accelerator, engine),
        kernels=kernels_of(engine, task.kernels),
        trainable=task.trainable,
        adapter_targets="all" if task.lora is None else task.lora.targets,
        frozen_bits=0.0 if task.lora is None else task.lora.frozen_bits,
        optimizer=task.optimizer,
        **engine_settings(engine, zero=layout.zero, precision=task.precision),
    )


def machine_of(instance: Instance, count: int, layout: Layout) -> Machine:
    """Return the devices of some instances that a layout uses."""
    per_instance = layout.devices_per_instance or instance.devices
    return Machine(
        accelerator=instance.accelerator or "",
        devices=per_instance * count,
        devices_per_node=per_instance,
        device_memory_gib=instance.device_memory_gib or 0.0,
        network_gbps=instance.network_gbps if count > 1 else None,
        interconnect_gb_per_s=instance.interconnect_gb_per_s,
        vcpus=instance.vcpus,
    )


def engine_of(task: Task, layout: Layout, accelerator: str) -> Recipe:
    """Return the defaults of the engine that runs a layout: the task's own, or the usual one."""
    if device(accelerator).generation == "neuron":
        return recipe("neuronx")
    if task.engine is not None:
        return recipe(task.engine)
    if layout.family == "sharded":
        return recipe("pytorch fsdp" if layout.zero == 3 else "deepspeed")
    name = task.framework.name
    return recipe(name if name in ("tensorflow", "mxnet") else "pytorch")


def attention(task: Task, accelerator: str) -> Attention:
    """Return the attention kernel of a task on an accelerator, whatever the layout."""
    return _attention(task, accelerator, engine_of(task, _ANY, accelerator))


_ANY: Final = Layout(family="replicated", rank=0)


def _attention(task: Task, accelerator: str, engine: Recipe) -> Attention:
    """Return the kernel: FlashAttention 2 needs bf16 or fp16, and Ampere or later."""
    if task.attention is not None:
        return task.attention
    if engine.always_flash:
        return engine.flash
    if task.precision == "fp32":
        return "unfused"
    return "flash1" if device(accelerator).generation in ("volta", "turing") else engine.flash
