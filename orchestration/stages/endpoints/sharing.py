"""Requests that the variants of a deployment share: what they serve, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from orchestration.errors import Problem
from orchestration.expressions import Result
from orchestration.refs import is_given
from orchestration.stages.endpoints.fields import TYPES, DeploymentFields
from orchestration.stages.endpoints.updates import EndpointUpdate
from orchestration.stages.hosting.variants import OtherVariant
from orchestration.stages.values import Text

_NOT_OF_A_SHADOW: Final = {
    "autoscaling": "a shadow is not scaled; remove it",
    "smoke_test": "a shadow answers nobody; use update.trial",
    "preprocessing": "SageMaker makes shadows of one container only; remove it",
    "postprocessing": "SageMaker makes shadows of one container only; remove it",
}


def problems(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what is missing beside variants, or does not go with them."""
    if not stage.variants:
        for field in ("variant", "weight", "shadow"):
            if getattr(stage, field) is not None and getattr(stage, field) is not False:
                yield Problem(field, "there are no other variants; remove it, or give variants")
        return
    if stage.variant is None:
        yield Problem("variant", "is needed: the name of the variant that the new model goes to")
    elif stage.variant in stage.variants:
        yield Problem("variant", f"{stage.variant} is one of the other variants; choose another")
    if not any((own_weight(stage), *(each.weight for each in stage.variants.values()))):
        yield Problem("weight", "all variants have a weight of 0: none would get a request")
    yield from _shadowed(stage)
    if stage.asynchronous is not None:
        yield Problem("variants", "requests that wait name no variant; remove it")
    yield from _updated(stage.update)


def warnings(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what an update would not change beside a variant that is scaled."""
    if stage.autoscaling is None:
        return
    for name, each in stage.variants.items():
        if each.instance_count is not None:
            yield Problem(
                f"variants.{name}.instance_count",
                "is that of a new variant only: an update of an endpoint with a scaled variant "
                "keeps the numbers of instances of all; change it by "
                "UpdateEndpointWeightsAndCapacities",
            )


def _updated(update: EndpointUpdate) -> Iterator[Problem]:
    """Yield what SageMaker does not combine with several variants, or could not be kept."""
    if update.traffic == "rolling":
        message = "SageMaker rolls no endpoint with several variants; choose canary or linear"
        yield Problem("update.traffic", message)
    if update.keep is not None:
        yield Problem("update.keep", "another variant may serve one of the old models; remove it")


def _shadowed(stage: DeploymentFields) -> Iterator[Problem]:
    """Yield what SageMaker refuses beside a shadow, and what would ask one that answers nobody.

    https://docs.aws.amazon.com/sagemaker/latest/dg/shadow-tests-exclusions.html
    """
    if not stage.shadow:
        return
    for name in _NOT_OF_A_SHADOW:
        if is_given(getattr(stage, name)):
            yield Problem(name, _NOT_OF_A_SHADOW[name])
    if len(stage.variants) > 1:
        yield Problem(
            "variants", "SageMaker makes a shadow of an endpoint's only variant; give one"
        )
    for name, other in list(stage.variants.items())[:1]:
        if own_weight(stage) > other.weight:
            message = f"a shadow gets at most all requests of {name}: expected at most"
            yield Problem("weight", f"{message} {other.weight:g}, got {own_weight(stage):g}")
    if has_inf1(stage):
        yield Problem("instance_type", "SageMaker makes no shadows on Inf1 instances; change it")
    yield from _moved(stage.update)


def has_inf1(stage: DeploymentFields) -> bool:
    """Return whether a variant may be on Inf1 instances, for which SageMaker does less."""
    others = (each.instance_type for each in stage.variants.values())
    kinds = (stage.instance_type, *stage.fallbacks, *others)
    return any(isinstance(kind, str) and kind.startswith("ml.inf1.") for kind in kinds)


def _moved(update: EndpointUpdate) -> Iterator[Problem]:
    """Yield what an update would move to a shadow, or ask it."""
    for field in ("traffic", "alarms", "termination_wait_s"):
        if getattr(update, field) != EndpointUpdate.model_fields[field].default:
            message = "a shadow gets copies, and no traffic moves to it; remove it"
            yield Problem(f"update.{field}", message)
    if update.trial is not None and update.trial.after:
        message = "a shadow answers nobody; the cases are asked before"
        yield Problem("update.trial.after", message)


def placed(stage: DeploymentFields, own: dict[str, Any]) -> dict[str, Any]:
    """Return the variants of the configuration, with that of the new model."""
    if stage.shadow:
        return {"ProductionVariants": others(stage), "ShadowProductionVariants": [own]}
    return {"ProductionVariants": [*others(stage), own]}


def own_weight(stage: DeploymentFields) -> float:
    """Return the weight of the new model's variant."""
    return 1.0 if stage.weight is None else stage.weight


def model_of(stage: DeploymentFields, name: str) -> Text:
    """Return the name of the model that another variant serves."""
    given = stage.variants[name].model_name
    if given is not None:
        return given
    [number] = [number for number, each in kept(stage) if each == name]
    return Result(f"{stage.name}.kept_{number}", "model")


def others(stage: DeploymentFields) -> list[dict[str, Any]]:
    """Return the other variants of the configuration."""
    return [
        {
            "VariantName": name,
            "ModelName": model_of(stage, name),
            **_machines(stage, each),
            "InitialVariantWeight": each.weight,
        }
        for name, each in stage.variants.items()
    ]


def _machines(stage: DeploymentFields, other: OtherVariant) -> dict[str, Any]:
    """Return the machines of another variant: one instance type of its own, or the stage's."""
    count = stage.instance_count if other.instance_count is None else other.instance_count
    machines = stage.machines(count)
    if other.instance_type is None:
        return machines
    return {"InstanceType": other.instance_type} | {
        name: value for name, value in machines.items() if name not in TYPES
    }


def kept(stage: DeploymentFields) -> list[tuple[int, str]]:
    """Return the variants whose models are those that the endpoint serves, with numbers."""
    names = [name for name, each in stage.variants.items() if each.model_name is None]
    return list(enumerate(names, start=1))
