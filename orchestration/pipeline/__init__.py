"""A pipeline: stages gathered, checked whole, and lowered to one step graph."""

from orchestration.pipeline.model import Parameter, Pipeline, Schedule

__all__ = ["Parameter", "Pipeline", "Schedule"]
