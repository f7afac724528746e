"""A pipeline: stages gathered, checked whole, and lowered to one step graph."""

from orchestration.pipeline.description import Parameter
from orchestration.pipeline.model import Pipeline
from orchestration.pipeline.notifying import Notify, Topics
from orchestration.pipeline.schedules.model import Schedule
from orchestration.pipeline.triggers import EventValue, ModelPackages, S3Objects, Trigger

__all__ = [
    "EventValue",
    "ModelPackages",
    "Notify",
    "Parameter",
    "Pipeline",
    "S3Objects",
    "Schedule",
    "Topics",
    "Trigger",
]
