"""The rules of tuning jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "ValidationException"
_GUIDE = "guide: https://docs.aws.amazon.com/sagemaker/latest/dg"
_GRID = f"{_GUIDE}/automatic-model-tuning-how-it-works.html; wording assumed"
_RANGE = "model: ContinuousParameterRange.ScalingType; wording assumed"
_HYPERBAND = "model: HyperbandStrategyConfig.MaxResource; wording assumed"

TUNING: Final[Mapping[str, Rule]] = {
    "tuning names once": Rule(
        "ResourceInUse",
        "Hyper parameter tuning job names must be unique within an AWS account and region, and a "
        "hyper parameter tuning job with this name already exists ({arn})",
        "model: CreateHyperParameterTuningJob, ResourceInUse; wording assumed (that of training "
        "jobs)",
    ),
    "objective is required": Rule(
        _REFUSED,
        "HyperParameterTuningJobObjective is required",
        "model: HyperParameterTuningJobConfig; wording assumed",
    ),
    "something is tuned": Rule(
        _REFUSED,
        "ParameterRanges must have at least one hyperparameter.",
        "model: HyperParameterTuningJobConfig.ParameterRanges; wording assumed",
    ),
    "30 ranges": Rule(
        _REFUSED,
        "A tuning job can search over 30 hyperparameters at most, got {count}.",
        "model: HyperParameterTrainingJobDefinition.HyperParameterRanges; wording assumed",
    ),
    "tuned once": Rule(
        _REFUSED,
        "Hyperparameter {name} is named more than once.",
        "model: ParameterRanges; wording assumed",
    ),
    "ranges ascend": Rule(
        _REFUSED,
        "MaxValue {high} of hyperparameter {name} must be greater than MinValue {low}.",
        "model: ContinuousParameterRange; wording assumed",
    ),
    "logarithms above 0": Rule(
        _REFUSED,
        "Logarithmic scaling of hyperparameter {name} needs values greater than 0, got {low} to "
        "{high}.",
        _RANGE,
    ),
    "reverse logarithms below 1": Rule(
        _REFUSED,
        "Reverse logarithmic scaling of hyperparameter {name} needs values from 0 to below 1, got "
        "{low} to {high}.",
        _RANGE,
    ),
    "grids are categorical": Rule(
        _REFUSED, "Only categorical parameters are supported for the Grid strategy.", _GRID
    ),
    "jobs of a grid": Rule(
        _REFUSED,
        "MaxNumberOfTrainingJobs {jobs} should equal the number of combinations, {count}.",
        _GRID,
    ),
    "resources of Hyperband": Rule(
        _REFUSED,
        "HyperbandStrategyConfig is not supported for the {strategy} strategy.",
        "model: HyperParameterTuningJobConfig.StrategyConfig; wording assumed",
    ),
    "Hyperband stops jobs itself": Rule(
        _REFUSED,
        "TrainingJobEarlyStoppingType must be Off for the Hyperband strategy.",
        "model: HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType; wording assumed",
    ),
    "Hyperband knows its epochs": Rule(
        _REFUSED,
        "MaxResource is required: it can't be inferred from the static hyperparameters.",
        _HYPERBAND,
    ),
    "20,000 epochs": Rule(_REFUSED, "MaxResource must be at most 20000, got {most}.", _HYPERBAND),
    "parents exist": Rule(
        _REFUSED,
        "Parent hyper parameter tuning job {name} does not exist.",
        "model: HyperParameterTuningJobWarmStartConfig; wording assumed",
    ),
    "parents have ended": Rule(
        _REFUSED,
        "Parent hyper parameter tuning job {name} is in status {status}.",
        f"{_GUIDE}/automatic-model-tuning-warm-start.html; wording assumed",
    ),
}
