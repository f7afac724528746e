"""Stages that stand for other stages."""

from orchestration.stages.composing.nested import NestedPipeline

__all__ = ["NestedPipeline"]
