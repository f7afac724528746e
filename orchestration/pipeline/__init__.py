"""A pipeline: stages gathered, checked whole, and lowered to one step graph."""

from orchestration.pipeline.description import Parameter, Schedule
from orchestration.pipeline.model import Pipeline
from orchestration.pipeline.notifying import Notify, Topics

__all__ = ["Notify", "Parameter", "Pipeline", "Schedule", "Topics"]
