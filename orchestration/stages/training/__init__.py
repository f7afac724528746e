"""Distributed training: the fields that a user writes, their checks, and the request."""

from orchestration.stages.training.fields import Checkpoints, ModelOutput
from orchestration.stages.training.stage import TrainingJob, TrainingJobOutputs

__all__ = ["Checkpoints", "ModelOutput", "TrainingJob", "TrainingJobOutputs"]
