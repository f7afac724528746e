"""A pipeline's definition as one state of a larger state machine."""

from orchestration.backends.stepfunctions.embedding.fragment import fragment

__all__ = ["fragment"]
