"""Facts about the setting of a strategy, as the rows of :mod:`.support` read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from orchestration.catalog import accelerators, instance
from orchestration.strategies import images
from orchestration.strategies.containers import Software, container_of_image, software
from orchestration.strategies.models import SMDDP
from orchestration.strategies.strategy import Strategy
from orchestration.strategies.support import Facts
from orchestration.strategies.use import Use

_DEVICES = {"none": "cpu", "nvidia": "gpu", "aws": "neuron"}


def key(strategy: Strategy) -> str:
    """Name a strategy as the rows do: its kind, SMDDP with its launcher."""
    match strategy:
        case SMDDP(launcher=launcher):
            return f"smddp:{launcher}"
        case _:
            return strategy.kind


def group_of(strategy: Strategy) -> str | None:
    """Return the instance group that a strategy names, if it has a field for one."""
    group: str | None = getattr(strategy, "instance_group", None)
    return group


def machines(strategy: Strategy, use: Use) -> tuple[tuple[str, int | None], ...]:
    """List every cluster that the strategy may run on: instance type and count, if known.

    In a heterogeneous cluster that is the group the strategy names; if it names none, each group
    counts as a cluster.
    """
    group = group_of(strategy)
    if group is not None and group in use.groups:
        return (use.groups[group],)
    if group is not None and group in use.group_names:
        return tuple((name, None) for name in use.instance_types)
    if use.groups:
        return tuple(dict.fromkeys(use.groups.values()))
    clusters = use.clusters
    counted = {instance_type for instance_type, _ in clusters}
    alone = use.instance_count if len(use.instance_types) == 1 else None
    rest = tuple((name, alone) for name in use.instance_types if name not in counted)
    return tuple(dict.fromkeys(clusters + rest))


def facts(strategy: Strategy, use: Use) -> Iterator[Facts]:
    """Collect the facts of each candidate cluster."""
    framework = use.base or (None if use.framework == "huggingface" else use.framework)
    shared: dict[str, str | None] = {
        "strategy": strategy.kind,
        "framework": framework,
        "estimator": use.framework,
        "version": _written_out(framework, use.framework_version),
        "container": _container(use),
        "image": None if use.image is None else use.image.rpartition("/")[2],
        "entry_point": use.entry_point if use.has_source else None,
        "groups": "yes" if use.named_groups else "no",
    }
    for instance_type, count in machines(strategy, use) or ((None, use.instance_count),):
        hosts = use.instance_count if count is None else count
        instances = None if hosts is None else str(hosts)
        machine = _of_instance(instance_type)
        has = _software(framework, use, neuron=machine["device"] == "neuron")
        drivers = {"cuda": has.cuda, "neuron": has.neuron}
        yield {**shared, **drivers, **machine, "instance_count": instances}


def _of_instance(name: str | None) -> dict[str, str | None]:
    known = None if name is None else instance(name)
    if known is None:
        return {"instance_type": name, "device": None, "devices": None, "capability": None}
    accelerator = None if known.accelerator is None else accelerators()[known.accelerator]
    vendor = "none" if accelerator is None else accelerator.vendor
    return {
        "instance_type": name,
        "device": _DEVICES[vendor],
        "devices": str(known.devices),
        "capability": None if accelerator is None else accelerator.capability,
    }


def _software(framework: str | None, use: Use, *, neuron: bool) -> Software:
    if use.image is not None:
        tagged = container_of_image(use.image)
        return tagged if tagged.cuda is not None else replace(tagged, cuda=use.cuda)
    version = _written_out(framework, use.framework_version)
    if framework is None or version is None:
        return Software(use.cuda)
    return software(framework, version, neuron=neuron)


def _container(use: Use) -> str | None:
    if use.image is not None:
        return "given"
    return None if use.framework is None else "framework"


def _written_out(framework: str | None, version: str | None) -> str | None:
    """Complete a short version: AWS's tag 2.8 means 2.8.0."""
    if framework is None or version is None or version.count(".") != 1:
        return version
    if framework not in images.frameworks():
        return version
    known = images.versions(framework)
    return next((full for full in known if full.startswith(f"{version}.")), version)
