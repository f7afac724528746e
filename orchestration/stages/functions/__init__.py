"""Functions of Lambda: what they return, and how they fail."""

from orchestration.stages.functions.payloads import followed, inside, problems

__all__ = ["followed", "inside", "problems"]
