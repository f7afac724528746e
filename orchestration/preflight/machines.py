"""The machines that requests ask SageMaker for, whatever kind of job or endpoint asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.preflight.requests import Request, known

_TRAINING: Final = "CreateTrainingJob"
_TUNING: Final = "CreateHyperParameterTuningJob"
_PROCESSING: Final = "CreateProcessingJob"
_TRANSFORM: Final = "CreateTransformJob"
_HOSTING: Final = "CreateEndpointConfig"
JOBS: Final = (_TRAINING, _TUNING, _PROCESSING, _TRANSFORM)
ASKING: Final = (*JOBS, _HOSTING)
"""The operations that ask for machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Machines of one type that one request asks for."""

    request: Request
    type: str
    """``ml.p5.48xlarge``."""
    count: int
    usage: str
    """The usage in its quota's name: ``spot training job usage``."""
    path: tuple[str | int, ...]
    """The place of the type in the request."""
    choice: bool = False
    """True if SageMaker takes one of several types."""
    at_once: int = 1
    """The number of such groups that the run may have at the same time."""
    variant: str = ""
    """The variant of an endpoint; empty for jobs."""
    most: int = 0
    """The most that SageMaker itself may make of them (``ManagedInstanceScaling``); 0: no more."""

    @property
    def quota(self) -> str:
        """The name of the quota that limits them."""
        return f"{self.type} for {self.usage}"


def machines(request: Request) -> Iterator[Machines]:
    """Yield the machines that a request asks for, as far as they are known before a run."""
    match request.name:
        case "CreateTrainingJob":
            yield from _training(request, (), request.at_once)
        case "CreateHyperParameterTuningJob":
            limits = ("HyperParameterTuningJobConfig", "ResourceLimits", "MaxParallelTrainingJobs")
            parallel = request.at_once * _whole(request.at(*limits), 1)
            yield from _training(request, ("TrainingJobDefinition",), parallel)
            for number, _ in enumerate(request.at("TrainingJobDefinitions") or ()):
                yield from _training(request, ("TrainingJobDefinitions", number), parallel)
        case "CreateProcessingJob":
            path: tuple[str | int, ...] = ("ProcessingResources", "ClusterConfig")
            yield from _group(request, path, "processing job usage", request.at_once)
        case "CreateTransformJob":
            path = ("TransformResources",)
            yield from _group(request, path, "transform job usage", request.at_once)
        case "CreateEndpointConfig":
            for field in ("ProductionVariants", "ShadowProductionVariants"):
                for number, _ in enumerate(request.at(field) or ()):
                    yield from _hosting(request, (field, number))


def _hosting(request: Request, path: tuple[str | int, ...]) -> Iterator[Machines]:
    count, usage = "InitialInstanceCount", "endpoint usage"
    variant = str(request.at(*path, "VariantName") or "")
    most = _whole(request.at(*path, "ManagedInstanceScaling", "MaxInstanceCount"), 0)
    for each in _group(request, path, usage, 1, count=count):
        yield replace(each, variant=variant, most=most)
    for number, _ in enumerate(request.at(*path, "InstancePools") or ()):
        pool = (*path, "InstancePools", number)
        for each in _group(request, pool, usage, 1, choice=True):
            first = _whole(known(request.at(*path, count)), 1)
            yield replace(each, count=first, variant=variant, most=most)


def _training(request: Request, inside: tuple[str | int, ...], at_once: int) -> Iterator[Machines]:
    spot = request.at(*inside, "EnableManagedSpotTraining") is True
    usage = "spot training job usage" if spot else "training job usage"
    path = (*inside, "ResourceConfig")
    if request.at(*path, "TrainingPlanArn"):
        return  # Reserved capacity, which the plan itself counts.
    yield from _group(request, path, usage, at_once)
    for field, choice in (("InstanceGroups", False), ("InstancePreferences", True)):
        for number, _ in enumerate(request.at(*path, field) or ()):
            yield from _group(request, (*path, field, number), usage, at_once, choice=choice)


def _group(
    request: Request,
    path: tuple[str | int, ...],
    usage: str,
    at_once: int,
    *,
    count: str = "InstanceCount",
    choice: bool = False,
) -> Iterator[Machines]:
    held = request.at(*path)
    name = known(held.get("InstanceType")) if isinstance(held, Mapping) else None
    if isinstance(name, str):
        yield Machines(
            request=request,
            type=name,
            count=_whole(known(held.get(count)), 1),
            usage=usage,
            path=(*path, "InstanceType"),
            choice=choice,
            at_once=at_once,
        )


def _whole(value: Any, otherwise: int) -> int:
    return int(value) if isinstance(value, int | float) else otherwise
