"""The events after which a pipeline runs, and what its parameters get from them."""

from orchestration.pipeline.triggers.model import EventValue, ModelPackages, S3Objects, Trigger

__all__ = ["EventValue", "ModelPackages", "S3Objects", "Trigger"]
