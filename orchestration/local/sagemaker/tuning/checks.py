"""Checks of a request for a tuning job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from orchestration.local.account.protocol import JsonObject
from orchestration.local.sagemaker.checks.surroundings import not_simulated, repeated
from orchestration.local.sagemaker.jobs.lifecycle import Job
from orchestration.local.sagemaker.rules import refusal
from orchestration.local.sagemaker.tuning.children import RUNNING, objective, training_request
from orchestration.local.sagemaker.tuning.choosing import combinations, names

_MOST_RANGES = 30
_MOST_RESOURCE = 20_000
_EPOCHS = ("epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs")


def check_tuning_request(request: JsonObject, check: Callable[[JsonObject], None]) -> None:
    """Refuse a request that SageMaker would refuse despite its correct shape.

    `check` refuses the request of a training job.
    """
    config = request["HyperParameterTuningJobConfig"]
    ranges = config.get("ParameterRanges", {})
    not_simulated(_missing(request, config))
    if not objective(request):
        raise refusal("objective is required")
    _check_ranges(request, ranges)
    _check_strategy(request, config, ranges)
    values = next(combinations(ranges), {})
    # As the first training job, whose name is not taken yet.
    check(training_request(request, "", 1, values))


def check_parents(request: JsonObject, find: Callable[[str], Job | None]) -> None:
    """Refuse parents of a warm start that do not exist, or still run."""
    for parent in request.get("WarmStartConfig", {}).get("ParentHyperParameterTuningJobs", []):
        name = parent["HyperParameterTuningJobName"]
        job = find(name)
        if job is None:
            raise refusal("parents exist", name=name)
        if job.status in RUNNING:
            raise refusal("parents have ended", name=name, status=job.status)


def _missing(request: JsonObject, config: JsonObject) -> list[str]:
    """Return what the simulation would do differently from SageMaker and so refuses."""
    present = [name for name in ("Autotune", "TrainingJobDefinitions") if request.get(name)]
    if config.get("ParameterRanges", {}).get("AutoParameters"):
        present.append("ParameterRanges.AutoParameters")
    if "TrainingJobDefinition" not in request:
        present.append("a tuning job without TrainingJobDefinition")
    if config["Strategy"] != "Grid" and "MaxNumberOfTrainingJobs" not in config["ResourceLimits"]:
        present.append("a search without MaxNumberOfTrainingJobs")
    return present


def _check_ranges(request: JsonObject, ranges: Mapping[str, Any]) -> None:
    tuned = names(ranges)
    if not tuned:
        raise refusal("something is tuned")
    if len(tuned) > _MOST_RANGES:
        raise refusal("30 ranges", count=len(tuned))
    fixed = request["TrainingJobDefinition"].get("StaticHyperParameters", {})
    for name in repeated([*set(fixed), *tuned]):
        raise refusal("tuned once", name=name)
    for kind in ("Integer", "Continuous"):
        for each in ranges.get(f"{kind}ParameterRanges", []):
            _check_bounds(each)


def _check_bounds(each: Mapping[str, str]) -> None:
    low, high = float(each["MinValue"]), float(each["MaxValue"])
    values = {"name": each["Name"], "low": each["MinValue"], "high": each["MaxValue"]}
    if low >= high:
        raise refusal("ranges ascend", **values)
    if each.get("ScalingType") == "Logarithmic" and low <= 0:
        raise refusal("logarithms above 0", **values)
    if each.get("ScalingType") == "ReverseLogarithmic" and not (low >= 0 and high < 1):
        raise refusal("reverse logarithms below 1", **values)


def _check_strategy(request: JsonObject, config: JsonObject, ranges: Mapping[str, Any]) -> None:
    if config["Strategy"] == "Grid":
        listed = ranges.get("CategoricalParameterRanges", [])
        if len(listed) < len(names(ranges)):
            raise refusal("grids are categorical")
        count = prod(len(each["Values"]) for each in listed)
        jobs = config["ResourceLimits"].get("MaxNumberOfTrainingJobs", count)
        if jobs != count:
            raise refusal("jobs of a grid", jobs=jobs, count=count)
    resources = config.get("StrategyConfig", {}).get("HyperbandStrategyConfig")
    if config["Strategy"] != "Hyperband":
        if resources is not None:
            raise refusal("resources of Hyperband", strategy=config["Strategy"])
        return
    if config.get("TrainingJobEarlyStoppingType", "Off") != "Off":
        raise refusal("Hyperband stops jobs itself")
    fixed = request["TrainingJobDefinition"].get("StaticHyperParameters", {})
    most = (resources or {}).get("MaxResource")
    if most is None and not any(name in fixed for name in _EPOCHS):
        raise refusal("Hyperband knows its epochs")
    if most is not None and most > _MOST_RESOURCE:
        raise refusal("20,000 epochs", most=most)
