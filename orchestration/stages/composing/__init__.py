"""Stages that stand for other stages."""

from orchestration.stages.composing.nested import FIELDS, NestedPipeline

__all__ = ["FIELDS", "NestedPipeline"]
