"""Mistakes in how a file names another pipeline and its stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.errors import Problem, near
from orchestration.pipeline.afterwards.sections import SECTIONS, in_section
from orchestration.pipeline.unusable import of_path
from orchestration.stages import Stage
from orchestration.stages.composing import FIELDS


def wrong_fields(stage: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the fields that a stage of kind ``pipeline`` does not take."""
    file = stage.get("file")
    for key in stage:
        if key in FIELDS:
            continue
        message = f"is unknown{near(str(key), FIELDS)}"
        if key in Stage.model_fields:
            where = file if isinstance(file, str) else "its file"
            message = f"a pipeline as a stage takes none; give it to the stages of {where}"
        yield Problem(str(key), message)
    if not isinstance(file, str):
        yield Problem("file", "expected the path of a YAML file with a pipeline")
    elif wrong := of_path(file):
        yield Problem("file", wrong)


def to_pipelines(
    data: Mapping[str, Any], inside: Mapping[str, Mapping[str, object]]
) -> Iterator[Problem]:
    """Yield references to a nested pipeline itself, which has no outputs of its own.

    ``inside`` are the names of each one's stages.
    """
    for section in SECTIONS:
        for name, stage in in_section(data, section):
            for path, text in _references(stage, ""):
                pipeline, _, rest = text.partition(".")
                if inside.get(pipeline):
                    message = _way_out(pipeline, rest, inside[pipeline])
                    yield Problem(path, message, stage=str(name), section=section)


def _way_out(pipeline: str, rest: str, stages: Mapping[str, object]) -> str:
    stage, _, output = rest.partition(".")
    if output and f"{pipeline}_{stage}" in stages:
        return f"{pipeline} is a pipeline; write {{ref: {pipeline}_{stage}.{output}}}"
    return f"{pipeline} is a pipeline; refer to a stage of it: {', '.join(stages)}"


def _references(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of all references, each with its path."""
    match value:
        case {"ref": str(text), **others} if not others:
            yield path, text
        case Mapping():
            for key, item in value.items():
                yield from _references(item, f"{path}.{key}" if path else str(key))
        case list():
            for index, item in enumerate(value):
                yield from _references(item, f"{path}[{index}]")
