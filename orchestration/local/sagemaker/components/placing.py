"""The instances that copies of inference components need: the first that has room takes a copy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from orchestration.catalog import instance
from orchestration.local.account.protocol import JsonObject

Copies = tuple[JsonObject, int]
"""A specification, and the number of copies of it."""

_MIB_A_GIB: Final = 1024
_ASKED: Final = (
    "NumberOfAcceleratorDevicesRequired",
    "NumberOfCpuCoresRequired",
    "MinMemoryRequiredInMb",
)


def stages(old: Copies | None, new: Copies, batch: int) -> Iterator[list[Copies]]:
    """Yield what is placed at each stage of an update: a batch starts before as many old ones end.

    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_InferenceComponentRollingUpdatePolicy.html
    That an update without a policy starts all new copies before the first old one ends is assumed,
    as is that a change of the number of copies alone replaces none.
    """
    count = new[1]
    if old is not None and old[0] != new[0]:
        for started in range(0, count, batch):
            left = math.ceil(old[1] * (1 - started / count))
            yield [(old[0], left), (new[0], min(count, started + batch))]
    yield [new]


def needed(instance_type: str, copies: Sequence[tuple[JsonObject, int]]) -> int | None:
    """Return the number of instances for copies with requirements; None where one fits on none.

    That an instance has its whole memory for copies is assumed; SageMaker keeps a part of it.
    """
    whole = _whole(instance_type)
    wanted = sorted(
        (
            tuple(float(each.get(name, 0)) for name in _ASKED)
            for each, n in copies
            for _ in range(n)
        ),
        reverse=True,
    )
    free: list[list[float]] = []
    for demand in wanted:
        for room in free:
            if _fits(demand, room):
                break
        else:
            room = list(whole)
            if not _fits(demand, room):
                return None
            free.append(room)
        room[:] = [left - part for left, part in zip(room, demand, strict=True)]
    return len(free)


def _whole(instance_type: str) -> tuple[float, ...]:
    known = instance(instance_type)
    if known is None:
        return (float("inf"),) * len(_ASKED)
    memory = float("inf") if known.host_memory_gib is None else known.host_memory_gib * _MIB_A_GIB
    return (known.accelerator_chips, known.vcpus or float("inf"), memory)


def _fits(demand: Sequence[float], room: Sequence[float]) -> bool:
    return all(part <= left for part, left in zip(demand, room, strict=True))
