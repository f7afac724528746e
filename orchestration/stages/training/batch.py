"""The samples of a training step, and the steps of an epoch.

Cluster size is instances times devices; the global batch is replicas times the batch of a replica
times accumulation; the iterations of an epoch are samples over the global batch. A replica is a
whole model: the processes of a model-parallel group are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

from orchestration.errors import Problem, near
from orchestration.phrases import counted
from orchestration.stages.values import Model


def _amount(value: object) -> object:
    if isinstance(value, str) or (type(value) is int and value >= 1):
        return value
    raise ValueError(f"expected a whole number from 1 on, or a hyperparameter, got {value!r}")


Amount: TypeAlias = Annotated[int | str, BeforeValidator(_amount)]
"""A whole number, or the name of the hyperparameter that holds it."""

_KNOWN = {
    "per_replica": "per_device_train_batch_size",
    "accumulation": "gradient_accumulation_steps",
}
"""The names that Hugging Face's Trainer has for them:
https://huggingface.co/docs/transformers/main_classes/trainer (read November 2026)."""


class Batch(Model):
    """The batch of a training job: numbers, or the names of the hyperparameters that hold them."""

    per_replica: Amount
    """Samples that a replica takes at a time."""
    accumulation: Amount = 1
    """Times that it does so before the weights change."""
    global_batch: Amount | None = None
    """Samples of the whole cluster between two changes; checked against the others."""
    samples: Amount | None = None
    """Samples of an epoch."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The batch on a certain cluster."""

    processes: int
    replicas: int
    per_replica: int
    accumulation: int
    samples: int | None

    @property
    def global_batch(self) -> int:
        """Samples between two changes of the weights."""
        return self.replicas * self.per_replica * self.accumulation

    @property
    def iterations(self) -> int | None:
        """Changes of the weights in an epoch, the last one with what is left."""
        return None if self.samples is None else -(-self.samples // self.global_batch)

    def __str__(self) -> str:
        parts = [
            f"{counted(self.processes, 'process')}, {counted(self.replicas, 'replica')}",
            f"global batch {self.replicas} x {self.per_replica} x {self.accumulation} = "
            f"{self.global_batch}",
        ]
        if self.samples is not None:
            parts.append(f"{self.iterations} iterations per epoch of {self.samples} samples")
        return ", ".join(parts)


def described(batch: Batch | None, hyperparameters: Mapping[str, Any]) -> Batch | None:
    """The batch as given, or as the hyperparameters of Hugging Face's Trainer tell it."""
    if batch is not None or _KNOWN["per_replica"] not in hyperparameters:
        return batch
    accumulation = _KNOWN["accumulation"]
    return Batch(
        per_replica=_KNOWN["per_replica"],
        accumulation=accumulation if accumulation in hyperparameters else 1,
    )


def arithmetic(
    batch: Batch, hyperparameters: Mapping[str, Any], processes: int, model_parallel: int
) -> Arithmetic | None:
    """The batch on a cluster; ``None`` where its numbers are known in the run only."""
    per_replica = _number(batch.per_replica, hyperparameters)
    accumulation = _number(batch.accumulation, hyperparameters)
    if per_replica is None or accumulation is None or processes % model_parallel:
        return None
    samples = None if batch.samples is None else _number(batch.samples, hyperparameters)
    return Arithmetic(processes, processes // model_parallel, per_replica, accumulation, samples)


def problems(
    batch: Batch, hyperparameters: Mapping[str, Any], on_cluster: Arithmetic | None
) -> Iterator[Problem]:
    """Yield the errors of a batch."""
    for name in ("per_replica", "accumulation", "global_batch", "samples"):
        amount = getattr(batch, name)
        if not isinstance(amount, str):
            continue
        if amount not in hyperparameters:
            hint = near(amount, hyperparameters)
            yield Problem(f"batch.{name}", f"there is no hyperparameter {amount!r}{hint}")
        elif _number(amount, hyperparameters) is None and _is_known(hyperparameters[amount]):
            value = hyperparameters[amount]
            yield Problem(f"hyperparameters.{amount}", f"is {value!r}; batch.{name} counts with it")
    wanted = None
    if batch.global_batch is not None:
        wanted = _number(batch.global_batch, hyperparameters)
    if on_cluster is None or wanted is None or wanted == on_cluster.global_batch:
        return
    a = on_cluster
    each = a.replicas * a.accumulation
    way = (
        f"; {wanted // each} per replica would make it so"
        if wanted % each == 0
        else f"; it must be a multiple of {each}"
    )
    where = batch.global_batch
    yield Problem(
        f"hyperparameters.{where}" if isinstance(where, str) else "batch.global_batch",
        f"is {wanted}, and {a.replicas} replicas x {a.per_replica} x {a.accumulation} make "
        f"{a.global_batch}{way}",
    )


def _number(amount: int | str, hyperparameters: Mapping[str, Any]) -> int | None:
    value = hyperparameters.get(amount) if isinstance(amount, str) else amount
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return value if type(value) is int and value >= 1 else None


def _is_known(value: object) -> bool:
    return isinstance(value, str | int | float)
