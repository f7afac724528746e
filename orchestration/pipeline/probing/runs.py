"""Past training jobs of a stage, as ways to train that were measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestration.catalog import instance as instance_of
from orchestration.strategies import hyperparameters

if TYPE_CHECKING:
    from orchestration.catalog import Instance
    from orchestration.pipeline.plans import Pinned
    from orchestration.planning.model.configuration import Configuration
    from orchestration.planning.search.layouts import Layout
    from orchestration.planning.search.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The way in which a job trained."""

    instance_type: str
    instance_count: int
    layout: Layout
    configuration: Configuration


def ran(
    job: Mapping[str, Any],
    task: Task,
    tell: Mapping[str, str],
    pin: Pinned | None,
    way: Mapping[str, Any] | None = None,
) -> Ran | str:
    """Return how a job trained, or why that can't be known.

    `job`: the answer of ``DescribeTrainingJob``. `tell`: the hyperparameters that tell the script
    of a plan, by quantity. `pin`: the plan that is pinned for the stage, which counts for what its
    instances were not told. `way`: the quantities that a probe says of itself.
    """
    from orchestration.planning.model.configuration import ConfigurationError
    from orchestration.planning.search.configurations import configuration, machine_of

    machines = job["ResourceConfig"]
    name, count = machines.get("InstanceType"), machines.get("InstanceCount")
    instance = instance_of(name) if name else None
    if instance is None or instance.accelerator is None or not count:
        return "it ran on instances that are unknown, or have no accelerator"
    values = {**_pinned(pin, name, count), **_told(job, tell), **(way or {})}
    layout = _layout(job, task, values, instance, count)
    if isinstance(layout, str):
        return layout
    machine = machine_of(instance, count, layout)
    replicas = machine.devices // layout.replica
    sizes = _sizes(task, values, replicas)
    if isinstance(sizes, str):
        return sizes
    try:
        c = configuration(
            task, layout, machine,
            batch=sizes[0], micro=sizes[1],
            recompute=values.get("recompute", "none"), offload=values.get("offload", "none"),
        )  # fmt: skip
    except ConfigurationError as error:
        return str(error)
    return Ran(instance_type=instance.name, instance_count=count, layout=layout, configuration=c)


def _told(job: Mapping[str, Any], tell: Mapping[str, str]) -> dict[str, Any]:
    """Return the quantities that a job's script was told of."""
    sent = job.get("HyperParameters") or {}
    return {quantity: _value(sent[name]) for quantity, name in tell.items() if name in sent}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _pinned(pin: Pinned | None, name: str, count: int) -> dict[str, Any]:
    """Return the quantities of a pinned plan for the same instances."""
    cluster = {"instance_type": name, "instance_count": count}
    return dict(pin["tells"]) if pin is not None and pin["cluster"] == cluster else {}


_DEGREES: Final = ("zero", "tensor", "pipeline", "context", "expert")


def _layout(
    job: Mapping[str, Any], task: Task, values: Mapping[str, Any], instance: Instance, count: int
) -> Layout | str:
    """Return the layout that was started as the job was, with the degrees that it was told."""
    from orchestration.planning.search.layouts import layouts, strategies

    sent = (job.get("HyperParameters") or {}).keys()
    started: dict[int, list[Layout]] = {}
    for layout in layouts(task, instance, count):
        if any(name in values and values[name] != getattr(layout, name) for name in _DEGREES):
            continue
        for strategy in strategies(layout, task.framework.name):
            own = hyperparameters(strategy, instance.name, framework=task.framework.name).keys()
            if own <= sent:
                started.setdefault(len(own), []).append(layout)
    # What starts another way with the same keys and more was started that way.
    likely = started[max(started)] if started else []
    kinds = {tuple(getattr(layout, name) for name in _DEGREES) for layout in likely}
    if not kinds:
        return "no layout of the model is started as it was, with what it was told"
    if len(kinds) > 1:
        open_ = [name for name, each in zip(_DEGREES, zip(*kinds, strict=True), strict=True)
                 if len(set(each)) > 1]  # fmt: skip
        return f"it does not say its {', '.join(open_)}; add that to strategy.tell"
    return min(likely, key=lambda layout: layout.rank)


def _sizes(task: Task, values: Mapping[str, Any], replicas: int) -> tuple[int, int] | str:
    """Return the batch and the micro-batch of a job."""
    fixed = task.batch.least if task.batch.least == task.batch.most else None
    batch, micro = values.get("global_batch", fixed), values.get("micro_batch")
    accumulation = values.get("accumulation")
    if batch is None and micro and accumulation:
        batch = micro * accumulation * replicas
    if batch and not micro and accumulation:
        micro = batch // (accumulation * replicas)
    if not (isinstance(batch, int) and isinstance(micro, int) and batch >= micro * replicas > 0):
        return "it does not say its batch or micro-batch; add micro_batch to strategy.tell"
    return batch, micro
