"""Another pipeline as a stage: its stages stand in the place of this one once a file is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.stages.stage import SAMPLE, Context, Stage
from orchestration.stages.values import Name


class NestedPipeline(Stage):
    """The stages of another pipeline's file, as a part of this one.

    Stage ``train`` of the file of a stage ``market`` becomes stage ``market_train``, which others
    refer to by that name: ``{ref: market_train.model_artifacts}``.
    """

    kind: Literal["pipeline"] = "pipeline"
    file: str = Field(min_length=1)
    """The YAML file of the other pipeline, relative to the file that this is written in."""
    parameters: dict[Name, Any] = {}
    """Values of its parameters, or references; those with a default may be left out."""

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        """Refuse it where no file was read that its own is relative to."""
        message = "is read together with the file that names it; use Pipeline.load, or in Python"
        yield Problem("file", f"{message} put the stages of both pipelines into one list")
