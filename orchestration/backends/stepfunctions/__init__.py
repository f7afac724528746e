"""Step graphs as Step Functions definitions."""

from orchestration.backends.stepfunctions.rendering import dumps, render

__all__ = ["dumps", "render"]
