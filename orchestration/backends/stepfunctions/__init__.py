"""Step graphs as Step Functions definitions."""

from orchestration.backends.stepfunctions.integrations.doubts import warnings
from orchestration.backends.stepfunctions.rendering import compact, dumps, render

__all__ = ["compact", "dumps", "render", "warnings"]
