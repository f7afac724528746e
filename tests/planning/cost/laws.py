"""Laws that predictions obey whatever the coefficients are, and a wide sweep to try them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from orchestration.planning.cost.devices import device
from orchestration.planning.cost.prediction import Prediction
from orchestration.planning.model.configuration import Configuration, Machine
from orchestration.planning.model.shapes import ModelShape

_MEMORY_GIB = {
    "v100": 32, "a100-40": 40, "a100-80": 80, "a10g": 24, "l4": 24, "l40s": 48, "h100": 80,
    "h200": 141, "b200": 180, "trn1": 16,
}  # fmt: skip
_FASTER = {"a100-40": "a100-80", "h100": "h200", "l4": "l40s"}
"""Accelerators, and others that are better in every respect."""

Change = Callable[[Configuration], Configuration | None]
"""A change of a configuration; ``None``: the law says nothing of this one."""

Pair = Callable[[Prediction, Prediction], tuple[float, float]]


@dataclass(frozen=True)
class Law:
    """A change, and two figures of which the first must not exceed the second after it."""

    change: Change
    at_most: Pair


# The sweep.


def sweep(count: int, seed: int = 11) -> list[Configuration]:
    """Return configurations of 10^8 to 10^12 parameters, 512 to 10^6 tokens, 1 to 16k devices."""
    random = Random(seed)
    return [_configuration(random) for _ in range(count)]


def _model(random: Random) -> ModelShape:
    head = random.choice((64, 128))
    heads = random.choice((8, 16, 32, 64, 128)) if head == 128 else random.choice((8, 16, 32))
    hidden = heads * head
    gated = random.random() < 0.7
    experts = random.choice((0, 0, 0, 8, 64, 128))
    ffn = hidden // 4 if experts > 8 else random.choice((8 * hidden // 3, 4 * hidden))
    return ModelShape(
        layers=16 * random.randint(1, 8),
        hidden=hidden,
        heads=heads,
        kv_heads=random.choice((8, heads)),
        ffn=ffn // 64 * 64,
        gated=gated,
        vocabulary=random.choice((32_000, 50_304, 128_256)),
        tied_embeddings=random.random() < 0.3,
        rotary=gated,
        experts=experts,
        active_experts=random.choice((1, 2, 4)) if experts else 0,
    )


def _configuration(random: Random) -> Configuration:
    accelerator = random.choice(list(_MEMORY_GIB))
    tensor, pipeline, context = (random.choice(way) for way in ((1, 1, 2, 4, 8),) * 3)
    data = 2 ** random.randint(0, 5)
    model = _model(random)
    devices = tensor * pipeline * context * data
    machine = Machine(
        accelerator=accelerator,
        devices=devices,
        devices_per_node=min(8, devices),
        device_memory_gib=_MEMORY_GIB[accelerator],
        network_gbps=random.choice((25.0, 400.0, 3200.0)),
    )
    micro = 2 ** random.randint(0, 4)
    expert = random.choice((1, 2, 4, 8)) if model.experts else 1
    return Configuration(
        model=model,
        machine=machine,
        sequence=2 ** random.randint(9, 20),
        global_batch=micro * data * 2 ** random.randint(0, 6),
        micro_batch=micro,
        precision=random.choice(("fp16", "bf16", "bf16_true", "fp32", "fp8")),
        tensor=tensor,
        sequence_parallel=random.random() < 0.5,
        pipeline=pipeline,
        interleave=random.choice((1, 1, 2)) if pipeline > 1 else 1,
        context=context,
        expert=min(expert, data * tensor * context),
        zero=random.randint(0, 3),
        offload=random.choice(("none", "none", "none", "optimizer", "all")),
        recompute=random.choice(("none", "attention", "operators", "full")),
        attention=random.choice(("unfused", "flash1", "flash2", "flash3")),
        kernels=random.choice(("eager", "compiled", "fused")),
        loss=random.choice(("eager", "fused", "chunked")),
        dropout=random.choice(("none", "none", "none", "hidden", "all")),
        adapter_dropout=random.random() < 0.5,
        padded_experts=random.random() < 0.2,
        separate_ends=random.random() < 0.2,
        overlap_data=random.random() < 0.8,
        overlap_tensor=random.random() < 0.5,
        gradient_bytes=random.choice((0, 0, 4)),
        trainable=random.choice((None, None, None, 10**7)),
        deepspeed=random.random() < 0.3,
    )


# Changes.


def _with(**values: object) -> Change:
    return lambda c: replace(c, **values)  # type: ignore[arg-type]  # fields by name


def _model_with(change: Callable[[ModelShape], ModelShape]) -> Change:
    return lambda c: replace(c, model=change(c.model))


def _machine_with(change: Callable[[Machine], Machine]) -> Change:
    return lambda c: replace(c, machine=change(c.machine))


def _larger(field: str) -> Change:
    """Double a degree of parallelism, with as many replicas of the model."""

    def change(c: Configuration) -> Configuration | None:
        uneven = c.model.kv_heads % (2 * c.tensor) or c.model.layers % (2 * c.pipeline)
        if uneven or (c.zero == 3 and c.shards == 1):  # FSDP over one rank gathers nothing
            return None
        devices = 2 * c.machine.devices
        machine = replace(c.machine, devices=devices, devices_per_node=min(8, devices))
        degrees = {field: 2 * getattr(c, field)}
        return replace(c, machine=machine, **degrees)

    return change


def _replicas(c: Configuration) -> Configuration | None:
    if c.micro_batches % 2:
        return None
    machine = replace(c.machine, devices=2 * c.machine.devices)
    return replace(c, machine=machine, shard=None)


def _recomputing(less: str, more: str) -> Change:
    return lambda c: replace(c, recompute=more) if c.recompute == less else None  # type: ignore[arg-type]  # words


def _stage(c: Configuration) -> Configuration | None:
    same = c.gradient_bytes == 0 and c.precision != "bf16_fp32opt" and c.trainable is None
    return replace(c, zero=c.zero + 1) if same and c.zero < 3 else None


def _better(c: Configuration) -> Configuration | None:
    key = _FASTER.get(c.machine.accelerator)
    return key and replace(c, machine=replace(c.machine, accelerator=key))  # type: ignore[return-value]  # no empty key


def _quick_links(c: Configuration) -> Configuration:
    usual = device(c.machine.accelerator).interconnect_gb_per_s
    return replace(c, machine=replace(c.machine, interconnect_gb_per_s=2 * usual))


def _offloaded(c: Configuration) -> Configuration | None:
    return replace(c, offload="optimizer") if c.offload == "none" else None


def _same(c: Configuration) -> Configuration:
    return c


# Figures.


def _tensors(p: Prediction) -> float:
    return p.memory.allocated


def _need(p: Prediction) -> float:
    return p.memory.need


def _states(p: Prediction) -> float:
    return p.memory.states


def _seconds(p: Prediction) -> float:
    return p.step_time_s


def grows(figure: Callable[[Prediction], float]) -> Pair:
    """Return that a figure is no smaller after the change."""
    return lambda before, after: (figure(before), figure(after))


def shrinks(figure: Callable[[Prediction], float]) -> Pair:
    """Return that a figure is no larger after the change."""
    return lambda before, after: (figure(after), figure(before))


LAWS: dict[str, Law] = {
    "memory is at least the states": Law(_same, lambda p, _: (p.memory.states, p.memory.need)),
    "nothing takes negative memory": Law(
        _same,
        lambda p, _: (
            0.0, min(p.memory.weights, p.memory.gradients, p.memory.optimizer, p.memory.gathered,
                     p.memory.activations, p.memory.working, p.memory.slack),
        ),
    ),
    "the interval holds the expected time": Law(_same, lambda p, _: (p.low_s, p.step_time_s)),
    "a larger micro-batch needs no less memory": Law(
        lambda c: replace(c, micro_batch=2 * c.micro_batch, global_batch=2 * c.global_batch),
        grows(_need),
    ),
    "a longer sequence needs no less memory": Law(
        lambda c: replace(c, sequence=2 * c.sequence), grows(_need)
    ),
    "more layers need no less memory": Law(
        _model_with(lambda m: replace(m, layers=m.layers + 8)), grows(_need)
    ),
    "more words need no less memory": Law(
        _model_with(lambda m: replace(m, vocabulary=2 * m.vocabulary)), grows(_need)
    ),
    "full recomputation needs no more memory than that of operators": Law(
        _recomputing("operators", "full"), shrinks(_need)
    ),
    "full recomputation needs no more memory than that of attention": Law(
        _recomputing("attention", "full"), shrinks(_need)
    ),
    "recomputation of operators needs no more memory than none": Law(
        _recomputing("none", "operators"), shrinks(_need)
    ),
    "recomputation of attention needs no more memory than none": Law(
        _recomputing("none", "attention"), shrinks(_need)
    ),
    "recomputing half of the layers needs no less memory than all": Law(
        _with(recompute_share=0.5), grows(_need)
    ),
    "tensor parallelism adds no memory to a device": Law(_larger("tensor"), shrinks(_tensors)),
    "context parallelism adds no memory to a device": Law(_larger("context"), shrinks(_tensors)),
    "pipeline parallelism adds no states to a device": Law(_larger("pipeline"), shrinks(_states)),
    "a higher ZeRO stage adds no states": Law(_stage, shrinks(_states)),
    "more replicas add no states to a device": Law(_replicas, shrinks(_states)),
    "offloading adds no memory to a device": Law(_offloaded, shrinks(_need)),
    "an optimizer with one moment needs no more memory": Law(
        _with(optimizer="momentum"), shrinks(_need)
    ),
    "an adapter needs no more memory than full training": Law(
        # A host that keeps optimizer and gradients leaves nothing for an adapter to save.
        lambda c: replace(c, trainable=10**4) if c.offload == "none" else None,
        shrinks(_need),
    ),
    "a loss in chunks needs no more memory": Law(_with(loss="chunked"), shrinks(_need)),
    "more micro-batches take no less time": Law(
        lambda c: replace(c, global_batch=2 * c.global_batch), grows(_seconds)
    ),
    "more micro-batches lower no throughput": Law(
        # Autograd adds the gradients of all but the first, which costs replicas more than it saves.
        lambda c: replace(c, global_batch=2 * c.global_batch) if c.zero >= 3 else None,
        grows(lambda p: p.tokens_per_s),
    ),
    "more micro-batches need no less memory": Law(
        lambda c: replace(c, global_batch=2 * c.global_batch), grows(_need)
    ),
    "a longer sequence takes no less time": Law(
        lambda c: replace(c, sequence=2 * c.sequence), grows(_seconds)
    ),
    "more layers take no less time": Law(
        _model_with(lambda m: replace(m, layers=m.layers + 16)), grows(_seconds)
    ),
    "more words take no less time": Law(
        _model_with(lambda m: replace(m, vocabulary=2 * m.vocabulary)), grows(_seconds)
    ),
    "recomputation takes no less time": Law(_recomputing("none", "full"), grows(_seconds)),
    "a better device is no slower": Law(_better, shrinks(_seconds)),
    "a faster network is no slower": Law(
        _machine_with(lambda m: replace(m, network_gbps=2 * (m.network_gbps or 0.0))),
        shrinks(_seconds),
    ),
    "a faster interconnect is no slower": Law(_quick_links, shrinks(_seconds)),
    "a higher ZeRO stage communicates no less": Law(_stage, grows(lambda p: p.time.data)),
    "overlapped communication is no slower": Law(_with(overlap_data=True), shrinks(_seconds)),
    "more host processors are no slower": Law(
        _machine_with(lambda m: replace(m, vcpus=48 * m.devices_per_node)), shrinks(_seconds)
    ),
}  # fmt: skip
