"""Hyperparameter tuning: many training jobs, of which the best one counts."""

from orchestration.stages.tuning.fields import (
    Hyperband,
    TuningEnd,
    TuningLimits,
    TuningObjective,
    TuningRange,
    WarmStart,
)
from orchestration.stages.tuning.stage import TuningJob, TuningJobOutputs

__all__ = [
    "Hyperband",
    "TuningEnd",
    "TuningJob",
    "TuningJobOutputs",
    "TuningLimits",
    "TuningObjective",
    "TuningRange",
    "WarmStart",
]
