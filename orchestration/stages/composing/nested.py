"""Another pipeline as a stage: its stages stand in the place of this one once a file is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field
from typing_extensions import override

from orchestration.errors import Problem
from orchestration.stages.stage import SAMPLE, Context, Stage
from orchestration.stages.values import Name

FIELDS: Final = ("kind", "name", "file", "parameters", "after", "when", "for_each")
"""The fields that a pipeline as a stage takes; others belong to its own stages."""


def _narrow(schema: dict[str, Any]) -> None:
    """Describe to editors only the fields that are taken."""
    schema["properties"] = {k: v for k, v in schema["properties"].items() if k in FIELDS}


class NestedPipeline(Stage):
    """The stages of another pipeline's file, as a part of this one.

    Stage ``train`` of the file of a stage ``market`` becomes stage ``market_train``, which others
    refer to by that name: ``{ref: market_train.model_artifacts}``.
    """

    model_config = ConfigDict(json_schema_extra=_narrow)

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
