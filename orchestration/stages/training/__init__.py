"""Distributed training: what a user writes of it, what is wrong with that, and its request."""

from orchestration.stages.training.fields import Checkpoints, ModelOutput
from orchestration.stages.training.stage import TrainingJob, TrainingJobOutputs

__all__ = ["Checkpoints", "ModelOutput", "TrainingJob", "TrainingJobOutputs"]
