"""Lines of SageMaker's jobs: their machines, for as long as they may run, and their volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.catalog import Rate, price, prices, rate
from orchestration.graph import Call, candidates, stage_of
from orchestration.pricing.knowing import Known, Times, times
from orchestration.pricing.lines import HOURS_A_MONTH, Line

_HOUR_S: Final = 3600.0
_DAY_S: Final = 86_400
"""The limit of a job that sets none.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StoppingCondition.html
"""
_GRACE_S: Final = 120
"""Seconds between the end of a job's time and that of its machines; same page."""


@dataclass(frozen=True, slots=True)
class Machines:
    """Instances of one type."""

    instance_type: str | None
    """``None``: not known before the run."""
    count: float | None
    volume_gb: float | None = None
    """The volume of each, where the request asks for one."""

    def words(self) -> str:
        """Format them: ``2 x ml.p5.48xlarge``."""
        count = "?" if self.count is None else f"{self.count:g}"
        return f"{count} x {self.instance_type or '?'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One request: alternatives of machines, all of a cluster's groups, and how long they run."""

    machines: tuple[tuple[Machines, ...], ...]
    most_h: float
    jobs: float = 1.0
    parallel_h: float | None = None
    """The most hours of all jobs of a tuning together, where it has a limit of its own."""
    spot: bool = False


def lines(call: Call, known: Known, often: Times) -> Iterator[Line]:
    """Yield the lines of a call that starts a job: its own machines, or those it falls back to."""
    requests = [_read(each, known) for each in candidates(call)]
    clusters = [cluster for request in requests for cluster in request.machines]
    tries = 1 if call.adopt is None else call.adopt.tries
    dearest = max(clusters, key=lambda cluster: _hourly(cluster, known))
    first = requests[0]
    most_h = max(each.most_h for each in requests)
    jobs = first.jobs
    bound = most_h * jobs if first.parallel_h is None else min(most_h * jobs, first.parallel_h)
    stage = stage_of(call.name)
    expected = known.assumptions.hours(stage)
    hours = Times(None if expected is None else min(expected.hours, most_h) * jobs, bound * tries)
    notes = _notes(first, clusters[0], dearest, tries)
    if expected is not None:
        notes += (f"{expected.hours:g} h {expected.source}",)
    quantity = often * hours
    shares = [(clusters[0], quantity)]
    if dearest != clusters[0]:
        shares = [
            (clusters[0], Times(quantity.expected, 0.0)),
            (dearest, Times(0.0, quantity.most)),
        ]
    for cluster, share in shares:
        for group in cluster:
            yield from _of_group(stage, group, known, share, spot=first.spot, notes=notes)


def _of_group(
    stage: str, group: Machines, known: Known, hours: Times, *, spot: bool, notes: tuple[str, ...]
) -> Iterator[Line]:
    quantity = hours * Times(group.count, group.count)
    yield Line(
        stage=stage,
        what=group.words() + (", spot" if spot else ""),
        rate=None if group.instance_type is None else instance_rate(group.instance_type, known),
        expected=quantity.expected,
        most=quantity.most,
        saving=known.assumptions.spot_saving if spot else 0.0,
        lacks=_lacks(stage, group, known, quantity),
        notes=notes,
    )
    if group.volume_gb:
        share = group.volume_gb / HOURS_A_MONTH
        yield Line(
            stage=stage,
            what="volumes",
            rate=rate("volume", known.region),
            expected=times(quantity.expected, share),
            most=times(quantity.most, share),
        )


def instance_rate(instance_type: str, known: Known) -> Rate | None:
    """Return the price of an instance's hour, whatever component of SageMaker it runs for.

    The price list has the same price for training, processing and hosting wherever it was looked
    up: 0.115 for ml.m5.large, 0.23 for ml.m5.xlarge, 0.461 for ml.m5.2xlarge.
    """
    found = price(instance_type, known.region)
    if found is None:
        return None
    return Rate(
        key=instance_type,
        usd=found.usd_per_hour,
        per="h",
        region=prices()[instance_type].region,
        date=found.date,
        estimate=found.estimate,
        note=found.note,
        source=found.source,
    )


def _lacks(stage: str, group: Machines, known: Known, quantity: Times) -> str:
    if group.instance_type is None or group.count is None:
        return "its machines come from parameters; give them with -p"
    if instance_rate(group.instance_type, known) is None:
        return f"no price is known for {group.instance_type}"
    if quantity.most is None:
        return f"how many jobs; --assume {stage}.elements=NUMBER"
    if quantity.expected is None:
        return _unexpected(stage, known)
    return ""


def _unexpected(stage: str, known: Known) -> str:
    if known.assumptions.hours(stage) is None:
        return f"how long its job takes; --assume {stage}.hours=NUMBER"
    return f"how many jobs; --assume {stage}.elements=NUMBER"


def _notes(
    job: _Job, first: tuple[Machines, ...], dearest: tuple[Machines, ...], tries: int
) -> tuple[str, ...]:
    notes = []
    if job.jobs != 1:
        notes.append(f"{job.jobs:g} jobs")
    if tries > 1:
        notes.append(f"at most {tries} tries")
    if dearest != first:
        notes.append("at most on " + " + ".join(each.words() for each in dearest))
    return tuple(notes)


def _hourly(cluster: Sequence[Machines], known: Known) -> float:
    """Return the price of a cluster's hour; infinite where it is not known."""
    total = 0.0
    for group in cluster:
        found = None if group.instance_type is None else price(group.instance_type, known.region)
        if found is None or group.count is None:
            return float("inf")
        total += found.usd_per_hour * group.count
    return total


def _read(call: Call, known: Known) -> _Job:
    request: Any = call.operation.request
    machines = clusters_of(call.operation.name, request, known)
    match call.operation.name:
        case "CreateTransformJob":
            seconds = _DAY_S if call.until is None else call.until.timeout_s
            return _Job(machines=machines, most_h=seconds / _HOUR_S)
        case "CreateHyperParameterTuningJob":
            return _tuning(request, known, machines)
        case _:
            spot = known.value(request.get("EnableManagedSpotTraining")) is True
            return _Job(machines=machines, most_h=_limit(request, known), spot=spot)


def clusters_of(
    operation: str, request: Mapping[str, Any], known: Known
) -> tuple[tuple[Machines, ...], ...]:
    """Return the machines of a request for a job, or of its description; any one of them is it."""
    if operation == "CreateProcessingJob":
        return ((_machines(request["ProcessingResources"]["ClusterConfig"], known),),)
    if operation == "CreateTransformJob":
        return ((_machines(request["TransformResources"], known),),)
    if operation == "CreateHyperParameterTuningJob":
        one = request.get("TrainingJobDefinition")
        definitions = [one] if one is not None else request["TrainingJobDefinitions"]
        return tuple(cluster for each in definitions for cluster in _clusters(each, known))
    return _clusters(request, known)


def _clusters(request: Mapping[str, Any], known: Known) -> tuple[tuple[Machines, ...], ...]:
    """Return the machines of training jobs."""
    resources = request.get("HyperParameterTuningResourceConfig") or request["ResourceConfig"]
    if "InstanceConfigs" in resources:
        return tuple((_machines(each, known),) for each in resources["InstanceConfigs"])
    if "InstanceGroups" not in resources:
        return ((_machines(resources, known),),)
    volume = known.number(resources.get("VolumeSizeInGB"))
    groups = (_machines(each, known) for each in resources["InstanceGroups"])
    return (tuple(replace(group, volume_gb=volume) for group in groups),)


def _tuning(
    request: Mapping[str, Any], known: Known, machines: tuple[tuple[Machines, ...], ...]
) -> _Job:
    limits = request["HyperParameterTuningJobConfig"]["ResourceLimits"]
    one = request.get("TrainingJobDefinition")
    definitions = [one] if one is not None else request["TrainingJobDefinitions"]
    parallel = known.number(limits.get("MaxParallelTrainingJobs")) or 1.0
    whole_s = known.number(limits.get("MaxRuntimeInSeconds"))
    return _Job(
        machines=machines,
        most_h=max(_limit(each, known) for each in definitions),
        jobs=known.number(limits.get("MaxNumberOfTrainingJobs")) or 1.0,
        parallel_h=None if whole_s is None else parallel * (whole_s + _GRACE_S) / _HOUR_S,
        spot=any(known.value(d.get("EnableManagedSpotTraining")) is True for d in definitions),
    )


def _machines(config: Mapping[str, Any], known: Known) -> Machines:
    return Machines(
        known.text(config.get("InstanceType")),
        known.number(config.get("InstanceCount")),
        known.number(config.get("VolumeSizeInGB")),
    )


def _limit(request: Mapping[str, Any], known: Known) -> float:
    """Return the hours after which SageMaker ends a job."""
    stopping = request.get("StoppingCondition") or {}
    seconds = known.number(stopping.get("MaxRuntimeInSeconds"))
    return ((_DAY_S if seconds is None else seconds) + _GRACE_S) / _HOUR_S
