"""A pipeline: stages gathered, checked whole, and lowered to one step graph."""

from orchestration.pipeline.description import Parameter, Schedule
from orchestration.pipeline.model import Pipeline

__all__ = ["Parameter", "Pipeline", "Schedule"]
